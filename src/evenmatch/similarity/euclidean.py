"""Nearness of vectors by the distance between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenmatch.registry import check_settings, register
from evenmatch.similarity.cosine import cosines, within
from evenmatch.types import Array, Embedded

_LEAST = 1e-30  # the root of 0 has no gradient


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
        squares = within(2 - 2 * cosines(_double(x.vectors), _double(y.vectors)), _LEAST, math.inf)
        return -squares if self.squared else -(squares**0.5)

    @property
    def bounds(self) -> tuple[float, float]:
        """Opposite to equal directions."""
        return (-4.0 if self.squared else -2.0, 0.0)


def _double(vectors: Array) -> Array:
    return vectors.astype(np.float64) if isinstance(vectors, np.ndarray) else vectors.double()
