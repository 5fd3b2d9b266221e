"""How differently a metric scores the two candidates of each pair.

The measure is Sun et al.'s (2022, eq. 1 and 2): all 2N scores of a set are stretched to 0 … 100,
and the bias is the mean distance between the two of a pair. One odd pair can set that range, and
two metrics that move as far can have ranges of different widths; so the plain difference and the
range stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.bootstrap import Interval, bootstrap_interval, mean_difference
from evenmatch.stats.paired import approximate_randomisation
from evenmatch.stats.panel import Floats

MIN_PAIRS = 2


@dataclass(frozen=True, slots=True)
class AuditTestSettings:
    """How intervals and p-values are made."""

    confidence: float = 0.95
    resamples: int = 1000
    trials: int = 10_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Bias:
    """One metric on the pairs of one attribute.

    `bias` and `stereotype` are on the scale where the set's scores span 0 to 100; a positive
    `stereotype` says that the metric prefers the candidate a stereotype expects, and `p` how likely
    so large a preference is where there is none. `raw` and `raw_stereotype` are the same two in the
    metric's own unit, `least` and `most` the scores that were stretched to 0 and 100. Intervals
    keep that range fixed.
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
    draws: AuditTestSettings = AuditTestSettings(),
) -> Bias:
    """The bias in the scores of the first and of the second candidates."""
    _check_scores(attribute, metric, first, second)
    scale, least, most = _range_scale(first, second)
    towards = 1.0 if higher_is_better else -1.0
    gaps = (first - second) * towards
    apart, signed = (_mean_interval(each, draws) for each in (np.abs(gaps) * scale, gaps * scale))
    test = approximate_randomisation(first, second, resamples=draws.trials, seed=draws.seed)
    return Bias(
        attribute,
        metric,
        len(gaps),
        *(apart.value, apart.low, apart.high),
        *(signed.value, signed.low, signed.high),
        test.p,
        float(np.abs(gaps).mean()),
        float(gaps.mean()),
        least,
        most,
    )


def _mean_interval(values: Floats, draws: AuditTestSettings) -> Interval:
    return bootstrap_interval(
        mean_difference(values, np.zeros_like(values)),
        len(values),
        confidence=draws.confidence,
        resamples=draws.resamples,
        seed=draws.seed,
    )


def normalised_gaps(first: Floats, second: Floats) -> Floats:
    """By how much each first candidate is above the second where all scores span 0 to 100.

    >>> normalised_gaps(np.array([1.0, 3.0]), np.array([2.0, 3.0])).tolist()
    [-50.0, 0.0]
    """
    return (first - second) * _range_scale(first, second)[0]


def _range_scale(first: Floats, second: Floats) -> tuple[float, float, float]:
    """What turns a difference into hundredths of the range, and the ends of the range."""
    every = np.concatenate([first, second])
    least, most = float(every.min()), float(every.max())
    # a metric that gives everything the same score differs nowhere
    return (100.0 / (most - least) if most > least else 0.0), least, most


def _check_scores(attribute: str, metric: str, first: Floats, second: Floats) -> None:
    if len(first) < MIN_PAIRS:
        raise InputError(
            f"{len(first)} pairs about {attribute!r} are too few for an audit; give {MIN_PAIRS}"
        )
    bad = np.flatnonzero(~np.isfinite(first) | ~np.isfinite(second))
    if bad.size:
        raise InputError(
            f"{metric} gives no finite score to pair {bad[0] + 1} about {attribute!r}; "
            "leave the pair out, or use another metric"
        )
