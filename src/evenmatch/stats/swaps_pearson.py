"""Pearson's correlations of swapped scores, for all pairs of metrics out of one matrix product.

Swapping moves some outputs' scores from one metric to another. Pearson's r needs sums only (of x,
x² and xy), so it is enough to know what those outputs add to each metric's sums: no pair of metrics
has to be gone through output by output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from evenmatch.stats.arrays import Flags, Floats
from evenmatch.stats.levels import Level, arranged
from evenmatch.stats.moments import from_sums, spread_out
from evenmatch.stats.panel import Panel
from evenmatch.stats.rows import mean_of_rows


def swapped_pearson(
    panel: Panel, level: Level, masks: Iterable[Flags]
) -> Iterator[tuple[int, int, Floats]]:
    """Of every two metrics the differences in agreement, one for each mask of swaps."""
    metrics, human = arranged(panel.metrics[None], panel.human, level)
    known = ~np.isnan(metrics[0, 0]) & ~np.isnan(human[0])
    x = np.where(known, metrics[0], 0.0)
    y = spread_out(np.where(known, human[0], np.nan))
    columns = np.stack([x, x * x, x * y]).transpose(2, 3, 0, 1)  # (rows, points, sums, metrics)
    own = columns.sum(1)
    moved = np.concatenate([_moved(mask, panel.human, level, columns) for mask in masks])
    fixed = known.sum(-1).astype(np.float64), y.sum(-1), (y * y).sum(-1)
    for a, b in combinations(range(len(x)), 2):
        change = moved[..., b] - moved[..., a]
        found = [_mean_r(sums, *fixed) for sums in (own[..., a] + change, own[..., b] - change)]
        yield a, b, found[0] - found[1]


def _moved(mask: Flags, human: Floats, level: Level, columns: Floats) -> Floats:
    """What the masked outputs add to each sum: (masks, rows, sums, metrics)."""
    rows, points, *kinds = columns.shape
    chosen = arranged(mask[:, None].astype(np.float64), human, level)[0][:, 0]
    sums = chosen.transpose(1, 0, 2) @ columns.reshape(rows, points, -1)
    return sums.reshape(rows, len(mask), *kinds).swapaxes(0, 1)


def _mean_r(sums: Floats, n: Floats, y: Floats, yy: Floats) -> Floats:
    """The mean over rows of r, of sums (masks, rows, 3)."""
    x, xx, xy = np.moveaxis(sums, -1, 0)
    return mean_of_rows(from_sums(n, x, y, xx, yy, xy), np.ones((1, len(n))))
