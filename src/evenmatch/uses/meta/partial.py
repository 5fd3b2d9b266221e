"""How alike metrics are beyond what people explain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.stats.levels import means
from evenmatch.stats.partial import Linear, partial_matrix
from evenmatch.uses.meta.agreement_panels import panel_of
from evenmatch.uses.meta.agreement_scores import ScoredSet


def metric_likeness(
    scored: Sequence[ScoredSet], metrics: Sequence[str], *, by_system: bool, method: Linear
) -> Floats:
    """The partial correlation of every two metrics given people, averaged over the sets.

    Of systems' scores, or of all outputs' (Chousa & Hirao, figure 3). NaN for two metrics that no
    set with at least four points has both of.
    """
    total = np.zeros((len(metrics), len(metrics)))
    count = np.zeros_like(total)
    for each in scored:
        at = [metrics.index(name) for name in each.marks if name in metrics]
        found = _of_set(each, [metrics[i] for i in at], by_system, method)
        where = np.ix_(at, at)
        known = ~np.isnan(found)
        total[where] += np.where(known, found, 0.0)
        count[where] += known
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _of_set(scored: ScoredSet, metrics: Sequence[str], by_system: bool, method: Linear) -> Floats:
    own = panel_of(scored, "system" if by_system else "pooled")
    rows = [list(scored.marks).index(name) for name in metrics]
    x, y = own.metrics[rows], own.human
    if by_system:
        every = np.ones((1, own.segments))
        x, y = means(x, every)[0][:, :, None], means(y, every)[0][:, None]
    points, human = x.reshape(len(rows), -1), y.reshape(-1)
    # with three points, two residuals of a line are always on a line themselves
    if (~np.isnan(points).any(0) & ~np.isnan(human)).sum() < 4:
        return np.full((len(rows), len(rows)), np.nan)
    return partial_matrix(points, human, method=method)
