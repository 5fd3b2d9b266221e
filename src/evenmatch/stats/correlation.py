"""Pearson's correlation of many rows under many weightings, as one matrix product.

A bootstrap resample is a weighting: how often each point was drawn. So resampling costs a product
of the weights with six columns per row (1, x, y, x², y², xy) instead of a loop.

Ranks, and Spearman's correlation of many rows under many weightings.

A point drawn three times holds three ranks, so ranks under weights are running sums of the weights
in sorted order: one sort serves every resample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.stats.panel import Floats, Indexes, as_floats, mask_unpaired

# What rounding leaves of a variance that is 0, relative to the squares it is the difference of.
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPearson:
    """Pearson's r of prepared rows; call it with weights (groups, weightings, points).

    Gives (groups, weightings, rows); NaN where a row's weighted points are constant or under two.
    """

    columns: Floats  # (groups, points, 6 × rows)

    def __call__(self, weights: Floats) -> Floats:
        sums = weights @ self.columns
        return pearson_from_sums(*np.moveaxis(sums.reshape(*sums.shape[:-1], 6, -1), -2, 0))


def pearson_from_sums(
    n: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats
) -> Floats:
    """Pearson's r from a count and sums over the points; NaN where a side is constant."""
    x_variance, y_variance = n * xx - x * x, n * yy - y * y
    varies = (x_variance > _ROUNDING * n * xx) & (y_variance > _ROUNDING * n * yy)
    scale = np.sqrt(np.where(varies, x_variance * y_variance, 1.0))
    r: Floats = np.where(varies, (n * xy - x * y) / scale, np.nan).clip(-1.0, 1.0)
    return r


def prepare_pearson(x: Floats, y: Floats) -> WeightedPearson:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted."""
    x, y = mask_unpaired(x, y)
    known = ~np.isnan(x)
    x, y = centre_and_scale(x), centre_and_scale(y)
    columns = np.stack([known.astype(np.float64), x, y, x * x, y * y, x * y], axis=1)
    groups, _, rows, points = columns.shape
    return WeightedPearson(
        np.ascontiguousarray(columns.reshape(groups, 6 * rows, points).swapaxes(1, 2))
    )


def centre_and_scale(x: Floats) -> Floats:
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


@dataclass(frozen=True, slots=True, eq=False)
class SortOrder:
    """The sorted order of rows, and between which places each point's equals lie.

    All are (groups, 1, rows, points): `order` sorts; a point and its equals fill the sorted places
    from `first` up to, not including, `past`. NaN sorts last, each for itself.
    """

    order: Indexes
    first: Indexes
    past: Indexes

    def weights_below(self, weights: Floats) -> tuple[Floats, Floats]:
        """For each point the weight of what is smaller, and of what is smaller or equal."""
        running = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1))
        np.cumsum(take_per_row(weights, self.order), axis=-1, out=running[..., 1:])
        return take_per_row(running, self.first), take_per_row(running, self.past)


def sort_order(x: Floats) -> SortOrder:
    """The order of each row of `x` (groups, rows, points)."""
    x = x[:, None]
    order = np.argsort(x, axis=-1, kind="stable")
    ordered = np.take_along_axis(x, order, -1)
    places = np.arange(x.shape[-1])
    new = np.ones(x.shape, dtype=bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    ends = np.ones(x.shape, dtype=bool)
    ends[..., :-1] = new[..., 1:]
    past = np.where(ends, places + 1, x.shape[-1])
    past = np.minimum.accumulate(past[..., ::-1], axis=-1)[..., ::-1]
    back = np.argsort(order, axis=-1)
    return SortOrder(order, np.take_along_axis(first, back, -1), np.take_along_axis(past, back, -1))


def take_per_row(values: Floats, places: Indexes) -> Floats:
    """`values` (groups, weightings, rows, points) at each row's `places`, for all weightings."""
    groups, weightings, rows, _ = values.shape
    if weightings == 1:
        return np.take_along_axis(values, places, -1)
    # several times faster than take_along_axis, which builds an index for every number
    picked = np.empty((groups, weightings, rows, places.shape[-1]))
    for g in range(groups):
        for row in range(rows):
            np.take(
                values[g, :, row], places[g, 0, row], axis=-1, mode="clip", out=picked[g, :, row]
            )
    return picked


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSpearman:
    """Spearman's rho of prepared rows; call it with weights (groups, weightings, points).

    Gives (groups, weightings, rows); NaN where a row's weighted points are constant or under two.
    Weights are counts: how often each point was drawn.
    """

    known: Floats  # (groups, 1, rows, points): 1 where both numbers are there, else 0
    x: SortOrder
    y: SortOrder

    def __call__(self, weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * self.known
        total = counts.sum(-1, keepdims=True)
        x, y = (sum(order.weights_below(counts)) - total for order in (self.x, self.y))
        xx, yy, xy = (_weighted_sum(counts, a, b) for a, b in ((x, x), (y, y), (x, y)))
        scale = np.sqrt(xx * yy)
        varies = scale > 0
        rho: Floats = np.where(varies, xy / np.where(varies, scale, 1.0), np.nan).clip(-1.0, 1.0)
        return rho


def _weighted_sum(counts: Floats, x: Floats, y: Floats) -> Floats:
    total: Floats = np.einsum("...i,...i,...i->...", counts, x, y)
    return total


def prepare_spearman(x: Floats, y: Floats) -> WeightedSpearman:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted."""
    x, y = mask_unpaired(x, y)
    known = (~np.isnan(x)).astype(np.float64)[:, None]
    return WeightedSpearman(known, sort_order(x), sort_order(y))


def ranks(x: ArrayLike) -> Floats:
    """Ranks from 1 along the last axis; equal numbers share the mean of theirs, NaN stays NaN.

    >>> ranks([30, 10, 10, 20])
    array([4. , 1.5, 1.5, 3. ])
    """
    values = np.atleast_1d(as_floats(x, "x"))
    order = sort_order(values.reshape(1, -1, values.shape[-1]))
    middle = (order.first + order.past + 1) / 2
    return np.where(np.isnan(values), np.nan, middle.reshape(values.shape))
