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
_LOOKED_AT = 1000  # characters, to tell the language by


@dataclass(frozen=True)
class Cleaning:
    """What becomes of what is odd in a list; `KeyphraseMetric` explains each."""

    units: Phrases
    duplicates: Policy
    reference_duplicates: Literal["drop", "keep"]
    invalid: Policy
    most: int


@dataclass(frozen=True, slots=True)
class Lists:
    """The phrases of one pair: the candidate's, each reference's, and the document's words."""

    candidate: Units
    references: tuple[Units, ...]
    source: str | None
    flags: frozenset[str]


def cut(pair: Pair, cleaning: Cleaning) -> Lists:
    """A pair's lists as they come, but for candidate phrases beyond the most."""
    texts = (pair.source,) if pair.source else (pair.candidate, *pair.references)
    split = cleaning.units.settled(*texts)
    candidate = split(pair.candidate)
    flags = _flags(pair, candidate, cleaning.most)
    if "truncated" in flags:
        candidate = replace(candidate, groups=candidate.groups[: cleaning.most])
    references = tuple(split(reference) for reference in pair.references)
    source = None if pair.source is None else _source_words(split, pair.source)
    return Lists(candidate, references, source, flags)


# Several systems in a row write about one document.
@lru_cache(maxsize=64)
def _source_words(split: Phrases, source: str) -> str:
    return _joined(split.words_of(source))


def _flags(pair: Pair, candidate: Units, most: int) -> frozenset[str]:
    found = set()
    if most and len(candidate.groups) > most:
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
    candidate = _without(candidate, _repeated(phrases_of(candidate)), cleaning.duplicates)
    candidate = _without(candidate, _invalid(phrases_of(candidate)), cleaning.invalid)
    references = [_split(each, source, which) for each in lists.references]
    return Lists(
        candidate,
        tuple(
            _without(r, _repeated(phrases_of(r)), cleaning.reference_duplicates) for r in references
        ),
        lists.source,
        lists.flags,
    )


def _source(lists: Lists, which: Which, row: int) -> str:
    if which == "all":
        return ""
    if lists.source is None:
        raise InputError(
            f"row {row} has no source, and which phrases are {which} is told by the document; "
            "give sources="
        )
    return lists.source


def _split(units: Units, source: str, which: Which) -> Units:
    if which == "all":
        return units
    groups = [
        group
        for group, phrase in zip(units.groups, phrases_of(units), strict=True)
        if (_joined(phrase) in source) is (which == "present")
    ]
    return replace(units, groups=tuple(groups))


def _repeated(phrases: Sequence[Phrase]) -> list[bool]:
    seen: set[Phrase] = set()
    found = []
    for phrase in phrases:
        found.append(phrase in seen)
        seen.add(phrase)
    return found


def _invalid(phrases: Sequence[Phrase]) -> list[bool]:
    return [not INVALID.isdisjoint(phrase) for phrase in phrases]


def _without(units: Units, odd: Sequence[bool], policy: str) -> Units:
    """The units without the odd ones, or with those emptied: a wrong phrase is one of no word."""
    if policy == "keep" or not any(odd):
        return units
    emptied = [() if is_odd else group for is_odd, group in zip(odd, units.groups, strict=True)]
    kept = emptied if policy == "wrong" else [g for g, o in zip(emptied, odd, strict=True) if not o]
    return replace(units, groups=tuple(kept))


def _joined(words: Sequence[str]) -> str:
    # A space at both ends, so that only whole words are found.
    return f" {' '.join(words)} "
