"""Pairwise accuracy with the tie threshold that suits a metric best.

People tie, metrics with many decimals never do. Deutsch, Foster & Freitag (2023) call two scores of
a metric tied if they differ by at most epsilon, and choose the epsilon of greatest accuracy: one
for all rows, so that what is maximised is the mean over rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, Indexes, blocks, matched, rounded

_MOST_PAIRS = 10_000_000
# Sums of the same terms in another order differ by less; the lower threshold is then as good.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SortedPairs:
    """The pairs of points of all rows of one metric, those that become tied first in front.

    Only pairs whose tying matters: it is wrong for one the metric orders as people do, and right
    for one that people tie.
    """

    row: Indexes
    one: Indexes
    other: Indexes
    gain: Floats  # what tying the pair adds: 1 or -1
    thresholds: Floats  # 0 and every difference there is
    ends: Indexes  # how many of the pairs each threshold ties
    known: Floats  # (rows, points): 1 where both numbers are there, else 0

    def best(self, points: Floats, rows: Floats) -> Floats:
        """The greatest accuracy that a threshold gives, for each weighting.

        `points` (weightings, points) are counts, `rows` (weightings, rows) what each row counts;
        either may have one weighting for all of the other's. NaN where no row has a pair.
        """
        untied, tied = self._accuracy(points, rows)
        accuracy: Floats = (untied + tied.max(0)).clip(0.0, 1.0)
        return accuracy

    def threshold(self, points: Floats, rows: Floats) -> Floats:
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
        gains[1:] *= points.T[self.one] * points.T[self.other]
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
    x, y = matched(x, y)
    if (count := len(x) * x.shape[-1] * (x.shape[-1] - 1) // 2) > _MOST_PAIRS:
        raise InputError(
            f"ties cannot be calibrated over {count:,} pairs, the most is {_MOST_PAIRS:,}; "
            "take the level per_item, which compares within a segment"
        )
    one, other = np.triu_indices(x.shape[-1], 1)
    difference, human = x[:, one] - x[:, other], y[:, one] - y[:, other]
    gain = (human == 0).astype(np.float64) - (np.sign(difference) * np.sign(human) > 0)
    # stable, so that equal differences keep their order and reruns agree
    order = np.argsort(abs(difference), axis=None, kind="stable")
    row, pair = np.unravel_index(order[gain.ravel()[order] != 0], gain.shape)
    size = np.append(0.0, abs(difference[row, pair]))
    same = rounded(size, abs(x).max(initial=0.0, where=~np.isnan(x)))
    ends = np.unique(np.searchsorted(same, same, side="right")) - 1
    thresholds = size[ends]
    known = (~np.isnan(x)).astype(np.float64)
    return SortedPairs(row, one[pair], other[pair], gain[row, pair], thresholds, ends, known)


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Calibrated accuracy of metrics' rows; call it with weights of points and of rows."""

    pairs: tuple[tuple[SortedPairs, ...], ...]  # by group and metric

    def __call__(self, points: Floats, rows: Floats) -> Floats:
        """(groups, weightings, points) and (weightings, rows) to (weightings, metrics)."""
        each = [
            np.stack([_best(pairs, weights, rows) for pairs in metrics], axis=-1)
            for metrics, weights in zip(self.pairs, points, strict=True)
        ]
        return np.concatenate(each)


def calibrated(x: Floats, y: Floats) -> Calibrated:
    """Rows (groups, metrics, rows, points) of x and (groups, rows, points) of y, prepared."""
    return Calibrated(
        tuple(
            tuple(sorted_pairs(metric, human) for metric in metrics)
            for metrics, human in zip(x, y, strict=True)
        )
    )


def _best(pairs: SortedPairs, points: Floats, rows: Floats) -> Floats:
    parts = []
    for some in blocks(max(len(points), len(rows)), len(pairs.row) + pairs.known.size):
        some_points = points[some] if len(points) > 1 else points
        some_rows = rows[some] if len(rows) > 1 else rows
        parts.append(pairs.best(some_points, some_rows))
    return np.concatenate(parts)
