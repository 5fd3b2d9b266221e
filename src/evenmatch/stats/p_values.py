"""P-values: resampling, corrections for multiple tests, and clusters of metrics.

- `p_value`: from resampled differences.
- `holm`: correction for the number of tests.
- `rank_clusters`: group metrics that do not differ significantly, as WMT does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.stats.panel import Floats, as_floats

# A permutation that changes nothing gives the observed difference up to rounding.
_ROUNDING = 1e-12


def p_value(draws: Floats, observed: float, side: Literal["greater", "two-sided"]) -> float:
    """Compute the share of draws at least as extreme as the observed value, which is included.

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


def holm(p: ArrayLike) -> Floats:
    """Adjust p-values to control the family-wise error rate (Holm 1979).

    NaN stays NaN and does not count as a test.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = as_floats(p, "p")
    known = int((~np.isnan(values)).sum())
    order = np.argsort(values, axis=None, kind="stable")[:known]
    steps = values.ravel()[order] * (known - np.arange(known))
    adjusted = np.full(values.size, np.nan)
    adjusted[order] = np.maximum.accumulate(steps).clip(max=1.0)
    return adjusted.reshape(values.shape)


def rank_clusters(values: ArrayLike, p: ArrayLike, *, alpha: float = 0.05) -> tuple[int, ...]:
    """Rank metrics by clusters as the WMT metrics task does; the best cluster has rank 1.

    `p[a, b]` is the p-value of metric a being better than b. Metrics are visited by descending
    value. A new cluster starts with each metric that is significantly worse than some metric of the
    current cluster. Metrics whose value is NaN form the last cluster.

    >>> rank_clusters([0.7, 0.9, 0.8], [[1, 1, 1], [0.01, 1, 0.2], [0.3, 1, 1]])
    (2, 1, 1)
    """
    scores, p_values = as_floats(values, "values"), as_floats(p, "p")
    ranks = [0] * len(scores)
    rank = 1
    cluster: list[int] = []
    for metric in np.argsort(-scores, kind="stable").tolist():
        beaten = any(p_values[other, metric] <= alpha for other in cluster)
        undefined = bool(np.isnan(scores[metric])) and not all(np.isnan(scores[cluster]))
        if beaten or undefined:
            rank, cluster = rank + 1, []
        cluster.append(metric)
        ranks[metric] = rank
    return tuple(ranks)
