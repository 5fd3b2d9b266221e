"""Numbers as they come in: checked once, then float64 arrays with NaN for what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenmatch.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Indexes: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]

# Larger blocks leave the processor's cache, smaller ones pay for Python's loops.
_CELLS = 2_000_000


def as_floats(values: ArrayLike, name: str) -> Floats:
    """The values as a float64 array; NaN (or None) stands for a missing one.

    >>> as_floats([1, None], "human")
    array([ 1., nan])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is not an array of numbers; give equally long rows, NaN where one is missing"
        ) from None
    if infinite := int(np.isinf(array).sum()):
        raise InputError(
            f"{name} has {infinite} infinite values; give finite numbers, NaN where one is missing"
        )
    return array


def as_pair(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two arrays of one shape, the last axis of `x` and `y` side by side.

    Where either is missing both are NaN, so a point counts with both its numbers or not at all.
    """
    first, second = as_floats(x, "x"), as_floats(y, "y")
    if not first.ndim or not second.ndim or first.shape[-1] != second.shape[-1]:
        raise InputError(
            f"x has shape {first.shape} and y {second.shape}; give as many numbers of both"
        )
    first, second = np.broadcast_arrays(first, second)
    return matched(first, second)


def matched(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Both with NaN wherever either has one."""
    known = ~(np.isnan(x) | np.isnan(y))
    return np.where(known, x, np.nan), np.where(known, y, np.nan)


def rounded(numbers: Floats, largest: Floats) -> Floats:
    """The numbers to 40 binary places below the largest there is around them.

    What is equal but for the rounding of sums and differences is then equal.

    >>> a, b = rounded(np.array([0.1 + 0.2, 0.3]), np.array(1.0))
    >>> bool(a == b)
    True
    """
    # a step must not vanish, however small the numbers are
    step = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - 40, -1000))
    nearest: Floats = np.rint(numbers / step) * step
    return nearest


def blocks(count: int, cells: int) -> Iterator[slice]:
    """Slices of `range(count)` so small that `cells` numbers for each fit in a cache."""
    size = max(1, _CELLS // max(cells, 1))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
