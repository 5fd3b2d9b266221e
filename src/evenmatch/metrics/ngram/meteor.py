"""METEOR as nltk computes it, with synonyms from WordNet.

nltk does the scoring, but not the reading of WordNet: its reader takes seconds to load, needs its
folder on a search path shared by the whole process, and is not thread-safe. METEOR only needs the
words that share a synset with a given word. The reader below returns exactly what nltk's would.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias

from evenmatch.errors import InputError
from evenmatch.metrics.ngram.tokens import (
    WordTokenizer,
    import_library,
    library_version,
    tokenize_texts,
)
from evenmatch.models.checkpoints import find_package
from evenmatch.packages import PACKAGES, verify_package
from evenmatch.registry import CallContext, register
from evenmatch.scoring.engine import EngineMetric, ReadyMetric, score_each_pair
from evenmatch.scoring.reducers import best_over_references, overlap_score
from evenmatch.types import Score
from evenmatch.units.keyphrases import get_stemmer


@register("metric", "meteor")
@dataclass(frozen=True)
class Meteor(EngineMetric):
    """METEOR by nltk: words that match in form, stem or meaning, with a penalty for word order.

    `alpha` weights precision against recall. `beta` and `gamma` shape the penalty, which applies to
    texts of any length: identical texts of one word score only 0.5. The synonyms are English; get
    them with `evenmatch models get wordnet`. `tokenizer` is 'whitespace' (split at spaces), 'words'
    (words of any script, characters where a script has no spaces, and single symbols) or 'auto'
    ('words' for a pair that is not mostly in Latin script, else 'whitespace').
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    tokenizer: WordTokenizer = "auto"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not (0 <= self.alpha <= 1 and self.beta >= 0 and 0 <= self.gamma <= 1):
            raise InputError(
                "meteor needs alpha and gamma between 0 and 1 and beta not below 0, "
                f"got {self.alpha}, {self.gamma} and {self.beta}"
            )

    def open(self, context: CallContext) -> ReadyMetric:
        """Load nltk and WordNet; with several references the best score counts."""
        meteor: Any = import_library(
            "nltk.translate.meteor_score", package="nltk"
        ).single_meteor_score
        synonyms, stemmer = wordnet(), get_stemmer()

        def score(candidate: str, reference: str) -> Score:
            hypothesis, target = tokenize_texts(self.tokenizer, candidate, reference)
            context.run.check(len(hypothesis) * len(target))
            return overlap_score(
                meteor(
                    target,
                    hypothesis,
                    stemmer=stemmer,
                    wordnet=synonyms,
                    alpha=self.alpha,
                    beta=self.beta,
                    gamma=self.gamma,
                )
            )

        return score_each_pair(lambda pair: best_over_references(pair, score))

    def resolve(self, context: CallContext) -> tuple[Meteor, tuple[str, ...]]:
        """Return the metric with the versions of what it uses."""
        return self, (library_version("nltk"), f"wordnet@{PACKAGES['wordnet'].sha256[:12]}")


# WordNet's rules from the ending of an inflected form to that of a form it lists (its manual page
# "morphy").
_SUFFIX_RULES: Mapping[str, str] = {
    "noun": "s> ses>s ves>f xes>x zes>z ches>ch shes>sh men>man ies>y",
    "verb": "s> ies>y es>e es> ed>e ed> ing>e ing>",
    "adj": "er> est> er>e est>e",
    "adv": "",
}

_CACHED_WORDS = 1 << 16


# Words that share a meaning. nltk calls `lemmas()` of a synset and `name()` of each lemma.
Synset: TypeAlias = SimpleNamespace


class PartOfSpeech:
    """WordNet's nouns, verbs, adjectives or adverbs."""

    def __init__(self, folder: Path, name: str) -> None:
        self._endings = [rule.split(">") for rule in _SUFFIX_RULES[name].split()]
        self._data = (folder / f"data.{name}").read_bytes()
        index = (folder / f"index.{name}").read_text("utf-8").splitlines()
        # The files begin with a licence, whose lines are indented.
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
        # Some adjectives have a marker for their position in a sentence, as in `galore(ip)`.
        words = (word.partition("(")[0] for word in fields[4 : 4 + 2 * count : 2])
        lemmas = [SimpleNamespace(name=partial(str, word)) for word in words]
        return Synset(lemmas=lambda: lemmas)


class WordNet:
    """The part of a WordNet reader that METEOR needs; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self._parts = [PartOfSpeech(folder, name) for name in _SUFFIX_RULES]
        self.synsets = lru_cache(_CACHED_WORDS)(self._synsets)

    def _synsets(self, word: str) -> tuple[Synset, ...]:
        lower = word.lower()
        return tuple(synset for part in self._parts for synset in part.synsets(lower))


def wordnet() -> WordNet:
    """The WordNet that `evenmatch models get wordnet` installs, read once per process."""
    return _read_wordnet(find_package("wordnet"))


@cache
def _read_wordnet(folder: Path) -> WordNet:
    verify_package("wordnet", folder)
    return WordNet(folder)
