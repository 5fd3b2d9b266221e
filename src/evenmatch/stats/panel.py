"""What a meta-evaluation rests on: metrics' scores of systems × segments beside people's.

Numbers as they come in: checked once, then float64 arrays with NaN for what is missing.

Systems so far from the rest that they alone would make a correlation.

Ratings freed of how strict each rater is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenmatch.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Scores by metrics (metrics, systems, segments) and people (systems, segments).

    NaN is a missing score. Either side may have one single column: scores known per system only.
    Made by `panel`, which checks shapes.
    """

    metrics: Floats
    human: Floats

    @property
    def systems(self) -> int:
        """How many systems there are."""
        return int(self.human.shape[0])

    @property
    def segments(self) -> int:
        """How many segments there are; 1 where all scores are per system."""
        return int(max(self.metrics.shape[-1], self.human.shape[-1]))

    def without(self, systems: Sequence[int] | Sequence[bool]) -> Panel:
        """The panel less the systems with these numbers, or those flagged True.

        >>> make_panel([[1, 2], [3, 4], [5, 6]], [[1, 1], [2, 2], [3, 3]]).without([1]).human
        array([[1., 1.],
               [3., 3.]])
        """
        given = np.asarray(systems, dtype=bool if _are_flags(systems) else np.intp)
        if given.dtype == bool and given.shape != (self.systems,):
            raise InputError(f"{given.size} flags for {self.systems} systems; give one for each")
        if given.dtype != bool and any(not 0 <= s < self.systems for s in given):
            raise InputError(f"systems {given.tolist()} of {self.systems}; they count from 0")
        kept = np.ones(self.systems, dtype=bool)
        kept[given] = False
        return Panel(self.metrics[:, kept], self.human[kept])


def _are_flags(systems: Sequence[int] | Sequence[bool]) -> bool:
    return bool(len(systems)) and np.asarray(systems).dtype == bool


def make_panel(metrics: ArrayLike, human: ArrayLike) -> Panel:
    """A panel from one metric's scores (systems, segments) or several (metrics, …, …).

    One number per system will do for people (or a metric): give `human` as a list of those.

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
    return mask_unpaired(first, second)


def mask_unpaired(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Both with NaN wherever either has one."""
    known = ~(np.isnan(x) | np.isnan(y))
    return np.where(known, x, np.nan), np.where(known, y, np.nan)


def round_to_scale(numbers: Floats, largest: Floats) -> Floats:
    """The numbers to 40 binary places below the largest there is around them.

    What is equal but for the rounding of sums and differences is then equal.

    >>> a, b = round_to_scale(np.array([0.1 + 0.2, 0.3]), np.array(1.0))
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


# Makes the median absolute deviation of a normal distribution its standard deviation.
_MAD_TO_SIGMA = 1.483


def find_outliers(scores: ArrayLike, *, cutoff: float = 2.5) -> Flags:
    """Which systems' scores are outliers by the median absolute deviation.

    Mathur, Baldwin & Cohn (2020), as in WMT20: |x - median| / (1.483 · MAD) above the cutoff.
    Missing scores are none; where half of the systems share one score there is no scale to judge
    by, and none is either. `Panel.without` takes the flags. WMT20's own list differs from what the
    rule makes of its published scores in half of the pairs to English: use the list there.

    >>> find_outliers([0.1, 0.2, 0.15, 0.18, -2.0])
    array([False, False, False, False,  True])
    """
    values = as_floats(scores, "scores")
    if values.ndim != 1:
        raise InputError(f"scores have shape {values.shape}; give one number per system")
    known = values[~np.isnan(values)]
    if not known.size:
        return np.zeros(len(values), dtype=bool)
    distance = abs(values - np.median(known))
    deviation = _MAD_TO_SIGMA * np.median(distance[~np.isnan(distance)])
    if not deviation:
        return np.zeros(len(values), dtype=bool)
    flags: Flags = distance / deviation > cutoff
    return flags


def standardise_ratings(ratings: ArrayLike, raters: ArrayLike) -> Floats:
    """Each rating as z-score among its rater's: mean 0, standard deviation 1 (n - 1).

    `raters` are numbers that tell raters apart. A rater with one rating, or always the same one,
    says nothing about differences: NaN.

    >>> standardise_ratings([1, 2, 3, 10, 30], [0, 0, 0, 7, 7])
    array([-1.        ,  0.        ,  1.        , -0.70710678,  0.70710678])
    """
    values, who = as_floats(ratings, "ratings"), np.asarray(raters)
    if values.ndim != 1 or who.shape != values.shape:
        raise InputError(
            f"ratings have shape {values.shape} and raters {who.shape}; give one rater per rating"
        )
    scores = np.full(values.shape, np.nan)
    for rater in np.unique(who):
        theirs = (who == rater) & ~np.isnan(values)
        own = values[theirs]
        # the deviation of equal numbers may be a rounding error instead of 0
        if own.size > 1 and own.min() < own.max():
            scores[theirs] = (own - own.mean()) / own.std(ddof=1)
    return scores
