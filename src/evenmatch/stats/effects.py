"""How far two lists of scores of the same things lie apart, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats
from evenmatch.stats.intervals import Interval, check_interval
from evenmatch.stats.resampling import drawn

# From how often each thing counts, (weightings, things), to one number per weighting.
WeightedNumber: TypeAlias = Callable[[Floats], Floats]


def bootstrapped(
    statistic: WeightedNumber,
    count: int,
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """A statistic of `count` things, with the percentiles it has when they are drawn again.

    The same count and seed draw the same things, so intervals of differences are paired.
    """
    check_interval("percentile", confidence)
    if count < 2:
        raise InputError(f"{count} things to draw from; an interval needs at least 2")
    draws = statistic(drawn(count, resamples, np.random.default_rng(seed)))
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(statistic(np.ones((1, count)))[0]), float(low), float(high))


def effect_size(higher: Floats, lower: Floats) -> WeightedNumber:
    """Cohen's d: the difference of means over the root of the mean variance.

    >>> effect_size(np.array([2.0, 4.0]), np.array([0.0, 2.0]))(np.ones((1, 2)))
    array([2.])
    """

    def weighted(weights: Floats) -> Floats:
        total = weights.sum(1)
        means = [weights @ x / total for x in (higher, lower)]
        squares = [weights @ x**2 / total for x in (higher, lower)]
        variance = sum(s - m**2 for s, m in zip(squares, means, strict=True)) / 2
        effects: Floats = (means[0] - means[1]) / np.sqrt(np.maximum(variance, np.finfo(float).eps))
        return effects

    return weighted


def mean_difference(x: Floats, y: Floats) -> WeightedNumber:
    """By how much `x` is above `y` on average, thing by thing.

    >>> mean_difference(np.array([2.0, 4.0]), np.array([1.0, 1.0]))(np.ones((1, 2)))
    array([2.])
    """
    return lambda weights: weights @ (x - y) / weights.sum(1)


def told_apart(higher: Floats, lower: Floats) -> float:
    """The chance that one of the first is above one of the second, ties counting half.

    >>> told_apart(np.array([0.9, 0.5]), np.array([0.5, 0.1]))
    0.875
    """
    above = np.searchsorted(np.sort(lower), higher, "left").sum()
    level = np.searchsorted(np.sort(lower), higher, "right").sum() - above
    return float((above + level / 2) / (len(higher) * len(lower)))
