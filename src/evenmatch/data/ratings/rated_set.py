"""What people said of systems' outputs, as arrays of systems × segments beside the texts.

Raters made comparable: some are strict, some use half of the scale.
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
    """Judgements that one output is better than another, by number of segment and system."""

    segments: Indexes
    better: Indexes
    worse: Indexes


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Single ratings before they were averaged; raters are told apart by number."""

    systems: Indexes
    segments: Indexes
    raters: Indexes
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RatedSet:
    """Outputs of several systems for the same segments, and how people rated them.

    Texts and ratings are systems × segments; None is an output that is not known, NaN a rating
    there is none of. `system_ratings` are those the organisers published, NaN where they did
    not; `published` has other people's scores of the systems, by metric.
    """

    name: str
    subset: str
    systems: tuple[str, ...]
    segments: tuple[str, ...]
    candidates: tuple[tuple[str | None, ...], ...]
    references: tuple[tuple[str, ...], ...]  # none where no reference is known
    sources: tuple[str | None, ...]
    ratings: Floats
    system_ratings: Floats
    criterion: str = ""
    humans: frozenset[str] = frozenset()  # systems that are people
    outliers: frozenset[str] = frozenset()  # systems that the organisers leave out
    ranks: RelativeRanks | None = None
    judgements: Judgements | None = None
    published: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def by_system(self) -> Floats:
        """One rating per system: the organisers', or else the mean over its segments.

        Means stand for all systems or for none, as the two are on different scales.
        """
        if not np.isnan(self.system_ratings).all():
            return self.system_ratings
        known = ~np.isnan(self.ratings)
        count = known.sum(1)
        total = np.where(known, self.ratings, 0.0).sum(1)
        means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return means

    def exclude_humans(self) -> RatedSet:
        """The set without ratings of people's own outputs."""
        people = np.array([system in self.humans for system in self.systems], dtype=bool)
        return replace(self, ratings=np.where(people[:, None], np.nan, self.ratings))

    def cells(self, *, rated: bool = False) -> tuple[Indexes, Indexes]:
        """System and segment numbers of the outputs that can be scored; only `rated` ones."""
        known = np.array([[c is not None for c in row] for row in self.candidates], dtype=bool)
        known = known.reshape(len(self.systems), len(self.segments))
        known &= np.array([bool(several) for several in self.references], dtype=bool)
        if rated:
            known &= ~np.isnan(self.ratings)
        system, segment = np.nonzero(known)
        return system, segment

    def pairs(self, cells: tuple[Indexes, Indexes]) -> list[Pair]:
        """What a metric scores, one pair per cell."""
        found = []
        for system, segment in zip(*cells, strict=True):
            candidate = self.candidates[system][segment]
            if candidate is None:
                raise InputError(
                    f"system {self.systems[system]} has no output for segment "
                    f"{self.segments[segment]}; ask for the cells that can be scored"
                )
            found.append(Pair(candidate, self.references[segment], self.sources[segment]))
        return found

    def to_matrix(self, values: Sequence[float], cells: tuple[Indexes, Indexes]) -> Floats:
        """Values of cells as systems × segments, NaN elsewhere."""
        table = np.full((len(self.systems), len(self.segments)), np.nan)
        table[cells] = values
        return table


def z_score_by_rater(values: Floats, raters: Indexes, *, degrees: int = 1) -> Floats:
    """Each value as z-score among its rater's, the deviation over n - `degrees`.

    A rater whose values are all the same says nothing about differences: NaN.

    >>> z_score_by_rater(np.array([1.0, 2.0, 3.0, 5.0]), np.array([0, 0, 0, 1]))
    array([-1.,  0.,  1., nan])
    """
    count = np.bincount(raters).astype(np.float64)
    mean = np.bincount(raters, values) / np.maximum(count, 1)
    apart = values - mean[raters]
    least, most = np.full(len(count), np.inf), np.full(len(count), -np.inf)
    np.minimum.at(least, raters, values)
    np.maximum.at(most, raters, values)
    spread = np.bincount(raters, apart**2) / np.maximum(count - degrees, 1)
    # the deviation of equal numbers may be a rounding error instead of 0
    deviation = np.where(least < most, np.sqrt(spread), np.nan)
    scores: Floats = apart / deviation[raters]
    return scores
