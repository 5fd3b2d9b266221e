"""How closely two lists of numbers go together, by the names papers use.

Every function works along the last axis, one result for each row of what is left. A point with a
NaN in either list is left out. Where the rest is constant or has fewer than two points there is no
correlation, and the result is NaN, without a warning.

One number per metric from many rows: the mean of the rows' correlations, under weights.

At which level metrics are compared with people; papers differ, so each has a name.

| level | what is correlated |
|---|---|
| `system` | the systems' mean scores, each side's over the segments it knows |
| `pooled` | all outputs in one list |
| `per_item` | the systems' scores of one segment; then the mean over segments |
| `per_system` | the segments' scores of one system; then the mean over systems |

A segment (or system) without a correlation, because its scores are constant, is left out of the
mean; a mean of none is NaN.

The tie threshold of each metric of a panel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.correlation import prepare_pearson, prepare_spearman
from evenmatch.stats.kendall import (
    prepare_accuracy,
    prepare_calibrated_accuracy,
    prepare_kendall,
    sorted_pairs,
)
from evenmatch.stats.panel import Floats, Panel, as_pair, blocks, round_to_scale

# `kendall` is tau-b; `accuracy` the share of pairs ordered alike (Kocmi et al. 2021).
CoefficientName: TypeAlias = Literal["pearson", "spearman", "kendall", "kendall_c", "accuracy"]


@dataclass(frozen=True, slots=True)
class AccuracyAt:
    """Pairwise accuracy where scores of x that differ by at most `epsilon` are tied."""

    epsilon: float


Coefficient: TypeAlias = CoefficientName | AccuracyAt


class WeightedCoefficient(Protocol):
    """Correlations of rows under weights: (groups, weightings, points) to (…, …, rows)."""

    def __call__(self, weights: Floats, /) -> Floats: ...


_COEFFICIENTS: dict[str, Callable[[Floats, Floats], WeightedCoefficient]] = {
    "pearson": prepare_pearson,
    "spearman": prepare_spearman,
    "kendall": prepare_kendall,
    "kendall_c": lambda x, y: prepare_kendall(x, y, "c"),
    "accuracy": prepare_accuracy,
}


def prepare_coefficient(x: Floats, y: Floats, coefficient: Coefficient) -> WeightedCoefficient:
    """The coefficient of rows (groups, rows, points), ready to be weighted."""
    if isinstance(coefficient, AccuracyAt):
        return prepare_accuracy(x, y, coefficient.epsilon)
    if coefficient not in _COEFFICIENTS:
        known = ", ".join(get_args(CoefficientName))
        raise UnknownNameError(f"no correlation is called {coefficient!r}; known: {known}")
    return _COEFFICIENTS[coefficient](x, y)


def correlation(x: ArrayLike, y: ArrayLike, coefficient: Coefficient) -> Floats:
    """The named coefficient along the last axis.

    >>> correlation([[1, 2, 3], [3, 1, 2]], [1, 2, 3], "pearson")
    array([ 1. , -0.5])
    """
    first, second = as_pair(x, y)
    shape = (1, prod(first.shape[:-1]), first.shape[-1])
    rows = prepare_coefficient(first.reshape(shape), second.reshape(shape), coefficient)
    values: Floats = rows(np.ones((1, 1, first.shape[-1])))[0, 0]
    return values.reshape(first.shape[:-1])


# `calibrated_accuracy` is acc_eq of Deutsch, Foster & Freitag (2023).
CorrelationMethod: TypeAlias = Coefficient | Literal["calibrated_accuracy"]


class Statistic(Protocol):
    """One number per metric under weights: (weightings, metrics).

    `points` is (groups, weightings, points), `rows` (weightings, rows). Several groups take one
    weighting of points each; one group takes many. Either may be single where the other varies.
    """

    def __call__(self, points: Floats, rows: Floats, /) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class MeanRowCorrelation:
    """The weighted mean of rows' correlations; rows without one are left out."""

    metrics: tuple[WeightedCoefficient, ...]

    def __call__(self, points: Floats, rows: Floats) -> Floats:
        """See `Statistic`."""
        return np.stack([self._mean(metric, points, rows) for metric in self.metrics], axis=-1)

    def _mean(self, metric: WeightedCoefficient, points: Floats, rows: Floats) -> Floats:
        groups, weightings, size = points.shape
        if groups > 1 or weightings == 1:
            return mean_of_rows(metric(points), rows)
        parts = [
            mean_of_rows(metric(points[:, some]), rows[some] if len(rows) > 1 else rows)
            for some in blocks(weightings, size * rows.shape[-1])
        ]
        return np.concatenate(parts)


def mean_of_rows(each: Floats, rows: Floats) -> Floats:
    """The mean over rows, of (groups, weightings, rows), leaving out NaN."""
    each = each.reshape(-1, rows.shape[-1])
    known = ~np.isnan(each)
    total = _sum_rows(np.where(known, each, 0.0), rows)
    weight = _sum_rows(known.astype(np.float64), rows)
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)


def _sum_rows(each: Floats, rows: Floats) -> Floats:
    total: Floats = rows @ each[0] if len(each) == 1 else np.einsum("wr,wr->w", each, rows)
    return total


def prepare_statistic(x: Floats, y: Floats, method: CorrelationMethod) -> Statistic:
    """Rows (groups, metrics, rows, points) of x and (groups, rows, points) of y, prepared."""
    if method == "calibrated_accuracy":
        return prepare_calibrated_accuracy(x, y)
    return MeanRowCorrelation(
        tuple(prepare_coefficient(x[:, m], y, method) for m in range(x.shape[1]))
    )


Level: TypeAlias = Literal["system", "pooled", "per_item", "per_system"]


