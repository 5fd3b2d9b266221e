"""meteor as nltk computes it, with WordNet's synonyms.

Synonyms from WordNet's own files, for METEOR.

nltk's reader takes seconds to load, wants its folder on a path that the whole process shares, and
must not be used by two threads at once. METEOR asks only which words stand in a synset with a
given one, so that is all that is read here, and it is what nltk's reader would answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from evenmatch.errors import InputError
from evenmatch.metrics.ngram.tokens import (
    WordTokenizer,
    import_library,
    library_version,
    tokenize_texts,
)
from evenmatch.models.checkpoints import find_package, verify_package
from evenmatch.packages import PACKAGES
from evenmatch.registry import make_signature, register
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import best_over_references, overlap_score
from evenmatch.types import Pair, Score, Scores
from evenmatch.units.keyphrases import get_stemmer


@register("metric", "meteor")
@dataclass(frozen=True)
class Meteor:
    """METEOR by nltk: words that agree in form, stem or meaning, less a penalty for their order.

    `alpha` weighs precision against recall. `beta` and `gamma` shape the penalty, which knows no
    shortest text: equal texts of one word score only 0.5. The synonyms are English and come with
    `evenmatch models get wordnet`. `tokenizer` says what a word is: 'whitespace' cuts between
    spaces; 'words' takes words of any script, characters where a script has no spaces, and single
    symbols; 'auto' is 'whitespace', but 'words' for a pair that is not mostly Latin.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    tokenizer: WordTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not (0 <= self.alpha <= 1 and self.beta >= 0 and 0 <= self.gamma <= 1):
            raise InputError(
                "meteor needs alpha and gamma between 0 and 1 and beta not below 0, "
                f"got {self.alpha}, {self.gamma} and {self.beta}"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores in order; the best reference counts."""
        check_pairs(pairs)
        meteor: Any = import_library(
            "nltk.translate.meteor_score", package="nltk"
        ).single_meteor_score
        synonyms, stems = wordnet(), get_stemmer()

        def score(candidate: str, reference: str) -> Score:
            given, wanted = tokenize_texts(self.tokenizer, candidate, reference)
            return overlap_score(
                meteor(
                    wanted,
                    given,
                    stemmer=stems,
                    wordnet=synonyms,
                    alpha=self.alpha,
                    beta=self.beta,
                    gamma=self.gamma,
                )
            )

        return Scores(tuple(best_over_references(pair, score) for pair in pairs), self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version, and WordNet by content."""
        return (library_version("nltk"), f"wordnet@{PACKAGES['wordnet'].sha256[:12]}")

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return make_signature(self)


# WordNet's rules for taking an inflected form back to one it lists (its manual page "morphy").
_SUFFIX_RULES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}


_CACHED_WORDS = 1 << 16


@dataclass(frozen=True, slots=True)
class Lemma:
    """A word of a synset, in the shape nltk asks for."""

    text: str

    def name(self) -> str:
        """The word; the parts of a compound are joined by underscores."""
        return self.text


@dataclass(frozen=True, slots=True)
class Synset:
    """Words that share a meaning, in the shape nltk asks for."""

    words: tuple[Lemma, ...]

    def lemmas(self) -> tuple[Lemma, ...]:
        """The words."""
        return self.words


class PartOfSpeech:
    """WordNet's nouns, verbs, adjectives or adverbs."""

    def __init__(self, folder: Path, name: str) -> None:
        self._endings = _SUFFIX_RULES[name]
        self._data = (folder / f"data.{name}").read_bytes()
        index = (folder / f"index.{name}").read_text("utf-8").splitlines()
        # The files open with a licence, each line of it indented.
        self._index = dict(line.split(" ", 1) for line in index if not line.startswith(" "))
        irregular = (folder / f"{name}.exc").read_text("utf-8").splitlines()
        self._irregular = {form: rest for form, *rest in map(str.split, irregular)}

    def synsets(self, word: str) -> Iterator[Synset]:
        """Every synset of the word and of the forms it may be an inflection of."""
        for form in self._forms(word):
            fields = self._index[form].split()
            count = int(fields[1])
            yield from (self._synset(int(offset)) for offset in fields[-count:])

    def _forms(self, word: str) -> Iterator[str]:
        regular = [word[: -len(old)] + new for old, new in self._endings if word.endswith(old)]
        for form in dict.fromkeys([word, *self._irregular.get(word, regular)]):
            if form in self._index:
                yield form

    def _synset(self, offset: int) -> Synset:
        # offset, file number, part of speech, count of words in hexadecimal; word, number, ...
        fields = self._data[offset : self._data.index(b"|", offset)].decode().split()
        count = int(fields[3], 16)
        # Some adjectives carry a mark of where they may stand, as in `galore(ip)`.
        return Synset(tuple(Lemma(w.partition("(")[0]) for w in fields[4 : 4 + 2 * count : 2]))


class WordNet:
    """What METEOR asks of a WordNet reader; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self._parts = [PartOfSpeech(folder, name) for name in _SUFFIX_RULES]
        self.synsets = lru_cache(_CACHED_WORDS)(self._synsets)

    def _synsets(self, word: str) -> tuple[Synset, ...]:
        lower = word.lower()
        return tuple(synset for part in self._parts for synset in part.synsets(lower))


def wordnet() -> WordNet:
    """The WordNet that `evenmatch models get wordnet` brings, read once a process."""
    return _read_wordnet(find_package("wordnet"))


@cache
def _read_wordnet(folder: Path) -> WordNet:
    verify_package("wordnet", folder)
    return WordNet(folder)
