"""Paired significance tests: two systems on the same segments, two metrics, or two sets of runs.

A corpus score is a function of totals over segments: a mean of a sum and a count, BLEU of n-gram
counts. Segments are therefore rows of counts, a resample is a product of weights with these rows,
and a score function maps totals (…, counts) to scores (…).

- `paired_bootstrap`, `approximate_randomisation`, `score_interval`: one or two systems, as in
  sacrebleu.
- `resample_scores` and the functions after it: intervals and paired tests of many scores, all from
  the same resamples of documents.
- `williams_test`, `williams_matrix`: two metrics' correlations with the same human ratings.
- `paired_t_test`, `minimum_detectable_difference`: few runs of an experiment.
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
class Resampling:
    """Settings of the bootstrap and of approximate randomisation (`trials` swaps)."""

    confidence: float
    resamples: int
    trials: int
    seed: int

    def __post_init__(self) -> None:
        for what, count in (("resamples", self.resamples), ("trials", self.trials)):
            if type(count) is not int or count < 1:
                raise InputError(f"{what} must be an integer of at least 1, got {count!r}")


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two systems' scores (first - second), its interval and its p-value."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class SignificanceResult:
    """Statistic and p-value of a significance test."""

    statistic: float
    p: float


def mean_score(totals: Floats) -> Floats:
    """Compute the mean from totals (sum of scores, number of scores); 0 without scores.

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
    """Compute a system's score with its bootstrap interval over segments.

    `segments` holds one score per segment, or rows of counts; `score` then maps totals to a score.
    """
    check_interval("percentile", confidence)
    (counts,) = _segment_counts([segments], score)
    value = score(counts.sum(0))
    draws = score(_bootstrap_totals(counts, resamples, seed))
    return Interval(float(value), *percentile_bounds(draws, confidence))


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
    """Test the difference of two systems on resampled segments (Koehn 2004).

    The p-value is the share of resampled differences that are at least as far from the observed
    difference as 0 is. sacrebleu's p-value uses one tail of absolute differences and is about half
    as large: with equal systems it is below .05 in one case of eight (simulated, 100 segments).
    """
    check_alternative(side)
    check_interval("percentile", confidence)
    one, two = _segment_counts([first, second], score)
    value = float(score(one.sum(0)) - score(two.sum(0)))
    draws = score(_bootstrap_totals(one, resamples, seed)) - score(
        _bootstrap_totals(two, resamples, seed)
    )
    low, high = percentile_bounds(draws, confidence)
    return Difference(value, low, high, p_value(draws - value, value, side))


def approximate_randomisation(
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: TotalsScore = mean_score,
    side: Alternative = "two-sided",
    resamples: int = 10_000,
    seed: int = 0,
) -> SignificanceResult:
    """Test the difference of two systems by swapping their outputs (Riezler & Maxwell 2005).

    With the same seed, sacrebleu swaps the same segments.
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


@dataclass(frozen=True, slots=True, eq=False)
class ResampledScore:
    """A corpus score with its resampled values and the totals that paired tests need."""

    value: float
    resamples: Floats
    total: Floats
    swapped_sums: Floats  # totals over the documents that each trial swaps
    score: Callable[[Array], Array]


def resample_scores(
    counts: Mapping[Any, Array],
    scores: Mapping[Any, Callable[[Array], Array]],
    *,
    resamples: int,
    trials: int,
    seed: int,
) -> dict[Any, ResampledScore]:
    """Resample many scores together: the same documents are drawn and swapped for all of them.

    `counts` holds rows of counts (documents, counts) by key, and `scores` maps their totals to a
    score.
    """
    stack = np.concatenate([*counts.values()], axis=1)
    resampled_sums = _weighted_sums(stack, resamples, seed, bootstrap_counts)
    swapped_sums = _weighted_sums(stack, trials, seed, _swap_weights)
    results, start = {}, 0
    for key, rows in counts.items():
        columns = slice(start, start + rows.shape[1])
        start = columns.stop
        total = rows.sum(0)
        results[key] = ResampledScore(
            float(scores[key](total)),
            scores[key](resampled_sums[:, columns]),
            total,
            swapped_sums[:, columns],
            scores[key],
        )
    return results


def percentile_bounds(draws: Floats, confidence: float) -> tuple[float, float]:
    """Return the bounds of the central interval that holds a share `confidence` of the draws."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_p_value(one: ResampledScore, two: ResampledScore) -> float:
    """Compute the p-value of two scores' difference by the paired bootstrap (Koehn 2004)."""
    value = one.value - two.value
    return p_value(one.resamples - two.resamples - value, value, "two-sided")


def randomisation_p_value(one: ResampledScore, two: ResampledScore) -> float:
    """Compute the p-value of two scores' difference by swaps (Riezler & Maxwell 2005)."""
    return p_value(swapped_differences(one, two), one.value - two.value, "two-sided")


def swapped_differences(one: ResampledScore, two: ResampledScore) -> Floats:
    """Compute the difference of two scores after each trial's swaps of outputs."""
    swapped = two.total + one.swapped_sums - two.swapped_sums
    differences: Floats = one.score(swapped) - two.score(one.total + two.total - swapped)
    return differences


