"""Similarities of units by their vectors (cosine, dot, euclidean), and two wrappers.

A similarity takes two `Embedded` texts and returns a matrix with the first text's units in rows.
`floor` and `same_label` change another similarity. Torch tensors keep their gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenmatch.protocols import BoundedSimilarity, Similarity
from evenmatch.registry import check_settings, register
from evenmatch.types import Array, Embedded

_TINY = 1e-12
_UNBOUNDED = (-float("inf"), float("inf"))
_MIN_SQUARE = 1e-30  # the square root has no gradient at 0


@register("similarity", "cosine")
@dataclass(frozen=True)
class Cosine:
    """Cosine similarity of the vectors of two units."""

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        # rounding can raise the cosine of equal vectors above 1 by a few 1e-8
        return clip_values(cosine_matrix(x.vectors, y.vectors), -1.0, 1.0)

    @property
    def bounds(self) -> tuple[float, float]:
        """From opposite to equal directions."""
        return (-1.0, 1.0)


@register("similarity", "dot")
@dataclass(frozen=True)
class Dot:
    """Inner product of the vectors of two units."""

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return x.vectors @ y.vectors.T


@register("similarity", "euclidean")
@dataclass(frozen=True)
class Euclidean:
    """Negative Euclidean distance between the L2-normalised vectors of two units.

    `squared` uses the squared distance.
    """

    squared: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s; equal directions give 0, others are negative."""
        # In double precision: the square root turns a rounding error of 1e-7 into 4e-4.
        squares = clip_values(
            2 - 2 * cosine_matrix(_to_double(x.vectors), _to_double(y.vectors)),
            _MIN_SQUARE,
            math.inf,
        )
        return -squares if self.squared else -(squares**0.5)

    @property
    def bounds(self) -> tuple[float, float]:
        """From opposite to equal directions."""
        return (-4.0 if self.squared else -2.0, 0.0)


@register("similarity", "floor")
@dataclass(frozen=True)
class Floor:
    """The similarity `base`, with values below `low` raised to `low`."""

    base: Similarity = Cosine()
    low: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Return the matrix of `base`, clipped from below."""
        return self.base(x, y).clip(min=self.low)

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of `base`, clipped from below."""
        low, high = similarity_bounds(self.base)
        return (max(low, self.low), max(high, self.low))


@register("similarity", "same_label")
@dataclass(frozen=True)
class SameLabel:
    """The similarity `base` where the labels of two units are equal, and 0 elsewhere."""

    base: Similarity = Cosine()

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """If either text has no labels, nothing is set to 0."""
        similarity = self.base(x, y)
        if not x.units.labels or not y.units.labels:
            return similarity
        # Integers compare much faster than strings. Computing only the blocks of equal labels was
        # slower: most have one row, and so small a product costs as much as the full one.
        numbers: dict[str, int] = {}
        rows, columns = (
            np.array([numbers.setdefault(label, len(numbers)) for label in side.units.labels])
            for side in (x, y)
        )
        return similarity * (rows[:, None] == columns[None, :])

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of `base`, extended to include 0."""
        low, high = similarity_bounds(self.base)
        return (min(low, 0.0), max(high, 0.0))


def similarity_bounds(similarity: Similarity) -> tuple[float, float]:
    """Return the range that a similarity declares, or (-inf, inf)."""
    return similarity.bounds if isinstance(similarity, BoundedSimilarity) else _UNBOUNDED


def cosine_matrix(x: Array, y: Array) -> Array:
    """Return the cosine of each row of `x` with each row of `y`, not yet clipped to [-1, 1]."""
    products = x @ y.T
    # Dividing the products takes a tenth of the time of dividing the vectors.
    norms = row_norms(x)[:, None] * row_norms(y)[None, :]
    if isinstance(products, np.ndarray) and products.dtype == norms.dtype:
        return np.divide(products, norms, out=products)  # a new array would double the time
    return products / norms


def row_norms(vectors: Array) -> Array:
    """Return the L2 norm of each row; a zero row gets a tiny norm, so that its cosine is 0."""
    if isinstance(vectors, np.ndarray):
        return np.maximum(np.sqrt(np.vecdot(vectors, vectors)), _TINY)
    return ((vectors * vectors).sum(-1) ** 0.5).clip(min=_TINY)


def clip_values(values: Array, low: float, high: float) -> Array:
    """Clip values to [low, high]; an array is changed in place, a tensor keeps its gradient."""
    if isinstance(values, np.ndarray):  # two ufuncs take half the time of the method
        return np.minimum(np.maximum(values, low, out=values), high, out=values)
    return values.clip(low, high)


def _to_double(vectors: Array) -> Array:
    return vectors.astype(np.float64) if isinstance(vectors, np.ndarray) else vectors.double()
