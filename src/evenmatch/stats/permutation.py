"""Permutation tests: swap the scores of two metrics at random (Deutsch, Dror & Roth 2021).

Under the null hypothesis, swapping two metrics' scores does not change how much better one of them
correlates with human ratings. PERM-BOTH swaps single outputs, PERM-SYSTEMS all outputs of a system
together. Metrics are standardised first, to put them on one scale.

Swapping moves the scores of some outputs from one metric to another. System means and Pearson's r
depend only on sums (of x, x² and xy), so one matrix product gives the sums of the swapped outputs
for all metrics, and no pair of metrics needs a loop over outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.stats.correlation import centre_and_scale, pearson_from_sums
from evenmatch.stats.levels import (
    CorrelationMethod,
    Level,
    arrange_rows,
    correlate_panel,
    mean_of_rows,
    mean_over_segments,
    prepare_statistic,
)
from evenmatch.stats.p_values import p_value
from evenmatch.stats.panel import Flags, Floats, Panel, blocks, round_to_scale
from evenmatch.stats.soft_accuracy import permute_soft_accuracy

Swap: TypeAlias = Literal["both", "systems"]

# Scores are rounded before they are swapped, and swaps that change nothing must count as extreme.
_ROUNDING = 1e-9


def permutation_matrix(
    panel: Panel,
    *,
    level: Level,
    method: CorrelationMethod,
    swap: Swap = "both",
    resamples: int = 1000,
    seed: int = 0,
) -> Floats:
    """Compute the p-value of every pair of metrics: (metrics, metrics), row better than column.

    Outputs without a score from every metric are left out. `both` generalises only to other
    outputs of similar systems, because its swaps average out a metric's bias towards a whole
    system. If such biases are possible, swap `systems`. The diagonal is NaN.
    """
    common = standardise_metrics(panel)
    values = correlate_panel(common, level=level, method=method)
    p = np.full((len(values), len(values)), np.nan)
    masks = partial(_swap_masks, common.metrics.shape[1:], swap, resamples, seed)
    if method == "soft_accuracy":
        swapped = permute_soft_accuracy(common, masks())
    elif level == "system":
        swapped = _differences_by_system(common, method, masks())
    elif method == "pearson":
        swapped = permute_pearson(common, level, masks())
    else:
        swapped = _differences_by_segment(common, level, method, masks)
    for a, b, draws in swapped:
        difference = values[a] - values[b]
        p[a, b] = p_value(draws, difference - _ROUNDING, "greater")
        p[b, a] = p_value(-draws, -difference - _ROUNDING, "greater")
    return p


def standardise_metrics(panel: Panel) -> Panel:
    """Scale every metric to mean 0 and standard deviation 1 over the outputs all have scores for.

    A constant metric becomes 0 everywhere.
    """
    metrics, *outputs = panel.metrics.shape
    known = ~np.isnan(panel.metrics).any(0).ravel()
    scores = panel.metrics.reshape(metrics, -1)
    centred = centre_and_scale(np.where(known, scores, np.nan))
    variance = (centred**2).sum(-1, keepdims=True) / max(known.sum(), 1)
    scaled = centred / np.sqrt(np.where(variance > 0, variance, 1.0))
    # scores that are equal must stay equal after scaling, or swapping would break their ties
    equal = round_to_scale(scaled, abs(scaled).max(initial=0.0))
    return Panel(np.where(known, equal, np.nan).reshape(metrics, *outputs), panel.human)


def permute_pearson(
    panel: Panel, level: Level, masks: Iterable[Flags]
) -> Iterator[tuple[int, int, Floats]]:
    """Yield the differences in Pearson's r of each pair of metrics, one for each swap mask."""
    metrics, human = arrange_rows(panel.metrics[None], panel.human, level)
    known = ~np.isnan(metrics[0, 0]) & ~np.isnan(human[0])
    x = np.where(known, metrics[0], 0.0)
    y = centre_and_scale(np.where(known, human[0], np.nan))
    columns = np.stack([x, x * x, x * y]).transpose(2, 3, 0, 1)  # (rows, points, sums, metrics)
    rows, points, *kinds = columns.shape
    parts = []  # sums over the swapped outputs: (masks, rows, sums, metrics)
    for mask in masks:
        swapped = arrange_rows(mask[:, None].astype(np.float64), panel.human, level)[0][:, 0]
        sums = swapped.transpose(1, 0, 2) @ columns.reshape(rows, points, -1)
        parts.append(sums.reshape(rows, len(mask), *kinds).swapaxes(0, 1))
    totals, moved = columns.sum(1), np.concatenate(parts)
    n, y_sum, yy_sum = known.sum(-1).astype(np.float64), y.sum(-1), (y * y).sum(-1)

    def mean_r(sums: Floats) -> Floats:
        x_sum, xx_sum, xy_sum = np.moveaxis(sums, -1, 0)
        r = pearson_from_sums(n, x_sum, y_sum, xx_sum, yy_sum, xy_sum)
        return mean_of_rows(r, np.ones((1, rows)))

    for a, b in combinations(range(len(x)), 2):
        change = moved[..., b] - moved[..., a]
        yield a, b, mean_r(totals[..., a] + change) - mean_r(totals[..., b] - change)


