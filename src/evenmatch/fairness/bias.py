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
from evenmatch.stats.paired import (
    Resampling,
    approximate_randomisation,
    mean_counts,
    mean_score,
)
from evenmatch.stats.panel import Floats

MIN_PAIRS = 2


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


@dataclass(frozen=True, slots=True, eq=False)
class AttributeScores:
    """One metric's scores of the first and second candidates of the pairs of one attribute."""

    attribute: str
    metric: str
    first: Floats
    second: Floats
    signature: str = ""
    higher_is_better: bool = True

    @property
    def gaps(self) -> Floats:
        """How much better the first candidate of each pair scores than the second."""
        return (self.first - self.second) * (1.0 if self.higher_is_better else -1.0)

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest score."""
        every = np.concatenate([self.first, self.second])
        return float(every.min()), float(every.max())

    @property
    def normalised_gaps(self) -> Floats:
        """The gaps with all scores scaled to 0 … 100.

        >>> AttributeScores("", "", np.array([1.0, 3.0]), np.array([2.0, 3.0])).normalised_gaps
        array([-50.,   0.])
        """
        least, most = self.range
        # a constant metric has no range and no differences
        return self.gaps * (100.0 / (most - least) if most > least else 0.0)


def measure_bias(scores: AttributeScores, testing: Resampling) -> Bias:
    """Measure the bias from the scores of the first and of the second candidates."""
    attribute, first, second = scores.attribute, scores.first, scores.second
    if len(first) < MIN_PAIRS:
        raise InputError(
            f"{len(first)} pairs about {attribute!r} are too few for an audit; give at least "
            f"{MIN_PAIRS}"
        )
    bad = np.flatnonzero(~np.isfinite(first) | ~np.isfinite(second))
    if bad.size:
        raise InputError(
            f"{scores.metric} gives no finite score to pair {bad[0] + 1} about {attribute!r}; "
            "leave the pair out, or use another metric"
        )
    gaps, scaled = scores.gaps, scores.normalised_gaps
    absolute, signed = (_mean_interval(values, testing) for values in (np.abs(scaled), scaled))
    counts = mean_counts(first), mean_counts(second)
    p = approximate_randomisation(*counts, mean_score, resamples=testing.trials, seed=testing.seed)
    return Bias(
        *(attribute, scores.metric, len(gaps)),
        *(absolute.value, absolute.low, absolute.high),
        *(signed.value, signed.low, signed.high),
        *(p, float(np.abs(gaps).mean()), float(gaps.mean())),
        *scores.range,
    )


def _mean_interval(values: Floats, testing: Resampling) -> Interval:
    return bootstrap_interval(
        mean_difference(values, np.zeros_like(values)),
        len(values),
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=testing.seed,
    )
