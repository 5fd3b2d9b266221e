"""Whether one system scores higher than another on the same segments, as sacrebleu asks it.

A corpus score is a function of totals over segments: a mean of their sum and count, BLEU of n-gram
matches. So segments come as rows of counts, a resample is a product of weights with them, and the
function turns totals (…, counts) into scores (…).

Williams' test: whether one metric correlates with people better than another.

What difference an experiment with so few runs can see.

Intervals and paired tests of many scores at once: every draw of documents serves them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.bootstrap import Interval, bootstrap_counts, check_interval
from evenmatch.stats.levels import correlation, mean_over_segments
from evenmatch.stats.p_values import Alternative, check_alternative, p_value
from evenmatch.stats.panel import Floats, Panel, as_floats, blocks
from evenmatch.types import Array

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
    (counts,) = _segment_counts([segments], score)
    value = score(counts.sum(0))
    draws = score(_bootstrap_totals(counts, resamples, seed))
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(value), float(low), float(high))


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: TotalsScore = mean_score,
    side: Alternative = "two-sided",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """The difference of two systems on resampled segments (Koehn 2004).

    The p-value is the share of resamples that lie at least as far from the difference as 0 does.
    sacrebleu's looks at one tail of absolute differences and is about half of it: where nothing
    differs, that finds a difference at .05 in one case of eight (simulated, 100 segments).
    """
    check_alternative(side)
    check_interval("percentile", confidence)
    one, two = _segment_counts([first, second], score)
    value = float(score(one.sum(0)) - score(two.sum(0)))
    draws = score(_bootstrap_totals(one, resamples, seed)) - score(
        _bootstrap_totals(two, resamples, seed)
    )
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Difference(value, float(low), float(high), p_value(draws - value, value, side))


def approximate_randomisation(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: TotalsScore = mean_score,
    side: Alternative = "two-sided",
    resamples: int = 10_000,
    seed: int = 0,
) -> SignificanceResult:
    """The difference of two systems, tested by swapping their outputs (Riezler & Maxwell 2005).

    The same seed swaps the same segments as sacrebleu does.
    """
    check_alternative(side)
    one, two = _segment_counts([first, second], score)
    value = float(score(one.sum(0)) - score(two.sum(0)))
    kept = np.random.default_rng(seed).integers(2, size=(resamples, len(one)), dtype=bool)
    both, other = (one + two).sum(0), two.sum(0)
    draws = []
    for some in blocks(resamples, len(one)):
        swapped = other + kept[some].astype(np.float64) @ (one - two)
        draws.append(score(swapped) - score(both - swapped))
    return SignificanceResult(value, p_value(np.concatenate(draws), value, side))


def _bootstrap_totals(counts: Floats, resamples: int, seed: int) -> Floats:
    """Totals of each resample; the same segments are drawn for every system."""
    return bootstrap_counts(len(counts), resamples, np.random.default_rng(seed)) @ counts


def _segment_counts(systems: list[ArrayLike], score: TotalsScore) -> list[Floats]:
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


@dataclass(frozen=True, slots=True)
class SignificanceResult:
    """A test's statistic and its p-value."""

    statistic: float
    p: float


