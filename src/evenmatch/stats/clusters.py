"""Metrics in groups that do not differ significantly."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, as_floats


def clusters(values: ArrayLike, p: ArrayLike, *, alpha: float = 0.05) -> tuple[int, ...]:
    """The rank of each metric's cluster, 1 for the best, as the WMT metrics task ranks.

    Down the list by `values` a new cluster begins with the first metric that some metric of the
    present one beats significantly: `p[a, b]` is the p-value of a being better than b. A metric
    whose value is NaN comes last, in a cluster with its like.

    >>> clusters([0.7, 0.9, 0.8], [[1, 1, 1], [0.01, 1, 0.2], [0.3, 1, 1]])
    (2, 1, 1)
    """
    scores, chances = _checked(values, p)
    ranks = [0] * len(scores)
    rank = 1
    cluster: list[int] = []
    for metric in np.argsort(-scores, kind="stable").tolist():
        beaten = any(chances[other, metric] <= alpha for other in cluster)
        undefined = bool(np.isnan(scores[metric])) and not all(np.isnan(scores[cluster]))
        if beaten or undefined:
            rank, cluster = rank + 1, []
        cluster.append(metric)
        ranks[metric] = rank
    return tuple(ranks)


def unbeaten(values: ArrayLike, p: ArrayLike, *, alpha: float = 0.05) -> tuple[bool, ...]:
    """Whether no metric is significantly better: WMT's winners, printed bold in its tables.

    >>> unbeaten([0.7, 0.9, 0.8], [[1, 1, 1], [0.01, 1, 0.2], [0.3, 1, 1]])
    (False, True, True)
    """
    scores, chances = _checked(values, p)
    stands = ~(chances <= alpha).any(axis=0) & ~np.isnan(scores)
    return tuple(bool(s) for s in np.atleast_1d(stands))


def _checked(values: ArrayLike, p: ArrayLike) -> tuple[Floats, Floats]:
    scores, chances = as_floats(values, "values"), as_floats(p, "p")
    if scores.ndim != 1 or chances.shape != (len(scores), len(scores)):
        raise InputError(
            f"values have shape {scores.shape} and p-values {chances.shape}; "
            "give a square of p-values with a row and a column for each value"
        )
    # a metric is no better than itself, whatever stands on the diagonal
    return scores, np.where(np.eye(len(scores), dtype=bool), 1.0, chances)
