"""Judgements of two outputs of one segment: which is better, and does a metric say so too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.arrays import Floats, Indexes, as_floats, as_pair

# What becomes of a pair that the metric ties; WMT has had all three.
Tied: TypeAlias = Literal["discordant", "neutral", "ignored"]


def preferences(human: ArrayLike, *, at_least: float = 25.0) -> tuple[Indexes, Indexes, Indexes]:
    """Relative ranks from ratings (systems, segments): better system, worse system, segment.

    Two outputs of a segment are ranked where their ratings differ by `at_least`, which must be
    above 0; 25 of 100 points is WMT's (DARR).

    >>> preferences([[90, 40], [60, 40], [50, 80]])
    (array([0, 0, 2, 2]), array([1, 2, 0, 1]), array([0, 0, 1, 1]))
    """
    ratings = as_floats(human, "human")
    if ratings.ndim != 2 or not at_least > 0:
        raise InputError(
            f"human has shape {ratings.shape} and ranks a difference of {at_least}; "
            "give systems × segments and a difference above 0"
        )
    difference = ratings[:, None] - ratings[None]
    segment, better, worse = np.nonzero(np.moveaxis(difference >= at_least, -1, 0))
    return better, worse, segment


def kendall_like(better: ArrayLike, worse: ArrayLike, *, tied: Tied = "discordant") -> float:
    """WMT's tau over relative ranks: concordant less discordant, over both.

    Takes a metric's scores of the outputs people found better and worse, side by side. Where the
    metric ties them, the pair counts against it (as in WMT20), as half a success (`neutral`), or
    not at all. NaN without pairs; pairs with a missing score are left out.

    >>> kendall_like([0.9, 0.8, 0.5, 0.7], [0.5, 0.6, 0.5, 0.8])
    0.0
    >>> kendall_like([0.9, 0.8, 0.5, 0.7], [0.5, 0.6, 0.5, 0.8], tied="neutral")
    0.25
    """
    surplus, pairs = surplus_and_pairs(better, worse, tied=tied).sum(0)
    return float(surplus / pairs) if pairs else float("nan")


def surplus_and_pairs(better: ArrayLike, worse: ArrayLike, *, tied: Tied = "discordant") -> Floats:
    """For each pair 1, 0 or -1 and whether it counts: rows whose totals give `kendall_like`.

    Summed by segment they are what `totals.score_interval` resamples.

    >>> surplus_and_pairs([0.9, 0.5], [0.5, 0.5], tied="ignored")
    array([[1., 1.],
           [0., 0.]])
    """
    if tied not in get_args(Tied):
        raise UnknownNameError(f"a tie cannot be {tied!r}; known: {', '.join(get_args(Tied))}")
    above, below = as_pair(better, worse)
    known = ~np.isnan(above)
    surplus = np.sign(np.where(known, above, 0.0) - np.where(known, below, 0.0))
    even = known & (surplus == 0)
    if tied == "discordant":
        surplus = np.where(even, -1.0, surplus)
    counts = known & ~even if tied == "ignored" else known
    return np.stack([surplus, counts.astype(np.float64)], axis=-1)


def agreeing_pairs(metric: ArrayLike, human: ArrayLike) -> tuple[int, int]:
    """How many pairs of systems a metric and people order alike, and how many there are.

    >>> agreeing_pairs([1, 2, 3], [1, 3, 2])
    (2, 3)
    """
    x, y = as_pair(metric, human)
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    one, other = np.triu_indices(len(x), 1)
    alike = np.sign(x[one] - x[other]) == np.sign(y[one] - y[other])
    return int(alike.sum()), len(one)


def pooled_accuracy(tasks: Sequence[tuple[ArrayLike, ArrayLike]]) -> float:
    """The share of system pairs ordered alike over several tasks, such as language pairs.

    Kocmi et al. (2021): every pair of one task counts the same; systems of two tasks are not
    compared. NaN without pairs.

    >>> pooled_accuracy([([1, 2, 3], [1, 3, 2]), ([5, 4], [2, 1])])
    0.75
    """
    counts = [agreeing_pairs(metric, human) for metric, human in tasks]
    pairs = sum(total for _, total in counts)
    return sum(alike for alike, _ in counts) / pairs if pairs else float("nan")
