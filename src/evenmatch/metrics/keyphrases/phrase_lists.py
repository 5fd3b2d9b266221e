"""Phrase lists: split keyphrases, stem and clean them, and select present or absent ones.

`split_pair` makes the lists of one pair, and `select_phrases` applies the policies to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.scoring.inputs import likely_other_language
from evenmatch.similarity.strings import Phrase, unit_phrases
from evenmatch.types import NO_FLAGS, Pair, Units
from evenmatch.units.keyphrases import Phrases, variant_groups

PhraseSubset: TypeAlias = Literal["all", "present", "absent"]
PhrasePolicy: TypeAlias = Literal["drop", "wrong", "keep"]

INVALID_WORDS = frozenset({",", ".", "<unk>", "[unk]"})

_LANGUAGE_CHARACTERS = 400  # length of the sample from which the language is guessed


@dataclass(frozen=True, slots=True)
class PairPhrases:
    """The phrases of a candidate and of its references, and the stemmed words of the source."""

    candidate: Units
    references: tuple[Units, ...]
    source: str | None
    flags: frozenset[str]


def split_pair(pair: Pair, units: Phrases, most: int) -> PairPhrases:
    """Split the texts of a pair into phrases; candidate phrases beyond `most` are cut off."""
    texts = (pair.source,) if pair.source else (pair.candidate, *pair.references)
    split = units.resolve_tokens(*texts)
    candidate, *references = map(split, (pair.candidate, *pair.references))
    flags = NO_FLAGS
    if most and len(candidate.groups) > most:
        candidate = replace(candidate, groups=candidate.groups[:most])
        flags |= {"truncated"}
    if _is_other_language(pair.source or " ".join(pair.references)):
        flags |= {"not_english"}
    source = None if pair.source is None else _source_words(split, pair.source)
    return PairPhrases(candidate, tuple(references), source, flags)


# Cached, since the predictions of several systems for one document often follow each other.
@lru_cache(maxsize=64)
def _source_words(split: Phrases, source: str) -> str:
    return _join_words(split.tokenize(source))


@lru_cache(maxsize=64)
def _is_other_language(text: str) -> bool:
    return likely_other_language(text[:_LANGUAGE_CHARACTERS]) is not None


def select_phrases(
    lists: PairPhrases,
    row: int,
    which: PhraseSubset,
    duplicates: PhrasePolicy,
    reference_duplicates: PhrasePolicy,
    invalid: PhrasePolicy,
) -> PairPhrases:
    """Select the present phrases, the absent ones or all, and apply the policies to them.

    A phrase is present if its stemmed words, or those of one of its variants, occur consecutively
    in the source. The policy for invalid phrases applies to the candidate only: reference phrases
    count as correct.
    """
    if which != "all" and lists.source is None:
        raise InputError(
            f"row {row} has no source, but which='{which}' needs the document to find phrases in; "
            "give sources="
        )
    source, absent = lists.source or "", which == "absent"

    def select(units: Units, policy: PhrasePolicy) -> Units:
        if which != "all":
            present = [_join_words(p) in source for p in unit_phrases(units)]
            for variants in variant_groups(units):
                if any(present[i] for i in variants):
                    present[variants[0] : variants[-1] + 1] = [True] * len(variants)
            units = _apply_policy(units, (each is absent for each in present), "drop")
        first: dict[Phrase, int] = {}
        repeated = (first.setdefault(p, i) != i for i, p in enumerate(unit_phrases(units)))
        return _apply_policy(units, repeated, policy)

    candidate = select(lists.candidate, duplicates)
    broken = (not INVALID_WORDS.isdisjoint(phrase) for phrase in unit_phrases(candidate))
    return PairPhrases(
        _apply_policy(candidate, broken, invalid),
        tuple(select(units, reference_duplicates) for units in lists.references),
        lists.source,
        lists.flags,
    )


def _apply_policy(units: Units, concerned: Iterable[bool], policy: PhrasePolicy) -> Units:
    """Keep, drop or empty the phrases concerned; a phrase without words matches nothing."""
    if policy == "keep":
        return units
    groups = zip(units.groups, concerned, strict=True)
    if policy == "drop":
        return replace(units, groups=tuple(group for group, drop in groups if not drop))
    return replace(units, groups=tuple(() if empty else group for group, empty in groups))


def _join_words(words: Sequence[str]) -> str:
    # A space at both ends, so that only whole words are found.
    return f" {' '.join(words)} "
