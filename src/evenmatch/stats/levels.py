"""Correlation of metrics with human ratings, at the levels that papers report.

| level | what is correlated |
|---|---|
| `system` | mean scores of systems, each side's over the segments it has scores for |
| `segment` | all outputs in one list |
| `per_item` | the systems' scores of one segment; then the mean over segments |
| `per_system` | the segments' scores of one system; then the mean over systems |

A segment (or system) with constant scores has no correlation and is left out of the mean; a mean
over none is NaN.

`correlate_panel` is the main function. `prepare_level` returns the same statistic as a function of
weights, for resampling. `correlation` computes one coefficient along the last axis of two arrays:
a point with NaN in either is left out, and the result is NaN, without a warning, where the other
points are constant or fewer than two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.correlation import prepare_pearson, prepare_spearman
from evenmatch.stats.kendall import (
    prepare_accuracy,
    prepare_calibrated_accuracy,
    prepare_kendall,
)
from evenmatch.stats.panel import Floats, Panel, as_floats, blocks, round_to_scale
from evenmatch.stats.soft_accuracy import prepare_soft_accuracy

# `kendall` is tau-b; `accuracy` is the share of pairs ordered the same way (Kocmi et al. 2021), and
# `untied_accuracy` that of the pairs which humans do not rate equal.
CoefficientName: TypeAlias = Literal[
    "pearson", "spearman", "kendall", "kendall_c", "accuracy", "untied_accuracy"
]

# `calibrated_accuracy` is acc_eq of Deutsch, Foster & Freitag (2023); `soft_accuracy` is SPA, which
# compares systems only.
CorrelationMethod: TypeAlias = Literal[CoefficientName, "calibrated_accuracy", "soft_accuracy"]

Level: TypeAlias = Literal["system", "segment", "per_item", "per_system"]

# Maps weights of systems and segments to one number per metric: (weightings, metrics). Weights are
# (weightings, systems) and (weightings, segments): how often each one counts. A single weighting of
# one is used with all weightings of the other.
LevelStatistic: TypeAlias = Callable[[Floats, Floats], Floats]

# Maps weights (groups, weightings, points) to correlations (groups, weightings, rows).
WeightedCoefficient: TypeAlias = Callable[[Floats], Floats]

# Maps weights of points (groups, weightings, points) and of rows (weightings, rows) to one number
# per metric: (weightings, metrics). There are either several groups with one weighting of points
# each, or one group with many weightings. Points or rows may have a single weighting, which is then
# used with all of the other's.
RowStatistic: TypeAlias = Callable[[Floats, Floats], Floats]


def correlate_panel(panel: Panel, *, level: Level, method: CorrelationMethod) -> Floats:
    """Compute the correlation of each metric with the human ratings.

    >>> from evenmatch.stats.panel import make_panel
    >>> scores = make_panel([[1, 2], [2, 2], [3, 5]], [[1, 2], [3, 1], [2, 4]])
    >>> correlate_panel(scores, level="system", method="kendall")
    array([1.])
    >>> correlate_panel(scores, level="per_item", method="spearman").round(3)
    array([0.683])
    """
    once = np.ones((1, panel.systems)), np.ones((1, panel.segments))
    values: Floats = prepare_level(panel, level, method)(*once)[0]
    return values


def prepare_level(panel: Panel, level: Level, method: CorrelationMethod) -> LevelStatistic:
    """Prepare each metric's correlation with the human ratings as a function of weights."""
    check_level(panel, level)
    if method == "soft_accuracy":
        if level != "system":
            raise InputError(f"soft_accuracy compares systems, got level {level}; use level system")
        return prepare_soft_accuracy(panel)
    if level == "system":
        return partial(_correlate_systems, panel, method)
    rows = prepare_statistic(*arrange_rows(panel.metrics[None], panel.human, level), method)
    if level == "segment":
        return partial(_correlate_outputs, rows)
    if level == "per_item":
        return lambda systems, segments: rows(systems[None], segments)
    return lambda systems, segments: rows(segments[None], systems)


def mean_over_segments(scores: Floats, segments: Floats) -> Floats:
    """Average `scores` (…, systems, segments) over the segments that have a score.

    Returns (weightings, …, systems); NaN for a system without scores. A single column is returned
    as it is. Means are rounded to 40 bits below the largest score, so that equal scores summed in
    a different order stay tied.
    """
    if scores.shape[-1] == 1:
        return np.broadcast_to(scores[..., 0], (len(segments), *scores.shape[:-1]))
    known = ~np.isnan(scores)
    total = np.moveaxis(np.where(known, scores, 0.0) @ segments.T, -1, 0)
    count = np.moveaxis(known.astype(np.float64) @ segments.T, -1, 0)
    mean = np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan)
    largest = abs(np.where(known, scores, 0.0)).max((-2, -1), keepdims=True, initial=0.0)[..., 0]
    return round_to_scale(mean, largest)


def arrange_rows(metrics: Floats, human: Floats, level: Level) -> tuple[Floats, Floats]:
    """Arrange scores into the rows that a segment level (not `system`) correlates.

    `metrics` is (groups, metrics, systems, segments) and `human` is (systems, segments). Returns
    (groups, metrics, rows, points) and (groups, rows, points).
    """
    if level == "segment":
        metrics, human = metrics.reshape(*metrics.shape[:2], 1, -1), human.reshape(1, -1)
    elif level == "per_item":
        metrics, human = metrics.swapaxes(-1, -2), human.T
    return metrics, np.broadcast_to(human, (len(metrics), *human.shape))


