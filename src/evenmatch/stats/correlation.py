"""Weighted Pearson and Spearman correlations, and ranks.

A bootstrap resample is a vector of weights: how often each point was drawn. Both coefficients take
many weight vectors at once, so that resampling needs no Python loop:

- Pearson: one matrix product of the weights with six columns per row (1, x, y, x², y², xy).
- Spearman: a point drawn three times occupies three ranks, so weighted ranks are cumulative sums of
  the weights in sorted order. The rows are sorted once for all resamples.

Shapes: *groups* are independent problems, *weightings* are weight vectors, *rows* are the lists
that are correlated and *points* are their entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.stats.panel import Floats, Indexes, as_floats, mask_unpaired

# A variance computed as a difference of squares counts as 0 up to this share of the squares.
_ROUNDING = 1e-13


def prepare_pearson(x: Floats, y: Floats) -> Callable[[Floats], Floats]:
    """Prepare Pearson's r of rows (groups, rows, points); NaN marks a missing number.

    The result maps weights (groups, weightings, points) to r (groups, weightings, rows); NaN for a
    row that has fewer than two points under the weights, or only equal ones.
    """
    x, y = mask_unpaired(x, y)
    known = ~np.isnan(x)
    x, y = centre_and_scale(x), centre_and_scale(y)
    columns = np.stack([known.astype(np.float64), x, y, x * x, y * y, x * y], axis=1)
    groups, _, rows, points = columns.shape
    table = np.ascontiguousarray(columns.reshape(groups, 6 * rows, points).swapaxes(1, 2))

    def pearson(weights: Floats) -> Floats:
        sums = weights @ table
        return pearson_from_sums(*np.moveaxis(sums.reshape(*sums.shape[:-1], 6, -1), -2, 0))

    return pearson


def pearson_from_sums(
    n: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats
) -> Floats:
    """Compute Pearson's r from the number of points and their sums; NaN if x or y is constant."""
    x_variance, y_variance = n * xx - x * x, n * yy - y * y
    varies = (x_variance > _ROUNDING * n * xx) & (y_variance > _ROUNDING * n * yy)
    scale = np.sqrt(np.where(varies, x_variance * y_variance, 1.0))
    return np.where(varies, (n * xy - x * y) / scale, np.nan).clip(-1.0, 1.0)


def centre_and_scale(x: Floats) -> Floats:
    """Shift and scale each row to mean 0 within ±2; constant rows and NaN become 0.

    Correlations are invariant to this, and squares of the result neither overflow nor cancel.
    """
    known = ~np.isnan(x)
    low = np.where(known, x, np.inf).min(-1, keepdims=True, initial=np.inf)
    high = np.where(known, x, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    varies = known & (low < high)
    low, high = np.where(low < high, low, 0.0), np.where(low < high, high, 2.0)
    # halve first, because the difference of two huge numbers overflows
    half, middle = high / 2 - low / 2, high / 2 + low / 2
    inside = np.where(varies, x - middle, 0.0) / np.where(half > 0, half, 1.0)
    mean = inside.sum(-1, keepdims=True) / np.maximum(known.sum(-1, keepdims=True), 1)
    return np.where(varies, inside - mean, 0.0)


def prepare_spearman(x: Floats, y: Floats) -> Callable[[Floats], Floats]:
    """Prepare Spearman's rho of rows, like `prepare_pearson`; weights are counts of draws."""
    x, y = mask_unpaired(x, y)
    known = (~np.isnan(x)).astype(np.float64)[:, None]
    x_order, y_order = sort_order(x), sort_order(y)

    def spearman(weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * known
        total = counts.sum(-1, keepdims=True)
        x, y = (sum(order.weights_below(counts)) - total for order in (x_order, y_order))
        products = ((x, x), (y, y), (x, y))
        xx, yy, xy = (np.einsum("...i,...i,...i->...", counts, a, b) for a, b in products)
        scale = np.sqrt(xx * yy)
        varies = scale > 0
        return np.where(varies, xy / np.where(varies, scale, 1.0), np.nan).clip(-1.0, 1.0)

    return spearman


def ranks(x: ArrayLike) -> Floats:
    """Rank along the last axis, starting at 1; ties share their mean rank and NaN stays NaN.

    >>> ranks([30, 10, 10, 20])
    array([4. , 1.5, 1.5, 3. ])
    """
    values = np.atleast_1d(as_floats(x, "x"))
    order = sort_order(values.reshape(1, -1, values.shape[-1]))
    middle = (order.first + order.past + 1) / 2
    return np.where(np.isnan(values), np.nan, middle.reshape(values.shape))


@dataclass(frozen=True, slots=True, eq=False)
class SortOrder:
    """Sorting permutation of rows, with the range of ties of each point.

    All arrays have shape (groups, 1, rows, points). `order` sorts a row. A point and the points
    equal to it occupy the sorted positions from `first` up to, but not including, `past`. NaNs
    sort last and are not tied with each other.
    """

    order: Indexes
    first: Indexes
    past: Indexes

    def weights_below(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return, for each point, the weight of smaller points and of smaller or equal ones."""
        running = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1))
        np.cumsum(take_per_row(weights, self.order), axis=-1, out=running[..., 1:])
        return take_per_row(running, self.first), take_per_row(running, self.past)


def sort_order(x: Floats) -> SortOrder:
    """Sort each row of `x` (groups, rows, points) and find its ties."""
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
    """Index `values` (groups, weightings, rows, points) by each row's `places`."""
    groups, weightings, rows, _ = values.shape
    if weightings == 1:
        return np.take_along_axis(values, places, -1)
    # several times faster than take_along_axis, which builds an index for every element
    picked = np.empty((groups, weightings, rows, places.shape[-1]))
    for g in range(groups):
        for row in range(rows):
            np.take(
                values[g, :, row], places[g, 0, row], axis=-1, mode="clip", out=picked[g, :, row]
            )
    return picked
