"""One scored set at one level: agreements, their intervals, and which metrics differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.stats.clusters import clusters
from evenmatch.stats.differences import williams_matrix
from evenmatch.stats.intervals import Interval, intervals
from evenmatch.stats.levels import Level
from evenmatch.stats.panel import Panel, panel
from evenmatch.stats.resampling import FITTING
from evenmatch.stats.rows import Method
from evenmatch.stats.swaps import permutation_matrix
from evenmatch.uses.meta.agreement_scores import ScoredSet

WILLIAMS = "Williams"
PERM_BOTH = "permutation (PERM-BOTH)"
PERM_SYSTEMS = "permutation (PERM-SYSTEMS)"
_FEWEST_FOR_WILLIAMS = 4


@dataclass(frozen=True, slots=True)
class Testing:
    """How intervals and significance clusters are made."""

    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Each metric's agreement, over how many points, and the rank of its cluster."""

    intervals: tuple[Interval, ...]
    counts: tuple[int, ...]
    clusters: tuple[int | None, ...]
    test: str


def agreement_of(scored: ScoredSet, level: Level, method: Method, testing: Testing) -> Found:
    """How closely each metric of a set agrees with people."""
    own = panel_of(scored, level)
    # criteria of the same texts draw the same systems, language pairs each their own
    seed = testing.seed + scored.group
    found = intervals(
        own,
        level=level,
        method=method,
        over=FITTING[level],
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=seed,
    )
    test, p = _tested(own, level, method, testing.resamples, seed)
    values = [each.value for each in found]
    ranks: tuple[int | None, ...] = (None,) * len(found)
    if p is not None:
        ranks = clusters(values, p)
    return Found(found, points(own, level), ranks, test)


def panel_of(scored: ScoredSet, level: Level) -> Panel:
    """Scores beside ratings of the systems that count; where lower is better, negated.

    At the system level single outputs are kept where both sides have them, as a permutation test
    wants to swap these; else there is one number per system.
    """
    kept, marks = scored.kept, scored.marks.values()
    signs = np.array([1.0 if m.higher_is_better else -1.0 for m in marks])[:, None, None]
    segments = np.stack([m.segments[kept] for m in marks])
    if level != "system" or _has_outputs(scored):
        return panel(signs * segments, scored.rated.ratings[kept])
    systems = np.stack([m.systems[kept] for m in marks])[:, :, None]
    return panel(signs * systems, scored.rated.by_system[kept])


def _has_outputs(scored: ScoredSet) -> bool:
    """Whether both a system's score and its rating are means over outputs."""
    official = not np.isnan(scored.rated.system_ratings).all()
    return not official and not any(m.by_corpus for m in scored.marks.values())


def points(own: Panel, level: Level) -> tuple[int, ...]:
    """How many points each metric is correlated over; rows of at least two for means of rows."""
    known = ~np.isnan(own.metrics) & ~np.isnan(own.human)
    if level == "system":
        systems = (~np.isnan(own.metrics)).any(-1) & (~np.isnan(own.human)).any(-1)
        return tuple(systems.sum(-1).tolist())
    if level == "pooled":
        return tuple(known.sum((1, 2)).tolist())
    rows = known.sum(1 if level == "per_item" else 2)
    return tuple((rows > 1).sum(-1).tolist())


def _tested(
    own: Panel, level: Level, method: Method, resamples: int, seed: int
) -> tuple[str, Floats | None]:
    """The name of the fitting test and its p-values; none where too few points are shared."""
    if len(own.metrics) < 2:
        return "", None
    per_system = level == "system" and own.segments == 1
    if not per_system:
        return PERM_BOTH, permutation_matrix(
            own, level=level, method=method, resamples=resamples, seed=seed
        )
    shared = ~np.isnan(own.metrics).any((0, 2)) & ~np.isnan(own.human).any(1)
    if shared.sum() < _FEWEST_FOR_WILLIAMS:
        return "", None
    if method == "pearson":
        return WILLIAMS, williams_matrix(own)
    return PERM_SYSTEMS, permutation_matrix(
        own, level=level, method=method, swap="systems", resamples=resamples, seed=seed
    )
