"""Whether one system scores higher than another on the same segments, as sacrebleu asks it.

A corpus score is a function of totals over segments: a mean of their sum and count, BLEU of n-gram
matches. So segments come as rows of counts, a resample is a product of weights with them, and the
function turns totals (…, counts) into scores (…).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, as_floats, blocks
from evenmatch.stats.differences import Side, Tested, check_side
from evenmatch.stats.intervals import Interval, check_interval
from evenmatch.stats.resampling import drawn
from evenmatch.stats.swaps import p_value

TotalsScore: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much the first system scores higher, its interval, and the p-value of none."""

    value: float
    low: float
    high: float
    p: float


def mean_score(totals: Floats) -> Floats:
    """The mean, from the sum of scores and their number; 0 of nothing.

    >>> mean_score(np.array([3.0, 4.0])).item()
    0.75
    """
    number = totals[..., 1]
    return np.where(number > 0, totals[..., 0] / np.where(number > 0, number, 1.0), 0.0)


def score_interval(
    segments: ArrayLike,
    *,
    score: TotalsScore = mean_score,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """A system's score with its bootstrap interval over segments.

    Segments are one score each, or rows of counts with the `score` that their totals give.
    """
    check_interval("percentile", confidence)
    (counts,) = _counts([segments], score)
    value = score(counts.sum(0))
    draws = score(_resampled(counts, resamples, seed))
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(value), float(low), float(high))


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: TotalsScore = mean_score,
    side: Side = "two-sided",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """The difference of two systems on resampled segments (Koehn 2004).

    The p-value is the share of resamples that lie at least as far from the difference as 0 does.
    sacrebleu's looks at one tail of absolute differences and is about half of it: where nothing
    differs, that finds a difference at .05 in one case of eight (simulated, 100 segments).
    """
    check_side(side)
    check_interval("percentile", confidence)
    one, two = _counts([first, second], score)
    value = float(score(one.sum(0)) - score(two.sum(0)))
    draws = score(_resampled(one, resamples, seed)) - score(_resampled(two, resamples, seed))
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Difference(value, float(low), float(high), p_value(draws - value, value, side))


def approximate_randomisation(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: TotalsScore = mean_score,
    side: Side = "two-sided",
    resamples: int = 10_000,
    seed: int = 0,
) -> Tested:
    """The difference of two systems, tested by swapping their outputs (Riezler & Maxwell 2005).

    The same seed swaps the same segments as sacrebleu does.
    """
    check_side(side)
    one, two = _counts([first, second], score)
    value = float(score(one.sum(0)) - score(two.sum(0)))
    kept = np.random.default_rng(seed).integers(2, size=(resamples, len(one)), dtype=bool)
    both, other = (one + two).sum(0), two.sum(0)
    draws = []
    for some in blocks(resamples, len(one)):
        swapped = other + kept[some].astype(np.float64) @ (one - two)
        draws.append(score(swapped) - score(both - swapped))
    return Tested(value, p_value(np.concatenate(draws), value, side))


def _resampled(counts: Floats, resamples: int, seed: int) -> Floats:
    """Totals of each resample; the same segments are drawn for every system."""
    return drawn(len(counts), resamples, np.random.default_rng(seed)) @ counts


def _counts(systems: list[ArrayLike], score: TotalsScore) -> list[Floats]:
    """Rows of counts of the segments that every system has."""
    arrays = [as_floats(system, "scores") for system in systems]
    if len({a.shape for a in arrays}) > 1 or arrays[0].ndim not in (1, 2):
        raise InputError(
            f"systems have shapes {', '.join(str(a.shape) for a in arrays)}; "
            "give each the same segments, one score or one row of counts for each"
        )
    if arrays[0].ndim == 2 and arrays[0].shape[1] != 2 and score is mean_score:
        raise InputError(
            f"rows of {arrays[0].shape[1]} counts need a function that scores their totals; "
            "give score=, or rows of a sum and a number"
        )
    rows = [a if a.ndim == 2 else np.stack([a, np.ones_like(a)], axis=-1) for a in arrays]
    known = ~np.isnan(np.concatenate(rows, axis=-1)).any(-1)
    if not known.any():
        raise InputError("no segment has a score from every system; give at least one that has")
    return [row[known] for row in rows]
