"""Ranks, and Spearman's correlation of many rows under many weightings.

A point drawn three times holds three ranks, so ranks under weights are running sums of the weights
in sorted order: one sort serves every resample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.stats.arrays import Floats, Indexes, as_floats, matched


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The sorted order of rows, and between which places each point's equals lie.

    All are (groups, 1, rows, points): `order` sorts; a point and its equals fill the sorted places
    from `first` up to, not including, `past`. NaN sorts last, each for itself.
    """

    order: Indexes
    first: Indexes
    past: Indexes

    def below(self, weights: Floats) -> tuple[Floats, Floats]:
        """For each point the weight of what is smaller, and of what is smaller or equal."""
        running = np.zeros((*weights.shape[:-1], weights.shape[-1] + 1))
        np.cumsum(pick(weights, self.order), axis=-1, out=running[..., 1:])
        return pick(running, self.first), pick(running, self.past)


def order_of(x: Floats) -> Order:
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
    return Order(order, np.take_along_axis(first, back, -1), np.take_along_axis(past, back, -1))


def pick(values: Floats, places: Indexes) -> Floats:
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
class RankMoments:
    """Spearman's rho of prepared rows; call it with weights (groups, weightings, points).

    Gives (groups, weightings, rows); NaN where a row's weighted points are constant or under two.
    Weights are counts: how often each point was drawn.
    """

    known: Floats  # (groups, 1, rows, points): 1 where both numbers are there, else 0
    x: Order
    y: Order

    def __call__(self, weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * self.known
        total = counts.sum(-1, keepdims=True)
        x, y = (sum(order.below(counts)) - total for order in (self.x, self.y))
        xx, yy, xy = (_total(counts, a, b) for a, b in ((x, x), (y, y), (x, y)))
        scale = np.sqrt(xx * yy)
        varies = scale > 0
        rho: Floats = np.where(varies, xy / np.where(varies, scale, 1.0), np.nan).clip(-1.0, 1.0)
        return rho


def _total(counts: Floats, x: Floats, y: Floats) -> Floats:
    total: Floats = np.einsum("...i,...i,...i->...", counts, x, y)
    return total


def rank_moments(x: Floats, y: Floats) -> RankMoments:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted."""
    x, y = matched(x, y)
    known = (~np.isnan(x)).astype(np.float64)[:, None]
    return RankMoments(known, order_of(x), order_of(y))


def ranks(x: ArrayLike) -> Floats:
    """Ranks from 1 along the last axis; equal numbers share the mean of theirs, NaN stays NaN.

    >>> ranks([30, 10, 10, 20])
    array([4. , 1.5, 1.5, 3. ])
    """
    values = np.atleast_1d(as_floats(x, "x"))
    order = order_of(values.reshape(1, -1, values.shape[-1]))
    middle = (order.first + order.past + 1) / 2
    return np.where(np.isnan(values), np.nan, middle.reshape(values.shape))