def check_level(panel: Panel, level: Level) -> None:
    """Raise if the level is unknown or the panel lacks the scores it needs."""
    if level not in get_args(Level):
        raise UnknownNameError(f"no level is called {level!r}; known: {', '.join(get_args(Level))}")
    columns = panel.metrics.shape[-1], panel.human.shape[-1]
    if level != "system" and columns[0] != columns[1]:
        raise InputError(
            f"level {level} compares segments, got {columns[0]} of metrics and {columns[1]} of "
            "human ratings; use level system for scores per system"
        )


def correlation(x: ArrayLike, y: ArrayLike, coefficient: CoefficientName) -> Floats:
    """Compute the named coefficient along the last axis.

    >>> correlation([[1, 2, 3], [3, 1, 2]], [1, 2, 3], "pearson")
    array([ 1. , -0.5])
    """
    first, second = as_floats(x, "x"), as_floats(y, "y")
    if not first.ndim or not second.ndim or first.shape[-1] != second.shape[-1]:
        raise InputError(
            f"x has shape {first.shape} and y {second.shape}; give as many numbers in x as in y"
        )
    first, second = np.broadcast_arrays(first, second)
    shape = (1, prod(first.shape[:-1]), first.shape[-1])
    rows = prepare_coefficient(first.reshape(shape), second.reshape(shape), coefficient)
    values: Floats = rows(np.ones((1, 1, first.shape[-1])))[0, 0]
    return values.reshape(first.shape[:-1])


_COEFFICIENTS: dict[str, Callable[[Floats, Floats], WeightedCoefficient]] = {
    "pearson": prepare_pearson,
    "spearman": prepare_spearman,
    "kendall": prepare_kendall,
    "kendall_c": lambda x, y: prepare_kendall(x, y, "c"),
    "accuracy": prepare_accuracy,
    "untied_accuracy": partial(prepare_accuracy, untied=True),
}


def prepare_coefficient(x: Floats, y: Floats, coefficient: CoefficientName) -> WeightedCoefficient:
    """Prepare the coefficient of rows (groups, rows, points) as a function of weights."""
    if coefficient not in _COEFFICIENTS:
        known = ", ".join(get_args(CoefficientName))
        raise UnknownNameError(f"no correlation is called {coefficient!r}; known: {known}")
    return _COEFFICIENTS[coefficient](x, y)


def prepare_statistic(x: Floats, y: Floats, method: CorrelationMethod) -> RowStatistic:
    """Prepare the statistic of x (groups, metrics, rows, points) and y (groups, rows, points).

    It is the weighted mean of the rows' correlations, without rows that have none.
    """
    if method == "calibrated_accuracy":
        return prepare_calibrated_accuracy(x, y)
    assert method != "soft_accuracy"  # it is prepared from segments, by `prepare_level`
    metrics = [prepare_coefficient(x[:, m], y, method) for m in range(x.shape[1])]
    return lambda points, rows: np.stack(
        [_mean_correlation(metric, points, rows) for metric in metrics], axis=-1
    )


def mean_of_rows(each: Floats, rows: Floats) -> Floats:
    """Average (groups, weightings, rows) over rows with weights `rows`, leaving out NaN."""
    each = each.reshape(-1, rows.shape[-1])
    known = ~np.isnan(each)
    total = _sum_rows(np.where(known, each, 0.0), rows)
    weight = _sum_rows(known.astype(np.float64), rows)
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)


def _correlate_systems(
    panel: Panel, method: CorrelationMethod, systems: Floats, segments: Floats
) -> Floats:
    """Correlate the systems' mean scores."""

    def correlate(points: Floats, some_segments: Floats) -> Floats:
        x = mean_over_segments(panel.metrics, some_segments)[:, :, None]
        y = mean_over_segments(panel.human, some_segments)[:, None]
        return prepare_statistic(x, y, method)(points, np.ones((1, 1)))

    if len(segments) == 1:
        return correlate(systems[None], segments)
    each = np.broadcast_to(systems, (len(segments), systems.shape[1]))
    cells = len(panel.metrics) * panel.systems
    return np.concatenate(
        [correlate(each[b, None], segments[b]) for b in blocks(len(segments), cells)]
    )


def _correlate_outputs(outputs: RowStatistic, systems: Floats, segments: Floats) -> Floats:
    """Correlate all outputs, each with the product of its system's and its segment's weight."""
    count = max(len(systems), len(segments))
    systems, segments = (np.broadcast_to(w, (count, w.shape[1])) for w in (systems, segments))
    parts = []
    for b in blocks(count, systems.shape[1] * segments.shape[1]):
        points = (systems[b, :, None] * segments[b, None]).reshape(1, b.stop - b.start, -1)
        parts.append(outputs(points, np.ones((1, 1))))
    return np.concatenate(parts)


def _mean_correlation(metric: WeightedCoefficient, points: Floats, rows: Floats) -> Floats:
    groups, weightings, size = points.shape
    if groups > 1 or weightings == 1:
        return mean_of_rows(metric(points), rows)
    parts = [
        mean_of_rows(metric(points[:, some]), rows[some] if len(rows) > 1 else rows)
        for some in blocks(weightings, size * rows.shape[-1])
    ]
    return np.concatenate(parts)


def _sum_rows(each: Floats, rows: Floats) -> Floats:
    total: Floats = rows @ each[0] if len(each) == 1 else np.einsum("wr,wr->w", each, rows)
    return total
