"""P-values of many tests, made up for their number.

Metrics in groups that do not differ significantly.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.panel import Floats, Indexes, as_floats


def holm(p: ArrayLike) -> Floats:
    """Adjusted so that any false finding at all is as rare as a p-value says (Holm 1979).

    NaN stays NaN and is no test.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values, order, tests = _sort_p_values(p)
    steps = values.ravel()[order] * (tests - np.arange(tests))
    return _restore_order(values, order, np.maximum.accumulate(steps))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted so that false ones among the findings are as rare as a p-value says (1995).

    NaN stays NaN and is no test.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    values, order, tests = _sort_p_values(p)
    steps = values.ravel()[order] * tests / (1 + np.arange(tests))
    return _restore_order(values, order, np.minimum.accumulate(steps[::-1])[::-1])


def _sort_p_values(p: ArrayLike) -> tuple[Floats, Indexes, int]:
    values = as_floats(p, "p")
    known = values[~np.isnan(values)]
    if ((known < 0) | (known > 1)).any():
        raise InputError("a p-value is outside 0 to 1; give probabilities, NaN where there is none")
    return values, np.argsort(values, axis=None, kind="stable")[: known.size], known.size


def _restore_order(values: Floats, order: Indexes, adjusted: Floats) -> Floats:
    placed = np.full(values.size, np.nan)
    placed[order] = adjusted.clip(max=1.0)
    return placed.reshape(values.shape)


def rank_clusters(values: ArrayLike, p: ArrayLike, *, alpha: float = 0.05) -> tuple[int, ...]:
    """The rank of each metric's cluster, 1 for the best, as the WMT metrics task ranks.

    Down the list by `values` a new cluster begins with the first metric that some metric of the
    present one beats significantly: `p[a, b]` is the p-value of a being better than b. A metric
    whose value is NaN comes last, in a cluster with its like.

    >>> rank_clusters([0.7, 0.9, 0.8], [[1, 1, 1], [0.01, 1, 0.2], [0.3, 1, 1]])
    (2, 1, 1)
    """
    scores, chances = _check_p_values(values, p)
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


def find_winners(values: ArrayLike, p: ArrayLike, *, alpha: float = 0.05) -> tuple[bool, ...]:
    """Whether no metric is significantly better: WMT's winners, printed bold in its tables.

    >>> find_winners([0.7, 0.9, 0.8], [[1, 1, 1], [0.01, 1, 0.2], [0.3, 1, 1]])
    (False, True, True)
    """
    scores, chances = _check_p_values(values, p)
    stands = ~(chances <= alpha).any(axis=0) & ~np.isnan(scores)
    return tuple(bool(s) for s in np.atleast_1d(stands))


def _check_p_values(values: ArrayLike, p: ArrayLike) -> tuple[Floats, Floats]:
    scores, chances = as_floats(values, "values"), as_floats(p, "p")
    if scores.ndim != 1 or chances.shape != (len(scores), len(scores)):
        raise InputError(
            f"values have shape {scores.shape} and p-values {chances.shape}; "
            "give a square of p-values with a row and a column for each value"
        )
    # a metric is no better than itself, whatever stands on the diagonal
    return scores, np.where(np.eye(len(scores), dtype=bool), 1.0, chances)


# A permutation that changes nothing gives the same difference but for rounding.
_ROUNDING = 1e-12


def p_value(draws: Floats, observed: float, side: Alternative) -> float:
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


Alternative: TypeAlias = Literal["greater", "two-sided"]


def check_alternative(side: Alternative) -> None:
    """Raise where a test has no such side."""
    if side not in get_args(Alternative):
        raise UnknownNameError(f"no test is {side!r}; known: {', '.join(get_args(Alternative))}")
