"""The data of a meta-evaluation: metric scores and human ratings of systems × segments.

`make_panel` checks shapes and builds a `Panel`. `find_outliers` finds systems to
leave out. The other functions check and arrange arrays for all statistics: float64, with NaN for
missing numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenmatch.errors import InputError

Floats: TypeAlias = NDArray[np.float64]

Indexes: TypeAlias = NDArray[np.intp]

Flags: TypeAlias = NDArray[np.bool_]

# Larger blocks exceed the processor's cache; smaller ones spend their time in Python loops.
_CELLS = 2_000_000

# Scales the median absolute deviation of a normal distribution to its standard deviation.
_MAD_TO_SIGMA = 1.483


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Metric scores (metrics, systems, segments) and human ratings (systems, segments).

    NaN marks a missing score. Either side may have a single column, if there is only one score per
    system. Create panels with `make_panel`, which checks shapes.
    """

    metrics: Floats
    human: Floats

    @property
    def systems(self) -> int:
        """Number of systems."""
        return int(self.human.shape[0])

    @property
    def segments(self) -> int:
        """Number of segments; 1 if all scores are per system."""
        return int(max(self.metrics.shape[-1], self.human.shape[-1]))


def make_panel(metrics: ArrayLike, human: ArrayLike) -> Panel:
    """Create a panel from scores of one metric (systems, segments) or several (metrics, …, …).

    Either side may also be one number per system, given as a list.

    >>> make_panel([[1, 2], [3, 4]], [0.5, 0.7]).human.shape
    (2, 1)
    """
    scores, ratings = as_floats(metrics, "metrics"), as_floats(human, "human")
    scores = scores[:, None] if scores.ndim == 1 else scores
    scores = scores[None] if scores.ndim == 2 else scores
    ratings = ratings[:, None] if ratings.ndim == 1 else ratings
    fits = scores.ndim == 3 and ratings.ndim == 2 and scores.shape[1] == ratings.shape[0]
    if not fits or len({1, scores.shape[2], ratings.shape[1]}) > 2:
        raise InputError(
            f"metrics have shape {np.shape(metrics)} and human {np.shape(human)}; "
            "give both as systems × segments, or one number per system"
        )
    return Panel(scores, ratings)


def find_outliers(scores: ArrayLike, *, cutoff: float = 2.5) -> Flags:
    """Flag systems whose score is an outlier by the median absolute deviation (MAD).

    A score is an outlier if |x - median| / (1.483 · MAD) exceeds the cutoff (Mathur, Baldwin & Cohn
    2020), as in WMT20. Missing scores are not outliers. If half of the systems share one score, the
    MAD is 0 and no system is an outlier. For WMT20, use its published list: in half of the language
    pairs into English it differs from this rule applied to the published scores.

    >>> find_outliers([0.1, 0.2, 0.15, 0.18, -2.0])
    array([False, False, False, False,  True])
    """
    values = as_floats(scores, "scores")
    no_outliers: Flags = np.zeros(len(values), dtype=bool)
    if np.isnan(values).all():
        return no_outliers
    distance = abs(values - np.nanmedian(values))
    deviation = _MAD_TO_SIGMA * np.nanmedian(distance)
    return distance / deviation > cutoff if deviation else no_outliers


def as_floats(values: ArrayLike, name: str) -> Floats:
    """Convert to a float64 array; None and NaN mark missing values.

    >>> as_floats([1, None], "human")
    array([ 1., nan])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is not an array of numbers; "
            "give rows of equal length, NaN where one is missing"
        ) from None
    if infinite := int(np.isinf(array).sum()):
        raise InputError(
            f"{name} has {infinite} infinite values; give finite numbers, NaN where one is missing"
        )
    return array


def mask_unpaired(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Set both arrays to NaN wherever either is NaN."""
    known = ~(np.isnan(x) | np.isnan(y))
    return np.where(known, x, np.nan), np.where(known, y, np.nan)


def round_to_scale(numbers: Floats, largest: Floats) -> Floats:
    """Round numbers to 40 bits below the largest number of their context.

    Numbers that differ only by the rounding of sums and differences become equal.

    >>> a, b = round_to_scale(np.array([0.1 + 0.2, 0.3]), np.array(1.0))
    >>> bool(a == b)
    True
    """
    # the step must not underflow to 0 for very small numbers
    step = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - 40, -1000))
    nearest: Floats = np.rint(numbers / step) * step
    return nearest


def blocks(count: int, cells: int) -> Iterator[slice]:
    """Yield slices of `range(count)` whose items, of `cells` numbers each, fit in the cache."""
    size = max(1, _CELLS // max(cells, 1))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
