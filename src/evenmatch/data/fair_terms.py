"""Words for groups of people that answer each other: ours, and the readers of public lists."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evenmatch.data.catalogue import find
from evenmatch.data.tabular import records
from evenmatch.errors import InputError, UnknownNameError

PUBLIC = ("winobias", "bias-words")


@dataclass(frozen=True, slots=True)
class Term:
    """A word of one group, the word that answers it, and one that says neither."""

    one: str
    other: str
    neutral: str = ""
    name: bool = False  # a given name, which is known by its capital


@cache
def own_terms(attribute: str = "gender") -> tuple[Term, ...]:
    """The terms written for evenmatch.

    >>> own_terms("gender")[0]
    Term(one='he', other='she', neutral='the person', name=False)
    """
    text = (files("evenmatch.data") / "fair" / "terms.toml").read_text("utf-8")
    every: dict[str, Any] = tomllib.loads(text)
    if attribute not in every:
        raise UnknownNameError(f"there are no terms about {attribute!r}; known: {', '.join(every)}")
    table = every[attribute]
    words = [Term(*row) for row in table["terms"]]
    names = [
        Term(one, other, table["any_name"], name=True) for one, other in table.get("names", ())
    ]
    return (*words, *names)


def read_terms(data: str, attribute: str = "gender") -> tuple[Term, ...]:
    """The terms of a public list, which have no neutral words: 'winobias' or 'bias-words'.

    WinoBias lists pairs in both directions and gender only; bias-words has gender, race and
    religion, where several words may answer each other: each is paired with the next.
    """
    if data == "winobias":
        if attribute != "gender":
            raise InputError(f"winobias has terms about gender only, not {attribute!r}")
        rows = records(str(find(data) / "gender_term_pairs.tsv"))
        return _once((r["male_or_first"], r["female_or_second"]) for _, r in rows)
    if data == "bias-words":
        lists = json.loads((find(data) / "bias_attribute_words.json").read_text("utf-8"))
        if attribute not in lists:
            raise UnknownNameError(f"bias-words has no {attribute!r}; it has: {', '.join(lists)}")
        return _once((row[i - 1], row[i]) for row in lists[attribute] for i in range(1, len(row)))
    raise UnknownNameError(f"no list of terms is called {data!r}; known: {', '.join(PUBLIC)}")


def _once(pairs: Any) -> tuple[Term, ...]:
    """Terms without those that are another's other way round."""
    found: dict[frozenset[str], Term] = {}
    for one, other in pairs:
        found.setdefault(frozenset((one, other)), Term(one, other))
    return tuple(found.values())


def joined(lists: Sequence[Sequence[Term]]) -> tuple[Term, ...]:
    """Several lists as one; what comes first is taken first."""
    return tuple(dict.fromkeys(term for each in lists for term in each))