class LevelStatistic(Protocol):
    """One number per metric, given how often each system and each segment counts.

    Weights are (weightings, systems) and (weightings, segments); a single weighting of the one
    serves all of the other. Gives (weightings, metrics).
    """

    def __call__(self, systems: Floats, segments: Floats, /) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class SystemLevel:
    """Correlations of the systems' mean scores."""

    panel: Panel
    method: CorrelationMethod

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        if len(segments) == 1:
            return self._block(systems[None], segments)
        each = np.broadcast_to(systems, (len(segments), systems.shape[1]))
        cells = len(self.panel.metrics) * self.panel.systems
        parts = [self._block(each[b, None], segments[b]) for b in blocks(len(segments), cells)]
        return np.concatenate(parts)

    def _block(self, points: Floats, segments: Floats) -> Floats:
        x = mean_over_segments(self.panel.metrics, segments)[:, :, None]
        y = mean_over_segments(self.panel.human, segments)[:, None]
        return prepare_statistic(x, y, self.method)(points, np.ones((1, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class PooledLevel:
    """Correlations over all outputs."""

    outputs: Statistic

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        count = max(len(systems), len(segments))
        systems, segments = (np.broadcast_to(w, (count, w.shape[1])) for w in (systems, segments))
        parts = []
        for b in blocks(count, systems.shape[1] * segments.shape[1]):
            points = (systems[b, :, None] * segments[b, None]).reshape(1, b.stop - b.start, -1)
            parts.append(self.outputs(points, np.ones((1, 1))))
        return np.concatenate(parts)


@dataclass(frozen=True, slots=True, eq=False)
class PerItemLevel:
    """The mean over segments of correlations over systems."""

    items: Statistic

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        return self.items(systems[None], segments)


@dataclass(frozen=True, slots=True, eq=False)
class PerSystemLevel:
    """The mean over systems of correlations over segments."""

    each: Statistic

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        return self.each(segments[None], systems)


def prepare_level(panel: Panel, level: Level, method: CorrelationMethod) -> LevelStatistic:
    """The statistic that compares each metric of a panel with people, ready to be weighted."""
    check_level(panel, level)
    if level == "system":
        return SystemLevel(panel, method)
    rows = prepare_statistic(*arrange_rows(panel.metrics[None], panel.human, level), method)
    if level == "pooled":
        return PooledLevel(rows)
    return PerItemLevel(rows) if level == "per_item" else PerSystemLevel(rows)


def correlate_panel(panel: Panel, *, level: Level, method: CorrelationMethod) -> Floats:
    """How closely each metric agrees with people: one number per metric.

    >>> from evenmatch.stats.panel import make_panel
    >>> scores = make_panel([[1, 2], [2, 2], [3, 5]], [[1, 2], [3, 1], [2, 4]])
    >>> correlate_panel(scores, level="system", method="kendall")
    array([1.])
    >>> correlate_panel(scores, level="per_item", method="spearman").round(3)
    array([0.683])
    """
    everything = np.ones((1, panel.systems)), np.ones((1, panel.segments))
    values: Floats = prepare_level(panel, level, method)(*everything)[0]
    return values


def mean_over_segments(scores: Floats, segments: Floats) -> Floats:
    """Mean scores (weightings, …, systems) over the segments that are known, NaN without any.

    `scores` is (…, systems, segments); a single column is taken as it is. Means are rounded to 40
    bits of the largest score: the same scores summed in another order are then still a tie.
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
    """The rows a segment level correlates, of (groups, metrics, systems, segments) and people's.

    Gives (groups, metrics, rows, points) and (groups, rows, points).
    """
    if level == "pooled":
        metrics, human = metrics.reshape(*metrics.shape[:2], 1, -1), human.reshape(1, -1)
    elif level == "per_item":
        metrics, human = metrics.swapaxes(-1, -2), human.T
    return metrics, np.broadcast_to(human, (len(metrics), *human.shape))


def check_level(panel: Panel, level: Level) -> None:
    """Raise where there is no such level or the panel has no scores for it."""
    if level not in get_args(Level):
        raise UnknownNameError(f"no level is called {level!r}; known: {', '.join(get_args(Level))}")
    columns = panel.metrics.shape[-1], panel.human.shape[-1]
    if level != "system" and columns[0] != columns[1]:
        raise InputError(
            f"level {level} compares segments, got {columns[0]} of metrics and {columns[1]} of "
            "people; with scores per system take the level system"
        )


@dataclass(frozen=True, slots=True)
class TieCalibration:
    """A metric's greatest pairwise accuracy, and the difference up to which its scores then tie.

    `AccuracyAt(epsilon)` is the method that judges other data with it.
    """

    accuracy: float
    epsilon: float


def calibrate_ties(panel: Panel, *, level: Level) -> tuple[TieCalibration, ...]:
    """The threshold that makes each metric's pairwise accuracy greatest, the lowest if several.

    >>> from evenmatch.stats.panel import make_panel
    >>> calibrate_ties(make_panel([[0.1], [0.2], [0.9]], [[1], [1], [3]]), level="system")
    (TieCalibration(accuracy=1.0, epsilon=0.1),)
    """
    check_level(panel, level)
    every = np.ones((1, panel.segments))
    if level == "system":
        x, y = (
            mean_over_segments(panel.metrics, every)[:, :, None],
            mean_over_segments(panel.human, every)[:, None],
        )
    else:
        x, y = arrange_rows(panel.metrics[None], panel.human, level)
    weights = np.ones((1, x.shape[-1])), np.ones((1, x.shape[-2]))
    pairs = [sorted_pairs(metric, y[0]) for metric in x[0]]
    return tuple(
        TieCalibration(float(p.best_accuracy(*weights)[0]), float(p.best_threshold(*weights)[0]))
        for p in pairs
    )
