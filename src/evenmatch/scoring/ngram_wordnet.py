"""Synonyms from WordNet's own files, for METEOR.

nltk's reader takes seconds to load, wants its folder on a path that the whole process shares, and
must not be used by two threads at once. METEOR asks only which words stand in a synset with a
given one, so that is all that is read here, and it is what nltk's reader would answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from evenmatch.vectors.checkpoints import find_embedded, verify_embedded

# WordNet's rules for taking an inflected form back to one it lists (its manual page "morphy").
_ENDINGS: Mapping[str, tuple[tuple[str, str], ...]] = {
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
_WORDS_KEPT = 1 << 16


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


class Part:
    """WordNet's nouns, verbs, adjectives or adverbs."""

    def __init__(self, folder: Path, name: str) -> None:
        self._endings = _ENDINGS[name]
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
        self._parts = [Part(folder, name) for name in _ENDINGS]
        self.synsets = lru_cache(_WORDS_KEPT)(self._synsets)

    def _synsets(self, word: str) -> tuple[Synset, ...]:
        lower = word.lower()
        return tuple(synset for part in self._parts for synset in part.synsets(lower))


def wordnet() -> WordNet:
    """The WordNet that `evenmatch models get wordnet` brings, read once a process."""
    return _read(find_embedded("wordnet"))


@cache
def _read(folder: Path) -> WordNet:
    verify_embedded("wordnet", folder)
    return WordNet(folder)