def _swap_masks(shape: tuple[int, ...], swap: Swap, resamples: int, seed: int) -> Iterator[Flags]:
    """Yield random swap masks in blocks (resamples, systems, segments)."""
    rng = np.random.default_rng(seed)
    systems, segments = shape
    together = 1 if swap == "systems" else segments
    for some in blocks(resamples, 2 * systems * segments):
        count = some.stop - some.start
        mask = rng.integers(2, size=(count, systems, together), dtype=np.uint8)
        yield np.broadcast_to(mask.astype(bool), (count, systems, segments))


def _differences_by_system(
    panel: Panel, method: CorrelationMethod, masks: Iterable[Flags]
) -> Iterator[tuple[int, int, Floats]]:
    """Yield the differences of each pair of metrics at the system level.

    Swapping moves a sum of scores from one metric to the other, so every metric's sum over the
    swapped outputs is computed once for all pairs.
    """
    known = ~np.isnan(panel.metrics)
    count = np.maximum(known.sum(-1), 1)
    means = mean_over_segments(panel.metrics, np.ones((1, panel.metrics.shape[-1])))[0]
    filled = np.where(known, panel.metrics, 0.0).transpose(1, 2, 0)
    largest = abs(filled).max(initial=0.0)
    moved = np.concatenate(
        [
            (mask.transpose(1, 0, 2).astype(np.float64) @ filled).transpose(1, 2, 0) / count
            for mask in masks
        ]
    )
    human = mean_over_segments(panel.human, np.ones((1, panel.human.shape[-1])))
    ratings = np.broadcast_to(human, (len(moved), *human.shape))
    points = np.ones((len(moved), 1, panel.systems))
    for a, b in combinations(range(len(means)), 2):
        moves = moved[:, b] - moved[:, a]
        x = round_to_scale(np.stack([means[a] + moves, means[b] - moves], axis=1), largest)
        found = prepare_statistic(x[:, :, None], ratings, method)(points, np.ones((1, 1)))
        yield a, b, found[:, 0] - found[:, 1]


def _differences_by_segment(
    panel: Panel, level: Level, method: CorrelationMethod, masks: Callable[[], Iterable[Flags]]
) -> Iterator[tuple[int, int, Floats]]:
    """Yield the differences of each pair of metrics at a segment level, under the same swaps."""
    for a, b in combinations(range(len(panel.metrics)), 2):
        two = panel.metrics[[a, b]]
        parts = []
        for mask in masks():
            x, y = arrange_rows(np.where(mask[:, None], two[::-1], two), panel.human, level)
            found = prepare_statistic(x, y, method)(
                np.ones((len(x), 1, x.shape[-1])), np.ones((1, x.shape[-2]))
            )
            parts.append(found[:, 0] - found[:, 1])
        yield a, b, np.concatenate(parts)
