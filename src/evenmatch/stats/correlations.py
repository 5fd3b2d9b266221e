"""How closely two lists of numbers go together, by the names papers use.

Every function works along the last axis, one result for each row of what is left. A point with a
NaN in either list is left out. Where the rest is constant or has fewer than two points there is no
correlation, and the result is NaN, without a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import UnknownNameError
from evenmatch.stats.arrays import Floats, as_pair
from evenmatch.stats.concordance import accuracy, kendall
from evenmatch.stats.moments import moments
from evenmatch.stats.ranks import rank_moments

# `kendall` is tau-b; `accuracy` the share of pairs ordered alike (Kocmi et al. 2021).
CoefficientName: TypeAlias = Literal["pearson", "spearman", "kendall", "kendall_c", "accuracy"]


@dataclass(frozen=True, slots=True)
class AccuracyAt:
    """Pairwise accuracy where scores of x that differ by at most `epsilon` are tied."""

    epsilon: float


Coefficient: TypeAlias = CoefficientName | AccuracyAt


class Weighted(Protocol):
    """Correlations of rows under weights: (groups, weightings, points) to (…, …, rows)."""

    def __call__(self, weights: Floats, /) -> Floats: ...


_PREPARED: dict[str, Callable[[Floats, Floats], Weighted]] = {
    "pearson": moments,
    "spearman": rank_moments,
    "kendall": kendall,
    "kendall_c": lambda x, y: kendall(x, y, "c"),
    "accuracy": accuracy,
}


def weighted(x: Floats, y: Floats, coefficient: Coefficient) -> Weighted:
    """The coefficient of rows (groups, rows, points), ready to be weighted."""
    if isinstance(coefficient, AccuracyAt):
        return accuracy(x, y, coefficient.epsilon)
    if coefficient not in _PREPARED:
        known = ", ".join(get_args(CoefficientName))
        raise UnknownNameError(f"no correlation is called {coefficient!r}; known: {known}")
    return _PREPARED[coefficient](x, y)


def correlation(x: ArrayLike, y: ArrayLike, coefficient: Coefficient) -> Floats:
    """The named coefficient along the last axis.

    >>> correlation([[1, 2, 3], [3, 1, 2]], [1, 2, 3], "pearson")
    array([ 1. , -0.5])
    """
    first, second = as_pair(x, y)
    shape = (1, prod(first.shape[:-1]), first.shape[-1])
    rows = weighted(first.reshape(shape), second.reshape(shape), coefficient)
    values: Floats = rows(np.ones((1, 1, first.shape[-1])))[0, 0]
    return values.reshape(first.shape[:-1])
