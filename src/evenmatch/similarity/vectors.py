"""Similarities of vectors, and wrappers that change another similarity.

Nearness of vectors by the distance between them.
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


def similarity_bounds(similarity: Similarity) -> tuple[float, float]:
    """The range of a similarity, where it says so."""
    return similarity.bounds if isinstance(similarity, BoundedSimilarity) else _UNBOUNDED


def row_norms(vectors: Array) -> Array:
    """The length of each row, and a tiny one for a zero row, so that its cosine is 0."""
    if isinstance(vectors, np.ndarray):
        return np.maximum(np.sqrt(np.vecdot(vectors, vectors)), _TINY)
    return ((vectors * vectors).sum(-1) ** 0.5).clip(min=_TINY)


def cosine_matrix(x: Array, y: Array) -> Array:
    """The cosine of each row of `x` with each row of `y`, not yet held to what cosines can be."""
    products = x @ y.T
    # Dividing the products takes a tenth of the work of dividing the vectors.
    lengths = row_norms(x)[:, None] * row_norms(y)[None, :]
    if isinstance(products, np.ndarray) and products.dtype == lengths.dtype:
        return np.divide(products, lengths, out=products)  # another array would take as long again
    return products / lengths


def clip_values(fresh: Array, low: float, high: float) -> Array:
    """Numbers held between two bounds; an array is written over, a tensor keeps its gradient."""
    if isinstance(fresh, np.ndarray):
        return np.minimum(np.maximum(fresh, low, out=fresh), high, out=fresh)
    return fresh.clip(low, high)


@register("similarity", "cosine")
@dataclass(frozen=True)
class Cosine:
    """The cosine of the angle between two units' vectors."""

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        # rounding lifts the cosine of equal vectors above 1 by a few 1e-8
        return clip_values(cosine_matrix(x.vectors, y.vectors), -1.0, 1.0)

    @property
    def bounds(self) -> tuple[float, float]:
        """Opposite to equal directions."""
        return (-1.0, 1.0)


@register("similarity", "dot")
@dataclass(frozen=True)
class Dot:
    """The inner product of two units' vectors."""

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return x.vectors @ y.vectors.T


@register("similarity", "same_label")
@dataclass(frozen=True)
class SameLabel:
    """Another similarity where the units' labels agree, and 0 where they do not."""

    base: Similarity = Cosine()

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Units without labels all agree."""
        similarity = self.base(x, y)
        if not x.units.labels or not y.units.labels:
            return similarity
        # Numbers compare much faster than strings. Computing only the blocks that agree was slower
        # still: most have one row, and a product of that size costs as much as the whole.
        numbers: dict[str, int] = {}
        rows, columns = (
            np.array([numbers.setdefault(label, len(numbers)) for label in side.units.labels])
            for side in (x, y)
        )
        return similarity * (rows[:, None] == columns[None, :])

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the similarity within, and 0."""
        low, high = similarity_bounds(self.base)
        return (min(low, 0.0), max(high, 0.0))


@register("similarity", "floor")
@dataclass(frozen=True)
class Floor:
    """Another similarity, raised to `low` where it is lower."""

    base: Similarity = Cosine()
    low: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Clipped from below only."""
        return self.base(x, y).clip(min=self.low)

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the similarity within, as far as they lie above the floor."""
        low, high = similarity_bounds(self.base)
        return (max(low, self.low), max(high, self.low))


_MIN_SQUARE = 1e-30  # the root of 0 has no gradient


@register("similarity", "euclidean")
@dataclass(frozen=True)
class Euclidean:
    """Less the distance between two units' vectors, each brought to length 1.

    `squared` takes the square of the distance.
    """

    squared: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s; the same direction is 0, all else is below."""
        # In double precision: the root makes a distance of 4e-4 of a rounding by 1e-7.
        squares = clip_values(
            2 - 2 * cosine_matrix(_to_double(x.vectors), _to_double(y.vectors)),
            _MIN_SQUARE,
            math.inf,
        )
        return -squares if self.squared else -(squares**0.5)

    @property
    def bounds(self) -> tuple[float, float]:
        """Opposite to equal directions."""
        return (-4.0 if self.squared else -2.0, 0.0)


def _to_double(vectors: Array) -> Array:
    return vectors.astype(np.float64) if isinstance(vectors, np.ndarray) else vectors.double()
