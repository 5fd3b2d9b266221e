"""Statistics over pairs of points: Kendall's tau and pairwise accuracy.

- `prepare_kendall`, `prepare_accuracy`: weighted tau and pairwise accuracy of many rows. Whether
  two points agree is a matrix A over points. Its sum over the pairs of a resample is the quadratic
  form w·A·w in the weights (how often each point was drawn), which is a matrix product.
- `prepare_calibrated_accuracy`: pairwise accuracy with tie calibration (Deutsch, Foster & Freitag
  2023). Humans give ties; metrics with many decimals do not. Two scores of a metric are tied if
  they differ by at most epsilon. One epsilon for all rows maximises the mean accuracy over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.stats.correlation import SortOrder, sort_order
from evenmatch.stats.panel import Flags, Floats, blocks, mask_unpaired, round_to_scale

# With more points than this, sorting each resample is faster than n² products.
_MANY_POINTS = 4000

# With more points per weighting than this, building the matrix costs more than it saves.
_POINTS_PER_WEIGHTING = 50

# Tie calibration stores every pair of points, so their number is limited.
_MAX_PAIRS = 10_000_000


def prepare_kendall(
    x: Floats, y: Floats, variant: Literal["b", "c"] = "b"
) -> Callable[[Floats], Floats]:
    """Prepare Kendall's tau of rows (groups, rows, points); NaN marks a missing number.

    The result maps weights (groups, weightings, points) to tau (groups, weightings, rows); NaN for
    a row that has fewer than two points under the weights, or only equal ones. Weights are counts;
    copies of a point are tied with each other.
    """
    x, y = mask_unpaired(x, y)
    known = ~np.isnan(x)[:, None]
    points = x.shape[-1]
    x_order, y_order = sort_order(x), sort_order(y)

    def kendall(weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * known
        total = counts.sum(-1)
        x_equal, y_equal = _tied_weights(x_order, counts), _tied_weights(y_order, counts)
        # twice the number of pairs that are not tied in x, or in y
        x_pairs = total**2 - (counts * x_equal).sum(-1)
        y_pairs = total**2 - (counts * y_equal).sum(-1)
        scale = np.sqrt(x_pairs * y_pairs)
        # twice the number of concordant pairs minus twice that of discordant pairs
        if points > _MANY_POINTS or points > _POINTS_PER_WEIGHTING * weights.shape[1]:
            surplus = np.rint(_tau_by_sorting(x, y, weights) * scale)
        else:
            surplus = _sum_over_pairs(weights, lambda b: _sign(x, b) * _sign(y, b), x.shape)
        if variant == "c":
            distinct = np.minimum(
                _count_distinct(counts, x_equal), _count_distinct(counts, y_equal)
            ).clip(1)
            scale = total**2 * (distinct - 1) / distinct
        varies = (x_pairs > 0) & (y_pairs > 0)
        tau: Floats = np.where(varies, surplus / np.where(varies, scale, 1.0), np.nan)
        return tau.clip(-1.0, 1.0)

    return kendall


def prepare_accuracy(x: Floats, y: Floats, *, untied: bool = False) -> Callable[[Floats], Floats]:
    """Prepare the share of pairs that x and y order the same way, like `prepare_kendall`.

    A pair tied in both x and y counts as agreement; with `untied` only pairs that y orders count.
    NaN where there is no pair.
    """
    x, y = mask_unpaired(x, y)
    known = ~np.isnan(x)
    y_order = sort_order(y)

    def agreements(some: slice) -> Flags:
        order = _sign(y, some)
        alike: Flags = _sign(x, some) == order
        alike &= known[..., some, None] & known[..., None, :]
        if untied:
            alike &= order != 0
            return alike
        alike[..., np.arange(alike.shape[-2]), np.arange(some.start, some.stop)] = False
        return alike

    def accuracy(weights: Floats) -> Floats:
        counts = weights[:, :, None, :] * known[:, None]
        # copies of a point do not form a pair
        equal = _tied_weights(y_order, counts) if untied else counts
        pairs = counts.sum(-1) ** 2 - (counts * equal).sum(-1)
        alike = _sum_over_pairs(weights, agreements, x.shape)
        return np.where(pairs > 0, alike / np.where(pairs > 0, pairs, 1.0), np.nan)

    return accuracy


def prepare_calibrated_accuracy(x: Floats, y: Floats) -> Callable[[Floats, Floats], Floats]:
    """Prepare calibrated accuracy: x (groups, metrics, rows, points), y (groups, rows, points).

    The result maps weights of points (groups, weightings, points) and of rows (weightings, rows) to
    one number per metric: (weightings, metrics).
    """
    groups = [
        [_prepare_metric(metric, human) for metric in metrics]
        for metrics, human in zip(x, y, strict=True)
    ]

    def accuracy(points: Floats, rows: Floats) -> Floats:
        each = [
            np.stack([metric(weights, rows) for metric in metrics], axis=-1)
            for metrics, weights in zip(groups, points, strict=True)
        ]
        return np.concatenate(each)

    return accuracy


def _prepare_metric(x: Floats, y: Floats) -> Callable[[Floats, Floats], Floats]:
    """Prepare calibrated accuracy of a metric's scores `x` and human ratings `y` (rows, points).

    The pairs of points of all rows are sorted by ascending score difference: a growing threshold
    ties them in this order. Only pairs where a tie changes the accuracy are kept: a tie loses a
    pair that the metric orders like the humans, and wins a pair that the humans tie.
    """
    x, y = mask_unpaired(x, y)
    if (count := len(x) * x.shape[-1] * (x.shape[-1] - 1) // 2) > _MAX_PAIRS:
        raise InputError(
            f"cannot calibrate ties over {count:,} pairs, the maximum is {_MAX_PAIRS:,}; "
            "use level per_item, which compares outputs within a segment"
        )
    one, other = np.triu_indices(x.shape[-1], 1)
    difference, human = x[:, one] - x[:, other], y[:, one] - y[:, other]
    # change in the number of correct pairs if tied: 1 or -1, or 0 for pairs that are not kept
    gain = (human == 0).astype(np.float64) - (np.sign(difference) * np.sign(human) > 0)
    # stable, so that equal differences keep their order and results are reproducible
    order = np.argsort(abs(difference), axis=None, kind="stable")
    row, pair = np.unravel_index(order[gain.ravel()[order] != 0], gain.shape)
    first, second, gain = one[pair], other[pair], gain[row, pair]
    size = np.append(0.0, abs(difference[row, pair]))
    same = round_to_scale(size, abs(x).max(initial=0.0, where=~np.isnan(x)))
    # number of pairs tied by each threshold: 0 and every distinct difference
    ends = np.unique(np.searchsorted(same, same, side="right")) - 1
    known = (~np.isnan(x)).astype(np.float64)

    def best_accuracy(points: Floats, rows: Floats) -> Floats:
        """Return the highest accuracy that any threshold reaches, for each weighting."""
        pairs = ((points @ known.T) ** 2 - points**2 @ known.T) / 2
        counted = np.where(pairs > 0, rows, 0.0)
        total = counted.sum(-1, keepdims=True)
        # the weight of one pair of each row in the mean over rows; 0 without pairs
        shares = counted / np.where(pairs > 0, pairs, 1.0) / np.where(total > 0, total, 1.0)
        # weightings last: a pair's weights are then contiguous in memory, and sums run over pairs
        gains = np.zeros((len(row) + 1, len(shares)))
        np.multiply(shares.T[row], gain[:, None], out=gains[1:])
        gains[1:] *= points.T[first] * points.T[second]
        untied = np.where(shares.any(-1), -np.minimum(gains, 0.0).sum(0), np.nan)
        np.cumsum(gains, axis=0, out=gains)
        tied = gains[ends] if len(ends) < len(gains) else gains
        accuracy: Floats = (untied + tied.max(0)).clip(0.0, 1.0)
        return accuracy

    def accuracy(points: Floats, rows: Floats) -> Floats:
        parts = []
        for some in blocks(max(len(points), len(rows)), len(row) + known.size):
            some_points = points[some] if len(points) > 1 else points
            parts.append(best_accuracy(some_points, rows[some] if len(rows) > 1 else rows))
        return np.concatenate(parts)

    return accuracy


def _tied_weights(order: SortOrder, counts: Floats) -> Floats:
    """Return, for each point, the total weight of the points equal to it, itself included."""
    below, up_to = order.weights_below(counts)
    return up_to - below


def _count_distinct(counts: Floats, equal: Floats) -> Floats:
    """Count the distinct values drawn: the points of one value contribute 1 in total."""
    distinct: Floats = np.rint(
        np.where(counts > 0, counts / np.where(equal > 0, equal, 1.0), 0).sum(-1)
    )
    return distinct


def _sign(x: Floats, some: slice) -> NDArray[np.int8]:
    """Compare the points of `some` with all: 1 above, -1 below, 0 tied or missing."""
    these, others = x[..., some, None], x[..., None, :]
    return (these > others).astype(np.int8) - (these < others).astype(np.int8)


def _sum_over_pairs(
    weights: Floats,
    matrix: Callable[[slice], NDArray[np.int8] | Flags],
    shape: tuple[int, ...],
) -> Floats:
    """Compute w·A·w for every weighting and row, building a few rows of each A at a time."""
    groups, rows, points = shape
    total = np.zeros((groups, weights.shape[1], rows))
    # counts and their sums are integers far below 2²⁴, which float32 represents exactly
    single = weights.astype(np.float32)[:, None]
    for some in blocks(points, groups * rows * max(points, weights.shape[1])):
        each = single @ matrix(some).astype(np.float32).swapaxes(-1, -2)
        total += np.einsum("grwi,gwi->gwr", each, weights[..., some], dtype=np.float64)
    return total


def _tau_by_sorting(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Compute tau-b with SciPy's n log n algorithm, resample by resample; 0 where undefined."""
    from scipy.stats import kendalltau

    tau = np.zeros((weights.shape[0], weights.shape[1], x.shape[1]))
    known = ~np.isnan(x)
    for g, w, row in np.ndindex(*tau.shape):
        drawn = np.repeat(np.flatnonzero(known[g, row]), weights[g, w, known[g, row]].astype(int))
        tau[g, w, row] = kendalltau(x[g, row, drawn], y[g, row, drawn], method="asymptotic")[0]
    return np.nan_to_num(tau)
