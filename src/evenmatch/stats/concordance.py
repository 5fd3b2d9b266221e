"""Kendall's tau and pairwise accuracy of many rows under many weightings.

Whether two points agree is a matrix over points, and its sum over the pairs of a resample a
quadratic form in how often each was drawn: w·A·w, again a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenmatch.stats.arrays import Flags, Floats, blocks, matched
from evenmatch.stats.ranks import Order, order_of

Variant: TypeAlias = Literal["b", "c"]

# With more points than this, sorting every resample anew is faster than n² products.
_MANY_POINTS = 4000
# And with more points than this for each weighting, the matrix costs more than it saves.
_POINTS_PER_WEIGHTING = 50


@dataclass(frozen=True, slots=True, eq=False)
class Kendall:
    """Tau-b or tau-c of prepared rows; call it with weights (groups, weightings, points).

    Gives (groups, weightings, rows); NaN where a row's weighted points are constant or under two.
    Weights are counts: copies of one point are tied with each other.
    """

    x: Floats
    y: Floats
    x_order: Order
    y_order: Order
    variant: Variant

    def __call__(self, weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * ~np.isnan(self.x[:, None])
        total = counts.sum(-1)
        x_equal, y_equal = _equal(self.x_order, counts), _equal(self.y_order, counts)
        # twice the number of pairs that x, or y, tells apart
        x_pairs = total**2 - (counts * x_equal).sum(-1)
        y_pairs = total**2 - (counts * y_equal).sum(-1)
        scale = np.sqrt(x_pairs * y_pairs)
        surplus = self._surplus(weights, scale)
        if self.variant == "c":
            kinds = np.minimum(_kinds(counts, x_equal), _kinds(counts, y_equal)).clip(1)
            scale = total**2 * (kinds - 1) / kinds
        varies = (x_pairs > 0) & (y_pairs > 0)
        tau: Floats = np.where(varies, surplus / np.where(varies, scale, 1.0), np.nan)
        return tau.clip(-1.0, 1.0)

    def _surplus(self, weights: Floats, scale: Floats) -> Floats:
        """Twice the concordant pairs less twice the discordant ones."""
        points = self.x.shape[-1]
        if points > _MANY_POINTS or points > _POINTS_PER_WEIGHTING * weights.shape[1]:
            return np.rint(_tau_by_sorting(self.x, self.y, weights) * scale)
        return _over_pairs(weights, self._signs, self.x.shape)

    def _signs(self, some: slice) -> NDArray[np.int8]:
        return _sign(self.x, some) * _sign(self.y, some)


@dataclass(frozen=True, slots=True, eq=False)
class Accuracy:
    """The share of pairs that x and y order alike; call it with weights as `Kendall`.

    A pair tied in both counts as ordered alike; in x it is tied where it differs by no more than
    `tied`. NaN where there is no pair.
    """

    x: Floats
    y: Floats
    tied: float

    def __call__(self, weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * ~np.isnan(self.x[:, None])
        # copies of a point make no pair
        pairs = counts.sum(-1) ** 2 - (counts**2).sum(-1)
        alike = _over_pairs(weights, self._alike, self.x.shape)
        return np.where(pairs > 0, alike / np.where(pairs > 0, pairs, 1.0), np.nan)

    def _alike(self, some: slice) -> Flags:
        known = ~np.isnan(self.x)
        alike: Flags = _sign(self.x, some, self.tied) == _sign(self.y, some)
        alike &= known[..., some, None] & known[..., None, :]
        alike[..., np.arange(alike.shape[-2]), np.arange(some.start, some.stop)] = False
        return alike


def kendall(x: Floats, y: Floats, variant: Variant = "b") -> Kendall:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted."""
    x, y = matched(x, y)
    return Kendall(x, y, order_of(x), order_of(y), variant)


def accuracy(x: Floats, y: Floats, epsilon: float = 0.0) -> Accuracy:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted.

    Scores of x that differ by at most `epsilon` are tied.
    """
    x, y = matched(x, y)
    largest = abs(x).max(initial=0.0, where=~np.isnan(x))
    # more than rounding adds to a difference, less than tells scores apart
    slack = largest * 2.0**-38 if epsilon > 0 else 0.0
    return Accuracy(x, y, epsilon + slack)


def _equal(order: Order, counts: Floats) -> Floats:
    """For each point the weight of itself and its equals."""
    below, up_to = order.below(counts)
    return up_to - below


def _kinds(counts: Floats, equal: Floats) -> Floats:
    """How many different values were drawn: the points of each share one among them."""
    kinds: Floats = np.rint(
        np.where(counts > 0, counts / np.where(equal > 0, equal, 1.0), 0).sum(-1)
    )
    return kinds


def _sign(x: Floats, some: slice, epsilon: float = 0.0) -> NDArray[np.int8]:
    """1 where a point of `some` is above another, -1 where below, 0 where tied or missing."""
    these, others = x[..., some, None], x[..., None, :]
    above, below = these > others + epsilon, these < others - epsilon
    return above.astype(np.int8) - below.astype(np.int8)


def _over_pairs(
    weights: Floats,
    matrix: Callable[[slice], NDArray[np.int8] | Flags],
    shape: tuple[int, ...],
) -> Floats:
    """w·A·w for every weighting and row, with some rows of each A at a time."""
    groups, rows, points = shape
    total = np.zeros((groups, weights.shape[1], rows))
    # counts and their sums over points are whole numbers far below 2²⁴: exact in single precision
    single = weights.astype(np.float32)[:, None]
    for some in blocks(points, groups * rows * max(points, weights.shape[1])):
        each = single @ matrix(some).astype(np.float32).swapaxes(-1, -2)
        total += np.einsum("grwi,gwi->gwr", each, weights[..., some], dtype=np.float64)
    return total


def _tau_by_sorting(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Tau-b by SciPy's n log n algorithm, one resample after another; 0 where it has none."""
    from scipy.stats import kendalltau

    tau = np.zeros((weights.shape[0], weights.shape[1], x.shape[1]))
    known = ~np.isnan(x)
    for g, w, row in np.ndindex(*tau.shape):
        drawn = np.repeat(np.flatnonzero(known[g, row]), weights[g, w, known[g, row]].astype(int))
        tau[g, w, row] = kendalltau(x[g, row, drawn], y[g, row, drawn], method="asymptotic")[0]
    return np.nan_to_num(tau)
