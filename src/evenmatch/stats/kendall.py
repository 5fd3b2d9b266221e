"""Kendall's tau and pairwise accuracy of many rows under many weightings.

Whether two points agree is a matrix over points, and its sum over the pairs of a resample a
quadratic form in how often each was drawn: w·A·w, again a matrix product.

Pairwise accuracy with the tie threshold that suits a metric best.

People tie, metrics with many decimals never do. Deutsch, Foster & Freitag (2023) call two scores of
a metric tied if they differ by at most epsilon, and choose the epsilon of greatest accuracy: one
for all rows, so that what is maximised is the mean over rows.

Judgements of two outputs of one segment: which is better, and does a metric say so too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.correlation import SortOrder, sort_order
from evenmatch.stats.panel import (
    Flags,
    Floats,
    Indexes,
    as_floats,
    as_pair,
    blocks,
    mask_unpaired,
    round_to_scale,
)

KendallVariant: TypeAlias = Literal["b", "c"]


# With more points than this, sorting every resample anew is faster than n² products.
_MANY_POINTS = 4000


# And with more points than this for each weighting, the matrix costs more than it saves.
_POINTS_PER_WEIGHTING = 50


@dataclass(frozen=True, slots=True, eq=False)
class WeightedKendall:
    """Tau-b or tau-c of prepared rows; call it with weights (groups, weightings, points).

    Gives (groups, weightings, rows); NaN where a row's weighted points are constant or under two.
    Weights are counts: copies of one point are tied with each other.
    """

    x: Floats
    y: Floats
    x_order: SortOrder
    y_order: SortOrder
    variant: KendallVariant

    def __call__(self, weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * ~np.isnan(self.x[:, None])
        total = counts.sum(-1)
        x_equal, y_equal = _tied_weights(self.x_order, counts), _tied_weights(self.y_order, counts)
        # twice the number of pairs that x, or y, tells apart
        x_pairs = total**2 - (counts * x_equal).sum(-1)
        y_pairs = total**2 - (counts * y_equal).sum(-1)
        scale = np.sqrt(x_pairs * y_pairs)
        surplus = self._surplus(weights, scale)
        if self.variant == "c":
            kinds = np.minimum(
                _count_distinct(counts, x_equal), _count_distinct(counts, y_equal)
            ).clip(1)
            scale = total**2 * (kinds - 1) / kinds
        varies = (x_pairs > 0) & (y_pairs > 0)
        tau: Floats = np.where(varies, surplus / np.where(varies, scale, 1.0), np.nan)
        return tau.clip(-1.0, 1.0)

    def _surplus(self, weights: Floats, scale: Floats) -> Floats:
        """Twice the concordant pairs less twice the discordant ones."""
        points = self.x.shape[-1]
        if points > _MANY_POINTS or points > _POINTS_PER_WEIGHTING * weights.shape[1]:
            return np.rint(_tau_by_sorting(self.x, self.y, weights) * scale)
        return _sum_over_pairs(weights, self._signs, self.x.shape)

    def _signs(self, some: slice) -> NDArray[np.int8]:
        return _sign(self.x, some) * _sign(self.y, some)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedAccuracy:
    """The share of pairs that x and y order alike; call it with weights as `Kendall`.

    A pair tied in both counts as ordered alike; in x it is tied where it differs by no more than
    `tied`. NaN where there is no pair.
    """

    x: Floats
    y: Floats
    tie_threshold: float

    def __call__(self, weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * ~np.isnan(self.x[:, None])
        # copies of a point make no pair
        pairs = counts.sum(-1) ** 2 - (counts**2).sum(-1)
        alike = _sum_over_pairs(weights, self._agreements, self.x.shape)
        return np.where(pairs > 0, alike / np.where(pairs > 0, pairs, 1.0), np.nan)

    def _agreements(self, some: slice) -> Flags:
        known = ~np.isnan(self.x)
        alike: Flags = _sign(self.x, some, self.tie_threshold) == _sign(self.y, some)
        alike &= known[..., some, None] & known[..., None, :]
        alike[..., np.arange(alike.shape[-2]), np.arange(some.start, some.stop)] = False
        return alike


def prepare_kendall(x: Floats, y: Floats, variant: KendallVariant = "b") -> WeightedKendall:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted."""
    x, y = mask_unpaired(x, y)
    return WeightedKendall(x, y, sort_order(x), sort_order(y), variant)


def prepare_accuracy(x: Floats, y: Floats, epsilon: float = 0.0) -> WeightedAccuracy:
    """Rows (groups, rows, points), NaN where missing, ready to be weighted.

    Scores of x that differ by at most `epsilon` are tied.
    """
    x, y = mask_unpaired(x, y)
    largest = abs(x).max(initial=0.0, where=~np.isnan(x))
    # more than rounding adds to a difference, less than tells scores apart
    slack = largest * 2.0**-38 if epsilon > 0 else 0.0
    return WeightedAccuracy(x, y, epsilon + slack)


