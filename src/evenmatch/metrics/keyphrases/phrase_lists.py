"""Phrase lists: split keyphrases, stem and clean them, and select present or absent ones.

`split_pair` makes the lists of one pair, and `select_phrases` applies the policies to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.scoring.inputs import likely_other_language
from evenmatch.similarity.strings import Phrase, unit_phrases
from evenmatch.types import NO_FLAGS, Pair, Units
from evenmatch.units.keyphrases import Phrases

PhraseSubset: TypeAlias = Literal["all", "present", "absent"]
PhrasePolicy: TypeAlias = Literal["drop", "wrong", "keep"]

INVALID_WORDS = frozenset({",", ".", "<unk>"})

_LANGUAGE_CHARACTERS = 400  # length of the sample from which the language is guessed


@dataclass(frozen=True)
class PhraseCleaning:
    """How phrase lists are split and cleaned; `KeyphraseMetric` explains each setting."""

    units: Phrases
    duplicates: PhrasePolicy
    reference_duplicates: Literal["drop", "keep"]
    invalid: PhrasePolicy
    most: int


@dataclass(frozen=True, slots=True)
class PhraseList:
    """The phrases of one text, as units and as tuples of words."""

    units: Units
    phrases: tuple[Phrase, ...]

    def select(self, kept: Sequence[int]) -> PhraseList:
        """The phrases at these indexes."""
        if len(kept) == len(self.phrases):
            return self
        groups = tuple(self.units.groups[i] for i in kept)
        return PhraseList(replace(self.units, groups=groups), tuple(self.phrases[i] for i in kept))


@dataclass(frozen=True, slots=True)
class PairPhrases:
    """The phrases of a candidate and of its references, and the stemmed words of the source."""

    candidate: PhraseList
    references: tuple[PhraseList, ...]
    source: str | None
    flags: frozenset[str]


def split_pair(pair: Pair, cleaning: PhraseCleaning) -> PairPhrases:
    """Split the texts of a pair into phrases; candidate phrases beyond `most` are cut off."""
    texts = (pair.source,) if pair.source else (pair.candidate, *pair.references)
    split = cleaning.units.resolve_tokens(*texts)
    candidate, *references = (_phrase_list(split(t)) for t in (pair.candidate, *pair.references))
    flags = NO_FLAGS
    if cleaning.most and len(candidate.phrases) > cleaning.most:
        candidate = candidate.select(range(cleaning.most))
        flags |= {"truncated"}
    if _is_other_language(pair.source or " ".join(pair.references)):
        flags |= {"not_english"}
    source = None if pair.source is None else _source_words(split, pair.source)
    return PairPhrases(candidate, tuple(references), source, flags)


def _phrase_list(units: Units) -> PhraseList:
    return PhraseList(units, tuple(unit_phrases(units)))


# Cached, since the predictions of several systems for one document often follow each other.
@lru_cache(maxsize=64)
def _source_words(split: Phrases, source: str) -> str:
    return _join_words(split.tokenize(source))


@lru_cache(maxsize=64)
def _is_other_language(text: str) -> bool:
    return likely_other_language(text[:_LANGUAGE_CHARACTERS]) is not None


def select_phrases(
    lists: PairPhrases, which: PhraseSubset, cleaning: PhraseCleaning, row: int
) -> PairPhrases:
    """Select the present phrases, the absent ones or all, and apply the policies of `cleaning`.

    A phrase is present if its stemmed words occur consecutively in the source. The policy for
    invalid phrases applies to the candidate only: reference phrases count as correct.
    """
    if which != "all" and lists.source is None:
        raise InputError(
            f"row {row} has no source, but which='{which}' needs the document to find phrases in; "
            "give sources="
        )
    source = lists.source or ""
    candidate = _filter_by_presence(lists.candidate, source, which)
    candidate = _apply_policy(candidate, _duplicate_indexes(candidate.phrases), cleaning.duplicates)
    invalid = {i for i, p in enumerate(candidate.phrases) if not INVALID_WORDS.isdisjoint(p)}
    candidate = _apply_policy(candidate, invalid, cleaning.invalid)
    references = []
    for each in lists.references:
        own = _filter_by_presence(each, source, which)
        references.append(
            _apply_policy(own, _duplicate_indexes(own.phrases), cleaning.reference_duplicates)
        )
    return PairPhrases(candidate, tuple(references), lists.source, lists.flags)


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


def _apply_policy(listed: PhraseList, indexes: set[int], policy: str) -> PhraseList:
    """Keep, drop or empty the phrases at `indexes`; a phrase without words matches nothing."""
    if policy == "keep" or not indexes:
        return listed
    if policy == "drop":
        return listed.select([i for i in range(len(listed.phrases)) if i not in indexes])
    groups = tuple(() if i in indexes else group for i, group in enumerate(listed.units.groups))
    return _phrase_list(replace(listed.units, groups=groups))


def _join_words(words: Sequence[str]) -> str:
    # A space at both ends, so that only whole words are found.
    return f" {' '.join(words)} "
