"""Similarities of units by their words: exact, substring, token_f1, edit, and phrase.

`phrase`, the mean of `edit` and `token_f1`, is the phrase similarity of the FG score
(Luo et al., 2021).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from evenmatch.registry import register
from evenmatch.types import Array, Embedded, Units

Phrase: TypeAlias = tuple[str, ...]
_UNIT_BOUNDS = (0.0, 1.0)


@register("similarity", "exact")
@dataclass(frozen=True)
class Exact:
    """1 if two units have the same words in the same order, else 0."""

    bounds: ClassVar[tuple[float, float]] = _UNIT_BOUNDS

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s; units without words match nothing."""
        rows, cols = unit_phrases(x.units), unit_phrases(y.units)
        at: dict[Phrase, list[int]] = defaultdict(list)
        for j, q in enumerate(cols):
            at[q].append(j)
        found = np.zeros((len(rows), len(cols)))
        for i, p in enumerate(rows):
            found[i, at[p] if p else []] = 1.0
        return found


@register("similarity", "substring")
@dataclass(frozen=True)
class Substring:
    """1 if the text of the first unit's words occurs in that of the second's, else 0.

    Characters are compared, as in published α-NDCG scores: 'net' occurs in 'neural network'.
    """

    bounds: ClassVar[tuple[float, float]] = _UNIT_BOUNDS

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s; units without words match nothing."""
        rows, cols = x.units.items, y.units.items
        found = [[float(p in q) if p else 0.0 for q in cols] for p in rows]
        return np.array(found).reshape(len(rows), len(cols))


@register("similarity", "token_f1")
@dataclass(frozen=True)
class TokenF1:
    """F1 of the words that two units share, in any order."""

    bounds: ClassVar[tuple[float, float]] = _UNIT_BOUNDS

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return _compare_all(x, y, token_f1)


@register("similarity", "edit")
@dataclass(frozen=True)
class Edit:
    """1 - word edit distance / length of the longer unit."""

    bounds: ClassVar[tuple[float, float]] = _UNIT_BOUNDS

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return _compare_all(x, y, edit_similarity)


@register("similarity", "phrase")
@dataclass(frozen=True)
class PhraseStringSimilarity:
    """Mean of `edit` and `token_f1`, as in the FG score: compares words and their order."""

    bounds: ClassVar[tuple[float, float]] = _UNIT_BOUNDS

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return _compare_all(x, y, _phrase_similarity)


def edit_similarity(p: Phrase, q: Phrase) -> float:
    """1 - word edit distance / length of the longer phrase (Luo et al., 2021, eq. 6).

    >>> edit_similarity(("natural", "language", "processing"), ("natural", "language"))
    0.6666666666666667
    """
    longer = max(len(p), len(q))
    return 1 - _edit_distance(p, q) / longer if longer else 0.0


def token_f1(p: Phrase, q: Phrase) -> float:
    """F1 of the words that two phrases share; a repeated word counts as often as both have it.

    >>> token_f1(("language", "natural"), ("natural", "language", "language"))
    0.8
    """
    shared = (Counter(p) & Counter(q)).total()
    return 2 * shared / (len(p) + len(q)) if shared else 0.0


def unit_phrases(units: Units) -> list[Phrase]:
    """Return the words of each unit."""
    return [tuple(units.words[i] for i in group) for group in units.groups]


def _phrase_similarity(p: Phrase, q: Phrase) -> float:
    return (edit_similarity(p, q) + token_f1(p, q)) / 2


def _edit_distance(p: Phrase, q: Phrase) -> int:
    """Return the number of words to insert, delete or replace to turn one phrase into the other."""
    before = list(range(len(q) + 1))
    for i, word in enumerate(p, 1):
        row = [i]
        for j, other in enumerate(q, 1):
            row.append(min(before[j - 1] + (word != other), before[j] + 1, row[-1] + 1))
        before = row
    return before[-1]


def _compare_all(x: Embedded, y: Embedded, compare: Callable[[Phrase, Phrase], float]) -> Array:
    """Compare every pair of phrases; equal phrases give 1, and those without a common word 0."""
    rows, cols = unit_phrases(x.units), unit_phrases(y.units)
    found = np.zeros((len(rows), len(cols)))
    sets = [set(q) for q in cols]
    for i, p in enumerate(rows):
        for j, q in enumerate(cols):
            # Most phrases of a document share no word; this test takes a tenth of a comparison.
            if not sets[j].isdisjoint(p):
                found[i, j] = 1.0 if p == q else compare(p, q)
    return found
