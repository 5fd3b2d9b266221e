"""Rated sets: texts and human ratings of systems × segments, and how they are built.

`build_rated_set` makes a `RatedSet` of the segments and ratings that a file has; `z_score_by_rater`
makes raters comparable: some are strict, some use only half of the scale. The `require_…` and
`check_…` functions read one field of a record; a missing or malformed field raises an `InputError`
that names the file and line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenmatch.data.files import check_text, short_repr
from evenmatch.errors import InputError
from evenmatch.types import Pair

Floats: TypeAlias = NDArray[np.float64]

Indexes: TypeAlias = NDArray[np.intp]
_LARGEST_NUMBER = 1e100  # the sum of squares of many ratings must be finite
# The only system of a set whose outputs have no system names.
UNNAMED_SYSTEM = "unnamed"


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
        return mean_known(self.ratings, 1)

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


def mean_known(values: Floats, axis: int = 0) -> Floats:
    """Mean over an axis of the values that are not NaN; NaN where there are none."""
    count = (~np.isnan(values)).sum(axis)
    return np.where(count > 0, np.nansum(values, axis=axis) / np.maximum(count, 1), np.nan)


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
    return centred / deviation[raters]


@dataclass(frozen=True, slots=True)
class RatedSegment:
    """One input segment: name, source, references and the outputs by system."""

    name: str
    source: str | None = None
    references: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating of one output, with its rater if known."""

    system: str
    segment: str
    value: float
    rater: str = ""


# A segment, and two systems of which the first has the better output.
RelativeRank: TypeAlias = tuple[str, str, str]


def build_rated_set(
    name: str,
    subset: str,
    segments: Sequence[RatedSegment],
    ratings: Sequence[Rating],
    *,
    criterion: str = "",
    official: Mapping[str, float] = {},
    ranks: Sequence[RelativeRank] = (),
    humans: frozenset[str] = frozenset(),
    outliers: frozenset[str] = frozenset(),
    published: Mapping[str, Mapping[str, float]] = {},
    degrees: int = 1,
) -> RatedSet:
    """Build a rated set; ratings of one output are averaged, after z-scoring by rater if known.

    `official` are the organisers' ratings of systems. Systems are in their order, then that of the
    outputs, then of the ratings. `degrees` are the delta degrees of freedom of each rater's
    standard deviation.
    """
    outputs = [system for segment in segments for system in segment.outputs]
    systems = tuple(dict.fromkeys([*official, *outputs, *(rating.system for rating in ratings)]))
    columns = {segment.name: number for number, segment in enumerate(segments)}
    rows = {system: number for number, system in enumerate(systems)}
    raters = {rater: n for n, rater in enumerate(dict.fromkeys(r.rater for r in ratings))}
    rated = [(rows[r.system], columns[r.segment], raters[r.rater]) for r in ratings]
    judgements = Judgements(
        *_index_columns(rated), values=np.array([r.value for r in ratings], dtype=np.float64)
    )
    ranked = [(columns[segment], rows[better], rows[worse]) for segment, better, worse in ranks]
    with_raters = any(raters)
    shape = (len(rows), len(columns))
    return RatedSet(
        name=name,
        subset=subset,
        systems=systems,
        segments=tuple(columns),
        candidates=tuple(tuple(s.outputs.get(system) for s in segments) for system in systems),
        references=tuple(s.references for s in segments),
        sources=tuple(s.source for s in segments),
        ratings=_mean_ratings(judgements, shape, degrees if with_raters else None),
        system_ratings=_by_system(official, systems),
        criterion=criterion,
        humans=humans & rows.keys(),
        outliers=outliers & rows.keys(),
        ranks=RelativeRanks(*_index_columns(ranked)) if ranks else None,
        judgements=judgements if with_raters else None,
        published={metric: _by_system(scores, systems) for metric, scores in published.items()},
    )


def require_field(record: Mapping[str, Any], name: str, where: str) -> Any:
    """Return a field; raise if it is missing."""
    if name not in record:
        raise InputError(f"{where} has no {name!r}; its fields: {', '.join(record) or 'none'}")
    return record[name]


def require_text(record: Mapping[str, Any], name: str, where: str) -> str:
    """Return a field; raise if it is not text."""
    return check_text(require_field(record, name, where), name, where)


def check_texts(value: Any, name: str, where: str) -> tuple[str, ...]:
    """Return a text or a list of texts as a tuple; raise for anything else."""
    return tuple(
        check_text(each, name, where) for each in (value if isinstance(value, list) else [value])
    )


def require_name(record: Mapping[str, Any], name: str, where: str) -> str:
    """Return a name field, which is text or an integer, as text.

    >>> require_name({"segment": 7}, "segment", "x.jsonl line 1")
    '7'
    """
    value = require_field(record, name, where)
    integer = isinstance(value, int) and not isinstance(value, bool)
    if not (isinstance(value, str) or integer) or value == "":
        raise InputError(
            f"the {name} of {where} must be a name or a number, got {short_repr(value)}"
        )
    return str(value)


def require_number(record: Mapping[str, Any], name: str, where: str) -> float:
    """Return a field as a number; null and empty become NaN.

    >>> require_number({"rating": "0.5"}, "rating", "x.tsv line 2")
    0.5
    """
    value = require_field(record, name, where)
    if value is None or value == "":
        return math.nan
    try:
        number = math.inf if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if abs(number) > _LARGEST_NUMBER:
        raise InputError(f"the {name} of {where} must be a finite number, got {short_repr(value)}")
    return number


def _mean_ratings(judgements: Judgements, shape: tuple[int, int], degrees: int | None) -> Floats:
    """Average the ratings of each output; with `degrees`, z-score them by rater first."""
    values = judgements.values
    if degrees is not None:
        values = z_score_by_rater(values, judgements.raters, degrees=degrees)
    known = ~np.isnan(values)
    cell = judgements.systems[known] * shape[1] + judgements.segments[known]
    size = shape[0] * shape[1]
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, values[known], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(shape)


def _by_system(scores: Mapping[str, float], systems: Sequence[str]) -> Floats:
    return np.array([scores.get(system, np.nan) for system in systems], dtype=np.float64)


def _index_columns(rows: Sequence[tuple[int, int, int]]) -> tuple[Indexes, Indexes, Indexes]:
    first, second, third = np.array(rows, dtype=np.intp).reshape(-1, 3).T
    return first, second, third