def williams_test(
    first: float, second: float, between: float, *, n: int, side: Alternative = "greater"
) -> SignificanceResult:
    """Williams' test of two Pearson correlations with the same people (t, n - 3 degrees).

    `first` and `second` are two metrics' correlations with people, `between` that of the metrics
    with each other, `n` how many systems they are over; `greater` asks whether the first is the
    higher one. NaN where a correlation is NaN. Williams (1959), as in Graham & Baldwin (2014).

    >>> williams_test(0.3, 0.4, 0.5, n=100, side="two-sided").p
    0.28426904700319966
    """
    from scipy.stats import t as student

    check_alternative(side)
    if n < 4:
        raise InputError(f"Williams' test over {n} systems; it needs at least 4")
    unexplained = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    # the determinant of three correlations is never negative but by rounding
    spread = 2 * max(unexplained, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    scale = float(np.sqrt((n - 1) * (1 + between) / spread)) if spread else np.inf
    statistic = (first - second) * scale if first != second else 0.0
    above = float(student.sf(statistic, n - 3))
    return SignificanceResult(statistic, above if side == "greater" else 2 * min(above, 1 - above))


def williams_matrix(panel: Panel, *, side: Alternative = "greater") -> Floats:
    """Williams' p-value for every two metrics at the system level (row better than column).

    Over the systems that all metrics and people have scores for; the diagonal is NaN.
    """
    every = np.ones((1, panel.segments))
    scores = np.concatenate(
        [mean_over_segments(panel.metrics, every)[0], mean_over_segments(panel.human, every)]
    )
    scores = scores[:, ~np.isnan(scores).any(0)]
    metrics, human = scores[:-1], scores[-1]
    agreement = correlation(metrics, human, "pearson")
    between = correlation(metrics[:, None], metrics[None], "pearson")
    p = np.full((len(metrics), len(metrics)), np.nan)
    for a, b in zip(*np.nonzero(~np.eye(len(metrics), dtype=bool)), strict=True):
        test = williams_test(
            agreement[a], agreement[b], between[a, b], n=scores.shape[1], side=side
        )
        p[a, b] = test.p
    return p


def minimum_detectable_difference(
    spread: float, pairs: int, *, power: float = 0.8, level: float = 0.05
) -> float:
    """The true difference that a paired t-test finds with that chance, given the differences' sd.

    >>> round(minimum_detectable_difference(1.0, 3), 2)
    3.26
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, norm, t

    free = pairs - 1
    # The distribution of t as a mean over that of the spread: scipy's own fails at large shifts.
    spreads = np.sqrt(chi2.ppf((np.arange(2000) + 0.5) / 2000, free) / free)
    bounds = t.ppf(1 - level / 2, free) * spreads

    def found(size: float) -> float:
        shift = size * math.sqrt(pairs)
        return float((norm.sf(bounds - shift) + norm.cdf(-bounds - shift)).mean()) - power

    return spread * float(brentq(found, 0.0, 50.0))


def paired_t_test(differences: Sequence[float]) -> float:
    """The two-sided p-value of no mean difference; 1 where it cannot be asked.

    >>> round(paired_t_test([0.4, 0.5, 0.6]), 4)
    0.0131
    """
    from scipy.stats import t

    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    if not spread:
        return 1.0
    size = float(np.mean(differences)) / spread * math.sqrt(len(differences))
    return float(2 * t.sf(abs(size), len(differences) - 1))


@dataclass(frozen=True, slots=True, eq=False)
class ResampledScore:
    """One score of many: its value, on resampled documents, and what it rests on."""

    value: float
    resamples: Floats
    total: Floats
    swapped_sums: Floats  # sums over the documents that each trial swaps
    score: Callable[[Array], Array]


def resample_scores(
    counts: Mapping[Any, Array],
    scores: Mapping[Any, Callable[[Array], Array]],
    *,
    resamples: int,
    trials: int,
    seed: int,
) -> dict[Any, ResampledScore]:
    """Every score with its resamples, and with its share of what `trials` swaps would move."""
    stack = np.concatenate([*counts.values()], axis=1)
    again = _weighted_sums(stack, resamples, seed, bootstrap_counts)
    moved = _weighted_sums(stack, trials, seed, _swap_weights)
    found, start = {}, 0
    for key, own in counts.items():
        part = slice(start, start + own.shape[1])
        start = part.stop
        total = own.sum(0)
        found[key] = ResampledScore(
            float(scores[key](total)),
            scores[key](again[:, part]),
            total,
            moved[:, part],
            scores[key],
        )
    return found


def _weighted_sums(
    stack: Floats, times: int, seed: int, weights: Callable[[int, int, np.random.Generator], Floats]
) -> Floats:
    """Sums of the rows under random weights, so many times."""
    rng = np.random.default_rng(seed)
    sums = np.empty((times, stack.shape[1]))
    for some in blocks(times, len(stack)):
        sums[some] = weights(len(stack), some.stop - some.start, rng) @ stack
    return sums


def _swap_weights(count: int, times: int, rng: np.random.Generator) -> Floats:
    return rng.integers(2, size=(times, count), dtype=np.uint8).astype(np.float64)


def percentile_bounds(draws: Floats, confidence: float) -> tuple[float, float]:
    """The bounds that hold so much of the draws."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_p_value(one: ResampledScore, two: ResampledScore) -> float:
    """The p-value of no difference: resamples as far from the difference as 0 is (Koehn 2004)."""
    value = one.value - two.value
    return p_value(one.resamples - two.resamples - value, value, "two-sided")


def randomisation_p_value(one: ResampledScore, two: ResampledScore) -> float:
    """The p-value of no difference, by swapping outputs (Riezler & Maxwell 2005)."""
    return p_value(swapped_differences(one, two), one.value - two.value, "two-sided")


def swapped_differences(one: ResampledScore, two: ResampledScore) -> Floats:
    """What the difference would be, had the outputs been swapped as each trial says."""
    swapped = two.total + one.swapped_sums - two.swapped_sums
    found: Floats = one.score(swapped) - two.score(one.total + two.total - swapped)
    return found


def mean_of_seeds(several: Sequence[ResampledScore]) -> tuple[float, Floats]:
    """The mean value of scores, and of their resamples, which saw the same documents."""
    return (
        float(np.mean([each.value for each in several])),
        np.mean([each.resamples for each in several], axis=0),
    )
