"""Rated sets: texts and human ratings of systems × segments.

`z_score_by_rater` makes raters comparable: some are strict, some use only half of the scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenmatch.errors import InputError
from evenmatch.types import Pair

Floats: TypeAlias = NDArray[np.float64]

Indexes: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class RelativeRanks:
    """Judgements that one output is better than another, as segment and system indexes."""

    segments: Indexes
    better: Indexes
    worse: Indexes


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Single ratings before averaging, with system, segment and rater indexes."""

    systems: Indexes
    segments: Indexes
    raters: Indexes
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RatedSet:
    """Outputs of several systems for the same segments, with human ratings.

    Texts and ratings are systems × segments; None marks a missing output and NaN a missing rating.
    `system_ratings` are the organisers' published ratings, NaN where there are none. `published`
    holds published metric scores of the systems, by metric.
    """

    name: str
    subset: str
    systems: tuple[str, ...]
    segments: tuple[str, ...]
    candidates: tuple[tuple[str | None, ...], ...]
    references: tuple[tuple[str, ...], ...]  # empty if a segment has no reference
    sources: tuple[str | None, ...]
    ratings: Floats
    system_ratings: Floats
    criterion: str = ""
    humans: frozenset[str] = frozenset()  # systems that are human references
    outliers: frozenset[str] = frozenset()  # systems that the organisers exclude
    ranks: RelativeRanks | None = None
    judgements: Judgements | None = None
    published: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def by_system(self) -> Floats:
        """One rating per system: the organisers', or else the mean over its segments.

        Means are used for all systems or for none, because the scales differ.
        """
        if not np.isnan(self.system_ratings).all():
            return self.system_ratings
        return row_means(self.ratings)

    def exclude_humans(self) -> RatedSet:
        """Return the set without the ratings of human references."""
        human = np.array([system in self.humans for system in self.systems], dtype=bool)
        return replace(self, ratings=np.where(human[:, None], np.nan, self.ratings))

    def cells(self, *, rated: bool = False) -> tuple[Indexes, Indexes]:
        """Return system and segment indexes of the outputs to score, or of the `rated` ones."""
        known = np.array([[c is not None for c in row] for row in self.candidates], dtype=bool)
        known = known.reshape(len(self.systems), len(self.segments))
        known &= np.array([bool(several) for several in self.references], dtype=bool)
        if rated:
            known &= ~np.isnan(self.ratings)
        system, segment = np.nonzero(known)
        return system, segment

    def pairs(self, cells: tuple[Indexes, Indexes]) -> list[Pair]:
        """Return one pair to score for each cell."""
        found = []
        for system, segment in zip(*cells, strict=True):
            candidate = self.candidates[system][segment]
            if candidate is None:
                raise InputError(
                    f"system {self.systems[system]} has no output for segment "
                    f"{self.segments[segment]}; use the cells that `cells()` returns"
                )
            found.append(Pair(candidate, self.references[segment], self.sources[segment]))
        return found

    def to_matrix(self, values: Sequence[float], cells: tuple[Indexes, Indexes]) -> Floats:
        """Arrange the values of cells as systems × segments, with NaN elsewhere."""
        table = np.full((len(self.systems), len(self.segments)), np.nan)
        table[cells] = values
        return table


def row_means(values: Floats) -> Floats:
    """Mean of the known values of each row; NaN without any."""
    known = ~np.isnan(values)
    count = known.sum(1)
    total = np.where(known, values, 0.0).sum(1)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def z_score_by_rater(values: Floats, raters: Indexes, *, degrees: int = 1) -> Floats:
    """Convert ratings to z-scores per rater, with standard deviations over n - `degrees`.

    The ratings of a rater whose values are all equal become NaN.

    >>> z_score_by_rater(np.array([1.0, 2.0, 3.0, 5.0]), np.array([0, 0, 0, 1]))
    array([-1.,  0.,  1., nan])
    """
    count = np.bincount(raters).astype(np.float64)
    mean = np.bincount(raters, values) / np.maximum(count, 1)
    centred = values - mean[raters]
    low, high = np.full(len(count), np.inf), np.full(len(count), -np.inf)
    np.minimum.at(low, raters, values)
    np.maximum.at(high, raters, values)
    variance = np.bincount(raters, centred**2) / np.maximum(count - degrees, 1)
    # the standard deviation of equal numbers may be a rounding error instead of 0
    deviation = np.where(low < high, np.sqrt(variance), np.nan)
    scores: Floats = centred / deviation[raters]
    return scores
