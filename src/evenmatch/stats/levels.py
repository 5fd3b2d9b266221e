"""At which level metrics are compared with people; papers differ, so each has a name.

| level | what is correlated |
|---|---|
| `system` | the systems' mean scores, each side's over the segments it knows |
| `pooled` | all outputs in one list |
| `per_item` | the systems' scores of one segment; then the mean over segments |
| `per_system` | the segments' scores of one system; then the mean over systems |

A segment (or system) without a correlation, because its scores are constant, is left out of the
mean; a mean of none is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.arrays import Floats, blocks, rounded
from evenmatch.stats.panel import Panel
from evenmatch.stats.rows import Method, Statistic, statistic

Level: TypeAlias = Literal["system", "pooled", "per_item", "per_system"]


class Leveled(Protocol):
    """One number per metric, given how often each system and each segment counts.

    Weights are (weightings, systems) and (weightings, segments); a single weighting of the one
    serves all of the other. Gives (weightings, metrics).
    """

    def __call__(self, systems: Floats, segments: Floats, /) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class BySystem:
    """Correlations of the systems' mean scores."""

    panel: Panel
    method: Method

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        if len(segments) == 1:
            return self._block(systems[None], segments)
        each = np.broadcast_to(systems, (len(segments), systems.shape[1]))
        cells = len(self.panel.metrics) * self.panel.systems
        parts = [self._block(each[b, None], segments[b]) for b in blocks(len(segments), cells)]
        return np.concatenate(parts)

    def _block(self, points: Floats, segments: Floats) -> Floats:
        x = means(self.panel.metrics, segments)[:, :, None]
        y = means(self.panel.human, segments)[:, None]
        return statistic(x, y, self.method)(points, np.ones((1, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
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
class PerItem:
    """The mean over segments of correlations over systems."""

    items: Statistic

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        return self.items(systems[None], segments)


@dataclass(frozen=True, slots=True, eq=False)
class PerSystem:
    """The mean over systems of correlations over segments."""

    each: Statistic

    def __call__(self, systems: Floats, segments: Floats) -> Floats:
        """See `Leveled`."""
        return self.each(segments[None], systems)


def leveled(panel: Panel, level: Level, method: Method) -> Leveled:
    """The statistic that compares each metric of a panel with people, ready to be weighted."""
    check_level(panel, level)
    if level == "system":
        return BySystem(panel, method)
    rows = statistic(*arranged(panel.metrics[None], panel.human, level), method)
    if level == "pooled":
        return Pooled(rows)
    return PerItem(rows) if level == "per_item" else PerSystem(rows)


def correlate(panel: Panel, *, level: Level, method: Method) -> Floats:
    """How closely each metric agrees with people: one number per metric.

    >>> from evenmatch.stats.panel import panel
    >>> scores = panel([[1, 2], [2, 2], [3, 5]], [[1, 2], [3, 1], [2, 4]])
    >>> correlate(scores, level="system", method="kendall")
    array([1.])
    >>> correlate(scores, level="per_item", method="spearman").round(3)
    array([0.683])
    """
    everything = np.ones((1, panel.systems)), np.ones((1, panel.segments))
    values: Floats = leveled(panel, level, method)(*everything)[0]
    return values


def means(scores: Floats, segments: Floats) -> Floats:
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
    return rounded(mean, largest)


def arranged(metrics: Floats, human: Floats, level: Level) -> tuple[Floats, Floats]:
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
