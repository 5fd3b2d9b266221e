"""Bias of a metric: how differently it scores the two candidates of each pair.

The measure is that of Sun et al. (2022, eq. 1 and 2): all 2N scores of a set are scaled to 0 … 100,
and the bias is the mean absolute difference between the two scores of a pair. A single outlier can
determine that range, and metrics with equal differences can have different ranges. The unscaled
difference and the range are therefore reported as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.bootstrap import Interval, bootstrap_interval, mean_difference
from evenmatch.stats.paired import approximate_randomisation, mean_counts, mean_score
from evenmatch.stats.panel import Floats

MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class AuditTestSettings:
    """Settings of the bootstrap intervals and of the randomisation test (`trials` swaps)."""

    confidence: float = 0.95
    resamples: int = 1000
    trials: int = 10_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Bias:
    """Bias of one metric on the pairs of one attribute.

    `bias` and `stereotype` are measured with the scores of the set scaled to 0 … 100. `stereotype`
    is positive where the metric prefers the candidate that agrees with the stereotype, and `p` is
    the p-value of that preference. `raw` and `raw_stereotype` are the same two in the metric's own
    unit; `least` and `most` are the scores that become 0 and 100. Intervals keep that range fixed.
    """

    attribute: str
    metric: str
    pairs: int
    bias: float
    low: float
    high: float
    stereotype: float
    stereotype_low: float
    stereotype_high: float
    p: float
    raw: float
    raw_stereotype: float
    least: float
    most: float


def measure_bias(
    attribute: str,
    metric: str,
    first: Floats,
    second: Floats,
    *,
    higher_is_better: bool = True,
    testing: AuditTestSettings = AuditTestSettings(),
) -> Bias:
    """Measure the bias from the scores of the first and of the second candidates."""
    _check_scores(attribute, metric, first, second)
    scale, least, most = _range_scale(first, second)
    sign = 1.0 if higher_is_better else -1.0
    gaps = (first - second) * sign
    absolute = _mean_interval(np.abs(gaps) * scale, testing)
    signed = _mean_interval(gaps * scale, testing)
    counts = mean_counts(first), mean_counts(second)
    p = approximate_randomisation(*counts, mean_score, resamples=testing.trials, seed=testing.seed)
    return Bias(
        attribute,
        metric,
        len(gaps),
        *(absolute.value, absolute.low, absolute.high),
        *(signed.value, signed.low, signed.high),
        p,
        float(np.abs(gaps).mean()),
        float(gaps.mean()),
        least,
        most,
    )


def normalised_gaps(first: Floats, second: Floats) -> Floats:
    """First score minus second score of each pair, with all scores scaled to 0 … 100.

    >>> normalised_gaps(np.array([1.0, 3.0]), np.array([2.0, 3.0])).tolist()
    [-50.0, 0.0]
    """
    return (first - second) * _range_scale(first, second)[0]


def _mean_interval(values: Floats, testing: AuditTestSettings) -> Interval:
    return bootstrap_interval(
        mean_difference(values, np.zeros_like(values)),
        len(values),
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=testing.seed,
    )


def _range_scale(first: Floats, second: Floats) -> tuple[float, float, float]:
    """Return the factor from a score difference to percent of the range, and the range."""
    every = np.concatenate([first, second])
    least, most = float(every.min()), float(every.max())
    # a constant metric has no range and no differences
    return (100.0 / (most - least) if most > least else 0.0), least, most


def _check_scores(attribute: str, metric: str, first: Floats, second: Floats) -> None:
    if len(first) < MIN_PAIRS:
        raise InputError(
            f"{len(first)} pairs about {attribute!r} are too few for an audit; give at least "
            f"{MIN_PAIRS}"
        )
    bad = np.flatnonzero(~np.isfinite(first) | ~np.isfinite(second))
    if bad.size:
        raise InputError(
            f"{metric} gives no finite score to pair {bad[0] + 1} about {attribute!r}; "
            "leave the pair out, or use another metric"
        )
