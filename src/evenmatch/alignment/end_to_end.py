"""Matrices laid end to end, for compiled loops that take one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.alignment.threads import spread
from evenmatch.types import Alignment, Array, Problem

_MOST_CELLS = 1 << 16  # laid out at a time


@dataclass(frozen=True, slots=True, eq=False)
class Lying:
    """The cells of many matrices in one row, each matrix with its long side down.

    `sizes` has the units of its long and of its short side for each.
    """

    cells: Array
    sizes: Array


# The shares of the long side's units, of the short side's units, and the steps taken by each.
Solved = tuple[Array, Array, Sequence[int]]
Loop = Callable[[Lying], Solved]


def solve_end_to_end(problems: Sequence[Problem], loop: Loop) -> Iterator[Alignment]:
    """One inexact alignment per problem, none of them empty, in order."""
    portions = list(_portions(problems))
    yield from _cut_up(portions, spread(loop, map(_laid, portions), len(portions)))


def _portions(problems: Sequence[Problem]) -> Iterator[list[Array]]:
    some: list[Array] = []
    count = 0
    for problem in problems:
        count += problem.similarity.size
        if some and count > _MOST_CELLS:
            yield some
            some, count = [], problem.similarity.size
        some.append(problem.similarity)
    if some:
        yield some


def _laid(similarities: Sequence[Array]) -> Lying:
    upright = [s.T if s.shape[0] < s.shape[1] else s for s in similarities]
    cells = np.concatenate([s.ravel() for s in upright], dtype=np.float64)
    return Lying(cells, np.array([s.shape for s in upright]))


def _cut_up(portions: Sequence[list[Array]], solved: Iterable[Solved]) -> Iterator[Alignment]:
    for some, (by_long, by_short, steps) in zip(portions, solved, strict=True):
        stop = 0
        for (m, n), own in zip((s.shape for s in some), steps, strict=True):
            start, stop = stop, stop + m * n
            longs, shorts = by_long[start:stop], by_short[start:stop]
            if m < n:
                rows, cols = shorts.reshape(n, m).T, longs.reshape(n, m).T
            else:
                rows, cols = longs.reshape(m, n), shorts.reshape(m, n)
            yield Alignment(rows, cols, exact=False, steps=own)
