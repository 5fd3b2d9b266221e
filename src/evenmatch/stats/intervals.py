"""Bootstrap intervals around correlations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.arrays import Floats
from evenmatch.stats.levels import Level, Leveled, leveled
from evenmatch.stats.panel import Panel
from evenmatch.stats.resampling import Over, weightings
from evenmatch.stats.rows import Method

Kind: TypeAlias = Literal["percentile", "bca"]

# So many give the skewness well enough, and thousands of segments would cost more than the draws.
_MOST_LEFT_OUT = 200
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Interval:
    """A number and the bounds it lies between with the stated confidence."""

    value: float
    low: float
    high: float


def intervals(
    panel: Panel,
    *,
    level: Level,
    method: Method,
    over: Over,
    kind: Kind = "bca",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[Interval, ...]:
    """Each metric's correlation with its bootstrap interval, in the panel's order.

    `bca` corrects percentiles for bias and skewness (Efron 1987). It pays where systems are few:
    over 8 and 15 of them a 95 % interval for Pearson held the truth in .94 and .93 of simulated
    cases, plain percentiles in .91 of both. Resamples without a correlation do not count.
    """
    check_interval(kind, confidence)
    sample = _sampled(leveled(panel, level, method), panel, over, resamples, seed, kind)
    return tuple(_interval(*column, kind, confidence) for column in zip(*sample, strict=True))


def difference_interval(
    panel: Panel,
    first: int,
    second: int,
    *,
    level: Level,
    method: Method,
    over: Over,
    kind: Kind = "bca",
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """By how much one metric of a panel agrees better than another, both on the same resamples."""
    check_interval(kind, confidence)
    two = Panel(panel.metrics[[first, second]], panel.human)
    sample = _sampled(leveled(two, level, method), two, over, resamples, seed, kind)
    value, draws, jackknife = (a - b for a, b in sample)
    return _interval(value, draws, jackknife, kind, confidence)


def check_interval(kind: Kind, confidence: float) -> None:
    """Raise where an interval's settings make no sense."""
    if kind not in get_args(Kind):
        raise UnknownNameError(
            f"no interval is called {kind!r}; known: {', '.join(get_args(Kind))}"
        )
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence}; give a share between 0 and 1, such as 0.95")


def _sampled(
    statistic: Leveled, panel: Panel, over: Over, resamples: int, seed: int, kind: Kind
) -> tuple[Floats, Floats, Floats]:
    """Each metric's value, its draws and its jackknife values, metrics first."""
    values = statistic(np.ones((1, panel.systems)), np.ones((1, panel.segments)))[0]
    draws = statistic(*weightings(panel, over, resamples, seed)).T
    needed = kind == "bca"
    jackknife = left_out(statistic, panel, over).T if needed else np.empty((len(values), 0))
    return values, draws, jackknife


def _interval(
    value: float, draws: Floats, jackknife: Floats, kind: Kind, confidence: float
) -> Interval:
    known = draws[~np.isnan(draws)]
    if np.isnan(value) or not known.size:
        return Interval(float(value), float("nan"), float("nan"))
    shares = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if kind == "bca":
        shares = _corrected(shares, value, known, jackknife[~np.isnan(jackknife)])
    low, high = np.quantile(known, shares)
    return Interval(float(value), float(low), float(high))


def left_out(statistic: Leveled, panel: Panel, over: Over) -> Floats:
    """The statistic with some systems, or segments, left out in turn (the jackknife)."""
    systems, segments = np.ones((1, panel.systems)), np.ones((1, panel.segments))
    each = []
    if over != "segments":
        each.append(statistic(_all_but_some(panel.systems), segments))
    if over != "systems":
        each.append(statistic(systems, _all_but_some(panel.segments)))
    return np.concatenate(each)


def _all_but_some(count: int) -> Floats:
    """Weights that leave out each in turn; above a number, neighbours go together."""
    groups = min(count, _MOST_LEFT_OUT)
    group = np.arange(count) * groups // count
    kept: Floats = (group != np.arange(groups)[:, None]).astype(np.float64)
    return kept


def _corrected(shares: Floats, value: float, draws: Floats, jackknife: Floats) -> Floats:
    """The shares at which the bias-corrected and accelerated interval cuts the draws."""
    from scipy.special import ndtr, ndtri

    # Resamples of few things are often the things themselves; their sums differ by rounding alone.
    even = np.abs(draws - value) < _ROUNDING
    below = float(np.where(even, 0.5, draws < value).mean())
    # a value outside all its resamples would be an infinite bias
    edge = 0.5 / draws.size
    bias = ndtri(min(max(below, edge), 1 - edge))
    influence = jackknife.sum() / max(jackknife.size, 1) - jackknife
    spread = (influence**2).sum() ** 1.5
    acceleration = (influence**3).sum() / (6 * spread) if spread else 0.0
    shifted = bias + ndtri(shares)
    corrected: Floats = ndtr(bias + shifted / (1 - acceleration * shifted))
    return corrected
