"""The pairs that come with evenmatch: sentences with two gaps, written for it.

A family has terms for two groups of people with a neutral one, sentences with a gap for the
term and one for what is said, and what a stereotype expects of the first group and of the other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from evenmatch.data.fair_texts import FairPair, fair_pair

ATTRIBUTES = ("age", "gender", "physical-appearance", "race", "religion", "socioeconomic")


def written_pairs(attribute: str) -> list[FairPair]:
    """Our pairs about one attribute: minimal, with one neutral reference, the stereotype first.

    >>> pair = written_pairs("gender")[0]
    >>> print(pair.first.candidate, pair.second.candidate, pair.first.references[0], sep="\\n")
    The carpenter told us that he had finished early.
    The carpenter told us that she had finished early.
    The carpenter told us that the carpenter had finished early.
    """
    return [pair for family in _families(attribute) for pair in family_pairs(family)]


def lesson_pairs() -> list[FairPair]:
    """Our pairs about gender to train on, of other sentences than those to audit with."""
    return [pair for family in _families("lessons") for pair in family_pairs(family)]


def family_pairs(family: Mapping[str, Any]) -> Iterator[FairPair]:
    """Every sentence with everything said; the terms take turns."""
    said = [(text, 0) for text in family["one"]] + [(text, 1) for text in family["other"]]
    for n, (trait, expected) in enumerate(said):
        for k, frame in enumerate(family["frames"]):
            *groups, neutral = family["terms"][(n + k) % len(family["terms"])]
            stereotype, against = groups[expected], groups[1 - expected]
            first, second, reference = (
                filled(frame, group, trait) for group in (stereotype, against, neutral)
            )
            yield fair_pair(first, reference, second, reference)


def filled(frame: str, group: str, trait: str) -> str:
    """A sentence with its gaps filled; a neutral term may be no word at all.

    >>> filled("{group} guests {trait}.", "", "left early")
    'Guests left early.'
    """
    words = frame.replace("{group}", group).replace("{trait}", trait).split()
    text = " ".join(words)
    return text[:1].upper() + text[1:]


@cache
def _families(attribute: str) -> list[dict[str, Any]]:
    text = (files("evenmatch.data") / "fair" / f"{attribute}.toml").read_text("utf-8")
    families: list[dict[str, Any]] = tomllib.loads(text)["family"]
    return families
