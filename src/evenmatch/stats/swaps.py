"""Permutation tests: two metrics' scores swapped at random (Deutsch, Dror & Roth 2021).

If it made no difference which of two metrics gave a score, swapping would not change by how much
the one agrees better with people. PERM-BOTH swaps output by output, PERM-INPUTS all outputs of a
segment together, PERM-SYSTEMS all of a system. Metrics are standardised first, to be on one scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, get_args

import numpy as np

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.arrays import Flags, Floats, blocks, rounded
from evenmatch.stats.differences import Side, check_side
from evenmatch.stats.levels import Level, arranged, check_level, correlate, means
from evenmatch.stats.moments import spread_out
from evenmatch.stats.panel import Panel
from evenmatch.stats.rows import Method, statistic
from evenmatch.stats.swaps_pearson import swapped_pearson

Swap: TypeAlias = Literal["both", "systems", "segments"]

# A permutation that changes nothing gives the same difference but for rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class _Masks:
    """Which outputs to swap, blocks of resamples (…, systems, segments); the same at every pass."""

    shape: tuple[int, ...]
    swap: Swap
    resamples: int
    seed: int

    def __iter__(self) -> Iterator[Flags]:
        rng = np.random.default_rng(self.seed)
        _, systems, segments = self.shape
        together = {"both": (systems, segments), "systems": (systems, 1), "segments": (1, segments)}
        for some in blocks(self.resamples, 2 * systems * segments):
            count = some.stop - some.start
            mask = rng.integers(2, size=(count, *together[self.swap]), dtype=np.uint8)
            yield np.broadcast_to(mask.astype(bool), (count, systems, segments))


def permutation_matrix(
    panel: Panel,
    *,
    level: Level,
    method: Method,
    swap: Swap = "both",
    side: Side = "greater",
    resamples: int = 1000,
    seed: int = 0,
) -> Floats:
    """The p-value of every two metrics: (metrics, metrics), row better than column.

    Outputs that some metric has no score for are left out for all. `both` generalises to other
    outputs of like systems only: a bias of a metric towards a whole system is shared out by its
    swaps, so where such biases are the doubt, swap `systems`. The diagonal is NaN.
    """
    _check(panel, level, swap, resamples)
    check_side(side)
    common = standardised(panel)
    values = correlate(common, level=level, method=method)
    p = np.full((len(values), len(values)), np.nan)
    masks = _Masks(common.metrics.shape, swap, resamples, seed)
    if level == "system":
        swapped = _by_system(common, method, masks)
    elif method == "pearson":
        swapped = swapped_pearson(common, level, masks)
    else:
        swapped = _by_segment(common, level, method, masks)
    for a, b, draws in swapped:
        difference = values[a] - values[b]
        p[a, b] = p_value(draws, difference, side)
        p[b, a] = p_value(-draws, -difference, side)
    return p


def p_value(draws: Floats, observed: float, side: Side) -> float:
    """The share of draws at least as far out as what was observed, itself among them.

    >>> p_value(np.array([-2.0, 0.0, 1.0]), 1.0, "greater")
    0.5
    >>> p_value(np.array([-2.0, 0.0, 1.0]), 1.0, "two-sided")
    0.75
    """
    draws = draws[~np.isnan(draws)]
    if np.isnan(observed) or not draws.size:
        return float("nan")
    if side == "two-sided":
        draws, observed = abs(draws), abs(observed)
    return float((1 + (draws >= observed - _ROUNDING).sum()) / (1 + draws.size))


def standardised(panel: Panel) -> Panel:
    """The panel with every metric at mean 0 and deviation 1 over the outputs all have scores for.

    A constant metric becomes 0 throughout.
    """
    metrics, *outputs = panel.metrics.shape
    known = ~np.isnan(panel.metrics).any(0).ravel()
    scores = panel.metrics.reshape(metrics, -1)
    centred = spread_out(np.where(known, scores, np.nan))
    variance = (centred**2).sum(-1, keepdims=True) / max(known.sum(), 1)
    scaled = centred / np.sqrt(np.where(variance > 0, variance, 1.0))
    # equal scores on another scale must stay equal, or swapping would break their ties
    equal = rounded(scaled, abs(scaled).max(initial=0.0))
    return Panel(np.where(known, equal, np.nan).reshape(metrics, *outputs), panel.human)


def _by_system(panel: Panel, method: Method, masks: _Masks) -> Iterator[tuple[int, int, Floats]]:
    """Differences at the system level: one set of swaps serves all pairs of metrics.

    Swapping moves a sum of scores from one metric to the other, so it is enough to know every
    metric's mean over the swapped outputs.
    """
    known = ~np.isnan(panel.metrics)
    count = np.maximum(known.sum(-1), 1)
    own = means(panel.metrics, np.ones((1, panel.metrics.shape[-1])))[0]
    filled = np.where(known, panel.metrics, 0.0).transpose(1, 2, 0)
    largest = abs(filled).max(initial=0.0)
    moved = np.concatenate(
        [
            (mask.transpose(1, 0, 2).astype(np.float64) @ filled).transpose(1, 2, 0) / count
            for mask in masks
        ]
    )
    human = means(panel.human, np.ones((1, panel.human.shape[-1])))
    ratings = np.broadcast_to(human, (len(moved), *human.shape))
    points = np.ones((len(moved), 1, panel.systems))
    for a, b in combinations(range(len(own)), 2):
        moves = moved[:, b] - moved[:, a]
        x = rounded(np.stack([own[a] + moves, own[b] - moves], axis=1), largest)
        found = statistic(x[:, :, None], ratings, method)(points, np.ones((1, 1)))
        yield a, b, found[:, 0] - found[:, 1]


def _by_segment(
    panel: Panel, level: Level, method: Method, masks: _Masks
) -> Iterator[tuple[int, int, Floats]]:
    """Differences at a segment level, pair by pair, every pair under the same swaps."""
    for a, b in combinations(range(len(panel.metrics)), 2):
        two = panel.metrics[[a, b]]
        parts = []
        for mask in masks:
            x, y = arranged(np.where(mask[:, None], two[::-1], two), panel.human, level)
            found = statistic(x, y, method)(
                np.ones((len(x), 1, x.shape[-1])), np.ones((1, x.shape[-2]))
            )
            parts.append(found[:, 0] - found[:, 1])
        yield a, b, np.concatenate(parts)


def _check(panel: Panel, level: Level, swap: Swap, resamples: int) -> None:
    check_level(panel, level)
    if swap not in get_args(Swap):
        raise UnknownNameError(f"cannot swap {swap!r}; known: {', '.join(get_args(Swap))}")
    if resamples < 1:
        raise InputError(f"{resamples} resamples; give at least 1")
    if level == "system" and swap == "segments" and panel.metrics.shape[-1] == 1:
        raise InputError(
            "swapping segments needs scores per segment, got one per system; swap systems"
        )
