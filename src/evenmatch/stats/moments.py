"""Pearson's correlation of many rows under many weightings, as one matrix product.

A bootstrap resample is a weighting: how often each point was drawn. So resampling costs a product
of the weights with six columns per row (1, x, y, x², y², xy) instead of a loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.stats.arrays import Floats, matched

# What rounding leaves of a variance that is 0, relative to the squares it is the difference of.
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Pearson's r of prepared rows; call it with weights (groups, weightings, points).

    Gives (groups, weightings, rows); NaN where a row's weighted points are constant or under two.
    """

    columns: Floats  # (groups, points, 6 × rows)

    def __call__(self, weights: Floats) -> Floats:
        sums = weights @ self.columns
        return from_sums(*np.moveaxis(sums.reshape(*sums.shape[:-1], 6, -1), -2, 0))


def from_sums(n: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats) -> Floats:
    """Pearson's r from a count and sums over the points; NaN where a side is constant."""
    x_variance, y_variance = n * xx - x * x, n * yy - y * y
    varies = (x_variance > _ROUNDING * n * xx) & (y_variance > _ROUNDING * n * yy)
    scale = np.sqrt(np.where(varies, x_variance * y_variance, 1.0))
    r: Floats = np.where(varies, (n * xy - x * y) / scale, np.nan).clip(-1.0, 1.0)
    return r


def moments(x: Floats, y: Floats) -> Moments:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted."""
    x, y = matched(x, y)
    known = ~np.isnan(x)
    x, y = spread_out(x), spread_out(y)
    columns = np.stack([known.astype(np.float64), x, y, x * x, y * y, x * y], axis=1)
    groups, _, rows, points = columns.shape
    return Moments(np.ascontiguousarray(columns.reshape(groups, 6 * rows, points).swapaxes(1, 2)))


def spread_out(x: Floats) -> Floats:
    """Each row shifted and stretched to mean 0 within ±2; constant rows and NaN become 0.

    Correlations do not see it, and squares of what comes out neither overflow nor cancel.
    """
    known = ~np.isnan(x)
    low = np.where(known, x, np.inf).min(-1, keepdims=True, initial=np.inf)
    high = np.where(known, x, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    varies = known & (low < high)
    low, high = np.where(low < high, low, 0.0), np.where(low < high, high, 2.0)
    # halves, since the difference of two huge numbers overflows
    half, middle = high / 2 - low / 2, high / 2 + low / 2
    inside = np.where(varies, x - middle, 0.0) / np.where(half > 0, half, 1.0)
    mean = inside.sum(-1, keepdims=True) / np.maximum(known.sum(-1, keepdims=True), 1)
    centred: Floats = np.where(varies, inside - mean, 0.0)
    return centred
