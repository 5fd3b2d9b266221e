"""Lists of keyphrases ready to compare: cut, stemmed, cleaned, split into present and absent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.scoring.languages import likely_other_language
from evenmatch.similarity.strings import Phrase, phrases_of
from evenmatch.types import NO_FLAGS, Pair, Units
from evenmatch.units.phrases import Phrases

Which: TypeAlias = Literal["all", "present", "absent"]
Policy: TypeAlias = Literal["drop", "wrong", "keep"]

INVALID = frozenset({",", ".", "<unk>"})
_LOOKED_AT = 400  # characters, to tell the language by


@dataclass(frozen=True)
class Cleaning:
    """What becomes of what is odd in a list; `KeyphraseMetric` explains each."""

    units: Phrases
    duplicates: Policy
    reference_duplicates: Literal["drop", "keep"]
    invalid: Policy
    most: int


@dataclass(frozen=True, slots=True)
class Listed:
    """One side's units, and the words of each."""

    units: Units
    phrases: tuple[Phrase, ...]

    def at(self, kept: Sequence[int]) -> Listed:
        """Some of the phrases."""
        if len(kept) == len(self.phrases):
            return self
        groups = tuple(self.units.groups[i] for i in kept)
        return Listed(replace(self.units, groups=groups), tuple(self.phrases[i] for i in kept))


@dataclass(frozen=True, slots=True)
class Lists:
    """The phrases of one pair: the candidate's, each reference's, and the document's words."""

    candidate: Listed
    references: tuple[Listed, ...]
    source: str | None
    flags: frozenset[str]


def cut(pair: Pair, cleaning: Cleaning) -> Lists:
    """A pair's lists as they come, but for candidate phrases beyond the most."""
    texts = (pair.source,) if pair.source else (pair.candidate, *pair.references)
    split = cleaning.units.settled(*texts)
    candidate, *references = (_listed(split(t)) for t in (pair.candidate, *pair.references))
    flags = _flags(pair, len(candidate.phrases), cleaning.most)
    if "truncated" in flags:
        candidate = candidate.at(range(cleaning.most))
    source = None if pair.source is None else _source_words(split, pair.source)
    return Lists(candidate, tuple(references), source, flags)


def _listed(units: Units) -> Listed:
    return Listed(units, tuple(phrases_of(units)))


# Several systems in a row write about one document.
@lru_cache(maxsize=64)
def _source_words(split: Phrases, source: str) -> str:
    return _joined(split.words_of(source))


def _flags(pair: Pair, phrases: int, most: int) -> frozenset[str]:
    found = set()
    if most and phrases > most:
        found.add("truncated")
    if _is_other_language(pair.source or " ".join(pair.references)):
        found.add("not_english")
    return frozenset(found) if found else NO_FLAGS


@lru_cache(maxsize=64)
def _is_other_language(text: str) -> bool:
    return likely_other_language(text[:_LOOKED_AT]) is not None


def chosen(lists: Lists, which: Which, cleaning: Cleaning, row: int) -> Lists:
    """The present phrases, the absent ones or all of both sides, cleaned.

    Present is a phrase whose words stand in a row in the source. Invalid phrases are looked for
    among the candidate's only: what a reference says is right.
    """
    source = _source(lists, which, row)
    candidate = _split(lists.candidate, source, which)
    candidate = _without(candidate, _repeated(candidate.phrases), cleaning.duplicates)
    candidate = _without(candidate, _invalid(candidate.phrases), cleaning.invalid)
    references = []
    for each in lists.references:
        own = _split(each, source, which)
        references.append(_without(own, _repeated(own.phrases), cleaning.reference_duplicates))
    return Lists(candidate, tuple(references), lists.source, lists.flags)


def _source(lists: Lists, which: Which, row: int) -> str:
    if which == "all":
        return ""
    if lists.source is None:
        raise InputError(
            f"row {row} has no source, and which phrases are {which} is told by the document; "
            "give sources="
        )
    return lists.source


def _split(listed: Listed, source: str, which: Which) -> Listed:
    if which == "all":
        return listed
    wanted = which == "present"
    return listed.at([i for i, p in enumerate(listed.phrases) if (_joined(p) in source) is wanted])


def _repeated(phrases: Sequence[Phrase]) -> set[int]:
    first: dict[Phrase, int] = {}
    return {i for i, phrase in enumerate(phrases) if first.setdefault(phrase, i) != i}


def _invalid(phrases: Sequence[Phrase]) -> set[int]:
    return {i for i, phrase in enumerate(phrases) if not INVALID.isdisjoint(phrase)}


def _without(listed: Listed, odd: set[int], policy: str) -> Listed:
    """The phrases without the odd ones, or with those emptied: a wrong phrase has no word."""
    if policy == "keep" or not odd:
        return listed
    if policy == "drop":
        return listed.at([i for i in range(len(listed.phrases)) if i not in odd])
    groups = tuple(() if i in odd else group for i, group in enumerate(listed.units.groups))
    return _listed(replace(listed.units, groups=groups))


def _joined(words: Sequence[str]) -> str:
    # A space at both ends, so that only whole words are found.
    return f" {' '.join(words)} "