def mean_of_seeds(several: Sequence[ResampledScore]) -> tuple[float, Floats]:
    """Average the values of several scores, and their resamples, which share documents."""
    return (
        float(np.mean([each.value for each in several])),
        np.mean([each.resamples for each in several], axis=0),
    )


def williams_test(
    first: float, second: float, between: float, *, n: int, side: Alternative = "greater"
) -> SignificanceResult:
    """Williams' test of two Pearson correlations with the same human ratings.

    `first` and `second` are two metrics' correlations with the human ratings, `between` is the
    correlation of the metrics with each other, and `n` is the number of systems. The statistic has
    a t distribution with n - 3 degrees of freedom. `greater` tests whether the first correlation is
    higher. NaN where a correlation is NaN. Williams (1959), as in Graham & Baldwin (2014).

    >>> williams_test(0.3, 0.4, 0.5, n=100, side="two-sided").p
    0.28426904700319966
    """
    from scipy.stats import t as student

    check_alternative(side)
    if n < 4:
        raise InputError(f"Williams' test over {n} systems; it needs at least 4")
    unexplained = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    # the determinant of a correlation matrix is negative only by rounding
    spread = 2 * max(unexplained, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    scale = float(np.sqrt((n - 1) * (1 + between) / spread)) if spread else np.inf
    statistic = (first - second) * scale if first != second else 0.0
    above = float(student.sf(statistic, n - 3))
    return SignificanceResult(statistic, above if side == "greater" else 2 * min(above, 1 - above))


def williams_matrix(panel: Panel, *, side: Alternative = "greater") -> Floats:
    """Compute Williams' p-value for all pairs of metrics at the system level.

    Rows are tested as better than columns, over the systems that all metrics and the humans have
    scores for. The diagonal is NaN.
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


def paired_t_test(differences: Sequence[float]) -> float:
    """Compute the two-sided p-value of a paired t-test; 1 if the differences do not vary.

    >>> round(paired_t_test([0.4, 0.5, 0.6]), 4)
    0.0131
    """
    from scipy.stats import t

    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    if not spread:
        return 1.0
    size = float(np.mean(differences)) / spread * math.sqrt(len(differences))
    return float(2 * t.sf(abs(size), len(differences) - 1))


def minimum_detectable_difference(
    spread: float, pairs: int, *, power: float = 0.8, level: float = 0.05
) -> float:
    """Compute the smallest true difference that a paired t-test detects with the given power.

    `spread` is the standard deviation of the paired differences, `level` the significance level.

    >>> round(minimum_detectable_difference(1.0, 3), 2)
    3.26
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, norm, t

    free = pairs - 1
    # Average over the distribution of the standard deviation: SciPy's noncentral t fails at large
    # shifts.
    spreads = np.sqrt(chi2.ppf((np.arange(2000) + 0.5) / 2000, free) / free)
    bounds = t.ppf(1 - level / 2, free) * spreads

    def excess_power(size: float) -> float:
        shift = size * math.sqrt(pairs)
        return float((norm.sf(bounds - shift) + norm.cdf(-bounds - shift)).mean()) - power

    return spread * float(brentq(excess_power, 0.0, 50.0))


def _segment_counts(systems: list[ArrayLike], score: TotalsScore) -> list[Floats]:
    """Return each system's rows of counts for the segments that all systems have."""
    arrays = [as_floats(system, "scores") for system in systems]
    if len({a.shape for a in arrays}) > 1 or arrays[0].ndim not in (1, 2):
        raise InputError(
            f"systems have shapes {', '.join(str(a.shape) for a in arrays)}; "
            "give each the same segments, one score or one row of counts for each"
        )
    if arrays[0].ndim == 2 and arrays[0].shape[1] != 2 and score is mean_score:
        raise InputError(
            f"rows of {arrays[0].shape[1]} counts need a function that scores their totals; "
            "give score=, or rows of a sum and a count"
        )
    rows = [a if a.ndim == 2 else np.stack([a, np.ones_like(a)], axis=-1) for a in arrays]
    known = ~np.isnan(np.concatenate(rows, axis=-1)).any(-1)
    if not known.any():
        raise InputError("no segment has a score from every system; give at least one such segment")
    return [row[known] for row in rows]


def _bootstrap_totals(counts: Floats, resamples: int, seed: int) -> Floats:
    """Compute the totals of each resample; every system uses the same resamples."""
    return bootstrap_counts(len(counts), resamples, np.random.default_rng(seed)) @ counts


def _weighted_sums(
    stack: Floats, times: int, seed: int, weights: Callable[[int, int, np.random.Generator], Floats]
) -> Floats:
    """Sum the rows under random weights, `times` times."""
    rng = np.random.default_rng(seed)
    sums = np.empty((times, stack.shape[1]))
    for some in blocks(times, len(stack)):
        sums[some] = weights(len(stack), some.stop - some.start, rng) @ stack
    return sums


def _swap_weights(count: int, times: int, rng: np.random.Generator) -> Floats:
    return rng.integers(2, size=(times, count), dtype=np.uint8).astype(np.float64)
