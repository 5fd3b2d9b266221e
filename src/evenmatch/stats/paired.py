"""Paired significance tests: two systems on the same segments, two metrics, or two sets of runs.

A corpus score is a function of totals over segments: a mean of a sum and a count, BLEU of n-gram
counts. Segments are therefore rows of counts, a resample is a product of weights with these rows,
and a score function maps totals (…, counts) to scores (…).

- `resample_scores` and the functions after it: intervals and paired tests of many scores, all from
  the same resamples of documents.
- `approximate_randomisation`: two systems, with the random swaps of sacrebleu.
- `williams_matrix`: two metrics' correlations with the same human ratings.
- `paired_t_test`, `minimum_detectable_difference`: few runs of an experiment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.scoring.reducers import ratio
from evenmatch.stats.bootstrap import bootstrap_counts, check_confidence, percentile_bounds
from evenmatch.stats.levels import correlation, mean_over_segments
from evenmatch.stats.p_values import holm, p_value
from evenmatch.stats.panel import Floats, Panel, blocks
from evenmatch.types import Array

# Baseline, system, difference, its bounds, and the p-values of bootstrap and randomisation, as they
# are and adjusted (Holm) for the number of pairs.
PairComparison: TypeAlias = tuple[str, str, float, float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings of the bootstrap and of approximate randomisation (`trials` swaps)."""

    confidence: float
    resamples: int
    trials: int
    seed: int

    def __post_init__(self) -> None:
        if type(self.seed) is not int or self.seed < 0:
            raise InputError(f"seed {self.seed!r:.40}; give a whole number from 0")
        for what, count in (("resamples", self.resamples), ("trials", self.trials)):
            if type(count) is not int or count < 1:
                raise InputError(f"{what} must be an integer of at least 1, got {count!r}")
        check_confidence(self.confidence)


def mean_score(totals: Floats) -> Floats:
    """Compute the mean from totals (sum of scores, number of scores); 0 without scores.

    >>> mean_score(np.array([3.0, 4.0])).item()
    0.75
    """
    mean: Floats = ratio(totals[..., 0], totals[..., 1])
    return mean


def mean_counts(values: ArrayLike) -> Floats:
    """Return the rows of counts (score, 1) whose totals `mean_score` takes."""
    return np.stack([np.asarray(values, dtype=np.float64), np.ones(np.shape(values))], axis=-1)


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


def compare_pairs(
    scores: Mapping[str, ResampledScore], swap_p: Sequence[float], confidence: float
) -> Iterator[PairComparison]:
    """Compare every two systems, given the p-value of each pair by approximate randomisation."""
    pairs = list(combinations(scores, 2))
    bootstrap_p = [bootstrap_p_value(scores[b], scores[a]) for a, b in pairs]
    tests = zip(bootstrap_p, swap_p, holm(bootstrap_p).tolist(), holm(swap_p).tolist(), strict=True)
    for (a, b), p_values in zip(pairs, tests, strict=True):
        bounds = percentile_bounds(scores[b].resamples - scores[a].resamples, confidence)
        yield a, b, scores[b].value - scores[a].value, *bounds, *p_values


def mean_of_seeds(several: Sequence[ResampledScore]) -> tuple[float, Floats]:
    """Average the values of several scores, and their resamples, which share documents."""
    return (
        float(np.mean([each.value for each in several])),
        np.mean([each.resamples for each in several], axis=0),
    )


def approximate_randomisation(
    first: Floats, second: Floats, score: Callable[[Floats], Floats], *, resamples: int, seed: int
) -> float:
    """Compute the p-value of two systems' difference by swaps (Riezler & Maxwell 2005).

    Both systems are rows of counts. With the same seed, sacrebleu swaps the same segments.
    """
    kept = np.random.default_rng(seed).integers(2, size=(resamples, len(first)), dtype=bool)
    both, other = (first + second).sum(0), second.sum(0)
    draws = []
    for some in blocks(resamples, len(first)):
        swapped = other + kept[some].astype(np.float64) @ (first - second)
        draws.append(score(swapped) - score(both - swapped))
    return p_value(np.concatenate(draws), float(score(first.sum(0)) - score(other)), "two-sided")


def williams_test(first: float, second: float, between: float, *, n: int) -> float:
    """Compute Williams' p-value of the first Pearson correlation being higher than the second.

    `first` and `second` are two metrics' correlations with the same human ratings, `between` is the
    correlation of the metrics with each other, and `n` is the number of systems, at least 4. The
    statistic has a t distribution with n - 3 degrees of freedom. NaN where a correlation is NaN.
    Williams (1959), as in Graham & Baldwin (2014).

    >>> round(williams_test(0.3, 0.4, 0.5, n=100), 4)
    0.8579
    """
    from scipy.stats import t

    unexplained = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    # the determinant of a correlation matrix is negative only by rounding
    spread = 2 * max(unexplained, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    scale = float(np.sqrt((n - 1) * (1 + between) / spread)) if spread else np.inf
    statistic = (first - second) * scale if first != second else 0.0
    return float(t.sf(statistic, n - 3))


def williams_matrix(panel: Panel) -> Floats:
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
        p[a, b] = williams_test(agreement[a], agreement[b], between[a, b], n=scores.shape[1])
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
