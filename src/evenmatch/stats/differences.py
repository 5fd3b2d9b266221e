"""Williams' test: whether one metric correlates with people better than another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.arrays import Floats
from evenmatch.stats.correlations import correlation
from evenmatch.stats.levels import means
from evenmatch.stats.panel import Panel

Side: TypeAlias = Literal["greater", "two-sided"]


@dataclass(frozen=True, slots=True)
class Tested:
    """A test's statistic and its p-value."""

    statistic: float
    p: float


def williams(
    first: float, second: float, between: float, *, n: int, side: Side = "greater"
) -> Tested:
    """Williams' test of two Pearson correlations with the same people (t, n - 3 degrees).

    `first` and `second` are two metrics' correlations with people, `between` that of the metrics
    with each other, `n` how many systems they are over; `greater` asks whether the first is the
    higher one. NaN where a correlation is NaN. Williams (1959), as in Graham & Baldwin (2014).

    >>> williams(0.3, 0.4, 0.5, n=100, side="two-sided").p
    0.28426904700319966
    """
    from scipy.stats import t as student

    check_side(side)
    if n < 4:
        raise InputError(f"Williams' test over {n} systems; it needs at least 4")
    unexplained = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    mean = (first + second) / 2
    # the determinant of three correlations is never negative but by rounding
    spread = 2 * max(unexplained, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    scale = float(np.sqrt((n - 1) * (1 + between) / spread)) if spread else np.inf
    statistic = (first - second) * scale if first != second else 0.0
    above = float(student.sf(statistic, n - 3))
    return Tested(statistic, above if side == "greater" else 2 * min(above, 1 - above))


def check_side(side: Side) -> None:
    """Raise where a test has no such side."""
    if side not in get_args(Side):
        raise UnknownNameError(f"no test is {side!r}; known: {', '.join(get_args(Side))}")


def williams_matrix(panel: Panel, *, side: Side = "greater") -> Floats:
    """Williams' p-value for every two metrics at the system level (row better than column).

    Over the systems that all metrics and people have scores for; the diagonal is NaN.
    """
    every = np.ones((1, panel.segments))
    scores = np.concatenate([means(panel.metrics, every)[0], means(panel.human, every)])
    scores = scores[:, ~np.isnan(scores).any(0)]
    metrics, human = scores[:-1], scores[-1]
    agreement = correlation(metrics, human, "pearson")
    between = correlation(metrics[:, None], metrics[None], "pearson")
    p = np.full((len(metrics), len(metrics)), np.nan)
    for a, b in zip(*np.nonzero(~np.eye(len(metrics), dtype=bool)), strict=True):
        test = williams(agreement[a], agreement[b], between[a, b], n=scores.shape[1], side=side)
        p[a, b] = test.p
    return p