def _tied_weights(order: SortOrder, counts: Floats) -> Floats:
    """For each point the weight of itself and its equals."""
    below, up_to = order.weights_below(counts)
    return up_to - below


def _count_distinct(counts: Floats, equal: Floats) -> Floats:
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


def _sum_over_pairs(
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


_MAX_PAIRS = 10_000_000


# Sums of the same terms in another order differ by less; the lower threshold is then as good.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SortedPairs:
    """The pairs of points of all rows of one metric, those that become tied first in front.

    Only pairs whose tying matters: it is wrong for one the metric orders as people do, and right
    for one that people tie.
    """

    row: Indexes
    first: Indexes
    second: Indexes
    gain: Floats  # what tying the pair adds: 1 or -1
    thresholds: Floats  # 0 and every difference there is
    ends: Indexes  # how many of the pairs each threshold ties
    known: Floats  # (rows, points): 1 where both numbers are there, else 0

    def best_accuracy(self, points: Floats, rows: Floats) -> Floats:
        """The greatest accuracy that a threshold gives, for each weighting.

        `points` (weightings, points) are counts, `rows` (weightings, rows) what each row counts;
        either may have one weighting for all of the other's. NaN where no row has a pair.
        """
        untied, tied = self._accuracy(points, rows)
        accuracy: Floats = (untied + tied.max(0)).clip(0.0, 1.0)
        return accuracy

    def best_threshold(self, points: Floats, rows: Floats) -> Floats:
        """The lowest threshold that gives the greatest accuracy, for each weighting."""
        untied, tied = self._accuracy(points, rows)
        lowest = self.thresholds[(tied >= tied.max(0) - _ROUNDING).argmax(0)]
        return np.where(np.isnan(untied), np.nan, lowest)

    def _accuracy(self, points: Floats, rows: Floats) -> tuple[Floats, Floats]:
        """The accuracy without ties, and what each threshold (by row) adds to it."""
        shares = self._shares(points, rows)
        # weightings last: then a pair's weights lie side by side, and sums run over pairs
        gains = np.zeros((len(self.row) + 1, len(shares)))
        np.multiply(shares.T[self.row], self.gain[:, None], out=gains[1:])
        gains[1:] *= points.T[self.first] * points.T[self.second]
        untied = np.where(shares.any(-1), -np.minimum(gains, 0.0).sum(0), np.nan)
        np.cumsum(gains, axis=0, out=gains)
        return untied, gains[self.ends] if len(self.ends) < len(gains) else gains

    def _shares(self, points: Floats, rows: Floats) -> Floats:
        """What one pair of each row adds to the mean over rows; rows without pairs add nothing."""
        pairs = ((points @ self.known.T) ** 2 - points**2 @ self.known.T) / 2
        counted = np.where(pairs > 0, rows, 0.0)
        total = counted.sum(-1, keepdims=True)
        shares: Floats = counted / np.where(pairs > 0, pairs, 1.0) / np.where(total > 0, total, 1.0)
        return shares


def sorted_pairs(x: Floats, y: Floats) -> SortedPairs:
    """The pairs of one metric's rows `x` with people's `y`, both (rows, points)."""
    x, y = mask_unpaired(x, y)
    if (count := len(x) * x.shape[-1] * (x.shape[-1] - 1) // 2) > _MAX_PAIRS:
        raise InputError(
            f"ties cannot be calibrated over {count:,} pairs, the most is {_MAX_PAIRS:,}; "
            "take the level per_item, which compares within a segment"
        )
    one, other = np.triu_indices(x.shape[-1], 1)
    difference, human = x[:, one] - x[:, other], y[:, one] - y[:, other]
    gain = (human == 0).astype(np.float64) - (np.sign(difference) * np.sign(human) > 0)
    # stable, so that equal differences keep their order and reruns agree
    order = np.argsort(abs(difference), axis=None, kind="stable")
    row, pair = np.unravel_index(order[gain.ravel()[order] != 0], gain.shape)
    size = np.append(0.0, abs(difference[row, pair]))
    same = round_to_scale(size, abs(x).max(initial=0.0, where=~np.isnan(x)))
    ends = np.unique(np.searchsorted(same, same, side="right")) - 1
    thresholds = size[ends]
    known = (~np.isnan(x)).astype(np.float64)
    return SortedPairs(row, one[pair], other[pair], gain[row, pair], thresholds, ends, known)


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedAccuracy:
    """Calibrated accuracy of metrics' rows; call it with weights of points and of rows."""

    pairs: tuple[tuple[SortedPairs, ...], ...]  # by group and metric

    def __call__(self, points: Floats, rows: Floats) -> Floats:
        """(groups, weightings, points) and (weightings, rows) to (weightings, metrics)."""
        each = [
            np.stack([_best_accuracy(pairs, weights, rows) for pairs in metrics], axis=-1)
            for metrics, weights in zip(self.pairs, points, strict=True)
        ]
        return np.concatenate(each)


def prepare_calibrated_accuracy(x: Floats, y: Floats) -> CalibratedAccuracy:
    """Rows (groups, metrics, rows, points) of x and (groups, rows, points) of y, prepared."""
    return CalibratedAccuracy(
        tuple(
            tuple(sorted_pairs(metric, human) for metric in metrics)
            for metrics, human in zip(x, y, strict=True)
        )
    )


def _best_accuracy(pairs: SortedPairs, points: Floats, rows: Floats) -> Floats:
    parts = []
    for some in blocks(max(len(points), len(rows)), len(pairs.row) + pairs.known.size):
        some_points = points[some] if len(points) > 1 else points
        some_rows = rows[some] if len(rows) > 1 else rows
        parts.append(pairs.best_accuracy(some_points, some_rows))
    return np.concatenate(parts)


# What becomes of a pair that the metric ties; WMT has had all three.
TieHandling: TypeAlias = Literal["discordant", "neutral", "ignored"]


def preferences(human: ArrayLike, *, at_least: float = 25.0) -> tuple[Indexes, Indexes, Indexes]:
    """Relative ranks from ratings (systems, segments): better system, worse system, segment.

    Two outputs of a segment are ranked where their ratings differ by `at_least`, which must be
    above 0; 25 of 100 points is WMT's (DARR).

    >>> preferences([[90, 40], [60, 40], [50, 80]])
    (array([0, 0, 2, 2]), array([1, 2, 0, 1]), array([0, 0, 1, 1]))
    """
    ratings = as_floats(human, "human")
    if ratings.ndim != 2 or not at_least > 0:
        raise InputError(
            f"human has shape {ratings.shape} and ranks a difference of {at_least}; "
            "give systems × segments and a difference above 0"
        )
    difference = ratings[:, None] - ratings[None]
    segment, better, worse = np.nonzero(np.moveaxis(difference >= at_least, -1, 0))
    return better, worse, segment


def kendall_like(better: ArrayLike, worse: ArrayLike, *, tied: TieHandling = "discordant") -> float:
    """WMT's tau over relative ranks: concordant less discordant, over both.

    Takes a metric's scores of the outputs people found better and worse, side by side. Where the
    metric ties them, the pair counts against it (as in WMT20), as half a success (`neutral`), or
    not at all. NaN without pairs; pairs with a missing score are left out.

    >>> kendall_like([0.9, 0.8, 0.5, 0.7], [0.5, 0.6, 0.5, 0.8])
    0.0
    >>> kendall_like([0.9, 0.8, 0.5, 0.7], [0.5, 0.6, 0.5, 0.8], tied="neutral")
    0.25
    """
    surplus, pairs = pair_outcomes(better, worse, tied=tied).sum(0)
    return float(surplus / pairs) if pairs else float("nan")


def pair_outcomes(
    better: ArrayLike, worse: ArrayLike, *, tied: TieHandling = "discordant"
) -> Floats:
    """For each pair 1, 0 or -1 and whether it counts: rows whose totals give `kendall_like`.

    Summed by segment they are what `totals.score_interval` resamples.

    >>> pair_outcomes([0.9, 0.5], [0.5, 0.5], tied="ignored")
    array([[1., 1.],
           [0., 0.]])
    """
    if tied not in get_args(TieHandling):
        raise UnknownNameError(
            f"a tie cannot be {tied!r}; known: {', '.join(get_args(TieHandling))}"
        )
    above, below = as_pair(better, worse)
    known = ~np.isnan(above)
    surplus = np.sign(np.where(known, above, 0.0) - np.where(known, below, 0.0))
    even = known & (surplus == 0)
    if tied == "discordant":
        surplus = np.where(even, -1.0, surplus)
    counts = known & ~even if tied == "ignored" else known
    return np.stack([surplus, counts.astype(np.float64)], axis=-1)


def count_agreeing_pairs(metric: ArrayLike, human: ArrayLike) -> tuple[int, int]:
    """How many pairs of systems a metric and people order alike, and how many there are.

    >>> count_agreeing_pairs([1, 2, 3], [1, 3, 2])
    (2, 3)
    """
    x, y = as_pair(metric, human)
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    one, other = np.triu_indices(len(x), 1)
    alike = np.sign(x[one] - x[other]) == np.sign(y[one] - y[other])
    return int(alike.sum()), len(one)


def pooled_accuracy(tasks: Sequence[tuple[ArrayLike, ArrayLike]]) -> float:
    """The share of system pairs ordered alike over several tasks, such as language pairs.

    Kocmi et al. (2021): every pair of one task counts the same; systems of two tasks are not
    compared. NaN without pairs.

    >>> pooled_accuracy([([1, 2, 3], [1, 3, 2]), ([5, 4], [2, 1])])
    0.75
    """
    counts = [count_agreeing_pairs(metric, human) for metric, human in tasks]
    pairs = sum(total for _, total in counts)
    return sum(alike for alike, _ in counts) / pairs if pairs else float("nan")
