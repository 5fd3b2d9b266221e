"""One number per metric from many rows: the mean of the rows' correlations, under weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from evenmatch.stats.arrays import Floats, blocks
from evenmatch.stats.correlations import Coefficient, Weighted, weighted
from evenmatch.stats.ties import calibrated

# `calibrated_accuracy` is acc_eq of Deutsch, Foster & Freitag (2023).
Method: TypeAlias = Coefficient | Literal["calibrated_accuracy"]


class Statistic(Protocol):
    """One number per metric under weights: (weightings, metrics).

    `points` is (groups, weightings, points), `rows` (weightings, rows). Several groups take one
    weighting of points each; one group takes many. Either may be single where the other varies.
    """

    def __call__(self, points: Floats, rows: Floats, /) -> Floats: ...


@dataclass(frozen=True, slots=True, eq=False)
class MeanOfRows:
    """The weighted mean of rows' correlations; rows without one are left out."""

    metrics: tuple[Weighted, ...]

    def __call__(self, points: Floats, rows: Floats) -> Floats:
        """See `Statistic`."""
        return np.stack([self._of(metric, points, rows) for metric in self.metrics], axis=-1)

    def _of(self, metric: Weighted, points: Floats, rows: Floats) -> Floats:
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
    total = _over_rows(np.where(known, each, 0.0), rows)
    weight = _over_rows(known.astype(np.float64), rows)
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)


def _over_rows(each: Floats, rows: Floats) -> Floats:
    total: Floats = rows @ each[0] if len(each) == 1 else np.einsum("wr,wr->w", each, rows)
    return total


def statistic(x: Floats, y: Floats, method: Method) -> Statistic:
    """Rows (groups, metrics, rows, points) of x and (groups, rows, points) of y, prepared."""
    if method == "calibrated_accuracy":
        return calibrated(x, y)
    return MeanOfRows(tuple(weighted(x[:, m], y, method) for m in range(x.shape[1])))
