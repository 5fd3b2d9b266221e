"""Lists of keyphrases ready to compare: cut, stemmed, cleaned, split into present and absent.

What is odd about two lists of phrases: a side without any, or nothing in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.scoring.languages import likely_other_language
from evenmatch.similarity.strings import Phrase, unit_phrases
from evenmatch.types import NO_FLAGS, Embedded, Pair, Units
from evenmatch.units.keyphrases import Phrases

PhraseSubset: TypeAlias = Literal["all", "present", "absent"]


PhrasePolicy: TypeAlias = Literal["drop", "wrong", "keep"]


INVALID_WORDS = frozenset({",", ".", "<unk>"})


_LANGUAGE_CHARACTERS = 400  # characters, to tell the language by


@dataclass(frozen=True)
class PhraseCleaning:
    """What becomes of what is odd in a list; `KeyphraseMetric` explains each."""

    units: Phrases
    duplicates: PhrasePolicy
    reference_duplicates: Literal["drop", "keep"]
    invalid: PhrasePolicy
    most: int


@dataclass(frozen=True, slots=True)
class PhraseList:
    """One side's units, and the words of each."""

    units: Units
    phrases: tuple[Phrase, ...]

    def select(self, kept: Sequence[int]) -> PhraseList:
        """Some of the phrases."""
        if len(kept) == len(self.phrases):
            return self
        groups = tuple(self.units.groups[i] for i in kept)
        return PhraseList(replace(self.units, groups=groups), tuple(self.phrases[i] for i in kept))


@dataclass(frozen=True, slots=True)
class PairPhrases:
    """The phrases of one pair: the candidate's, each reference's, and the document's words."""

    candidate: PhraseList
    references: tuple[PhraseList, ...]
    source: str | None
    flags: frozenset[str]


def split_pair(pair: Pair, cleaning: PhraseCleaning) -> PairPhrases:
    """A pair's lists as they come, but for candidate phrases beyond the most."""
    texts = (pair.source,) if pair.source else (pair.candidate, *pair.references)
    split = cleaning.units.resolve_tokens(*texts)
    candidate, *references = (_phrase_list(split(t)) for t in (pair.candidate, *pair.references))
    flags = _pair_flags(pair, len(candidate.phrases), cleaning.most)
    if "truncated" in flags:
        candidate = candidate.select(range(cleaning.most))
    source = None if pair.source is None else _source_words(split, pair.source)
    return PairPhrases(candidate, tuple(references), source, flags)


def _phrase_list(units: Units) -> PhraseList:
    return PhraseList(units, tuple(unit_phrases(units)))


# Several systems in a row write about one document.
@lru_cache(maxsize=64)
def _source_words(split: Phrases, source: str) -> str:
    return _join_words(split.tokenize(source))


def _pair_flags(pair: Pair, phrases: int, most: int) -> frozenset[str]:
    found = set()
    if most and phrases > most:
        found.add("truncated")
    if _is_other_language(pair.source or " ".join(pair.references)):
        found.add("not_english")
    return frozenset(found) if found else NO_FLAGS


@lru_cache(maxsize=64)
def _is_other_language(text: str) -> bool:
    return likely_other_language(text[:_LANGUAGE_CHARACTERS]) is not None


def select_phrases(
    lists: PairPhrases, which: PhraseSubset, cleaning: PhraseCleaning, row: int
) -> PairPhrases:
    """The present phrases, the absent ones or all of both sides, cleaned.

    Present is a phrase whose words stand in a row in the source. Invalid phrases are looked for
    among the candidate's only: what a reference says is right.
    """
    source = _require_source(lists, which, row)
    candidate = _filter_by_presence(lists.candidate, source, which)
    candidate = _apply_policy(candidate, _duplicate_indexes(candidate.phrases), cleaning.duplicates)
    candidate = _apply_policy(candidate, _invalid_indexes(candidate.phrases), cleaning.invalid)
    references = []
    for each in lists.references:
        own = _filter_by_presence(each, source, which)
        references.append(
            _apply_policy(own, _duplicate_indexes(own.phrases), cleaning.reference_duplicates)
        )
    return PairPhrases(candidate, tuple(references), lists.source, lists.flags)


def _require_source(lists: PairPhrases, which: PhraseSubset, row: int) -> str:
    if which == "all":
        return ""
    if lists.source is None:
        raise InputError(
            f"row {row} has no source, and which phrases are {which} is told by the document; "
            "give sources="
        )
    return lists.source


def _filter_by_presence(listed: PhraseList, source: str, which: PhraseSubset) -> PhraseList:
    if which == "all":
        return listed
    wanted = which == "present"
    return listed.select(
        [i for i, p in enumerate(listed.phrases) if (_join_words(p) in source) is wanted]
    )


def _duplicate_indexes(phrases: Sequence[Phrase]) -> set[int]:
    first: dict[Phrase, int] = {}
    return {i for i, phrase in enumerate(phrases) if first.setdefault(phrase, i) != i}


def _invalid_indexes(phrases: Sequence[Phrase]) -> set[int]:
    return {i for i, phrase in enumerate(phrases) if not INVALID_WORDS.isdisjoint(phrase)}


def _apply_policy(listed: PhraseList, odd: set[int], policy: str) -> PhraseList:
    """The phrases without the odd ones, or with those emptied: a wrong phrase has no word."""
    if policy == "keep" or not odd:
        return listed
    if policy == "drop":
        return listed.select([i for i in range(len(listed.phrases)) if i not in odd])
    groups = tuple(() if i in odd else group for i, group in enumerate(listed.units.groups))
    return _phrase_list(replace(listed.units, groups=groups))


def _join_words(words: Sequence[str]) -> str:
    # A space at both ends, so that only whole words are found.
    return f" {' '.join(words)} "


def empty_list_flags(x: Embedded, y: Embedded) -> frozenset[str]:
    """Which sides have no phrase."""
    sides = {"empty_candidate": x, "empty_reference": y}
    return frozenset(flag for flag, side in sides.items() if not len(side.weights))


def score_flags(value: float, x: Embedded, y: Embedded) -> frozenset[str]:
    """The flags of a score: those of its sides, empty sides, and no match where there is none."""
    found = empty_list_flags(x, y) | x.flags | y.flags
    return found or (NO_FLAGS if value else frozenset({"no_match"}))
