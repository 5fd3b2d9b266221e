"""Segments and ratings as files have them, put together into a rated set.

Values of records in files of ratings, or a refusal that says where and what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenmatch.data.ratings.rated_set import (
    Floats,
    Indexes,
    Judgements,
    RatedSet,
    RelativeRanks,
    z_score_by_rater,
)
from evenmatch.errors import InputError

# The one system of a set that does not say whose outputs it has.
UNNAMED_SYSTEM = "unnamed"


@dataclass(frozen=True, slots=True)
class RatedSegment:
    """One input: its name, what is known of it, and the systems' outputs."""

    name: str
    source: str | None = None
    references: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating of one output, by a rater if that is known."""

    system: str
    segment: str
    value: float
    rater: str = ""


@dataclass(frozen=True, slots=True)
class RelativeRank:
    """One system's output of a segment found better than another's."""

    segment: str
    better: str
    worse: str


@dataclass(frozen=True, slots=True)
class RatingRecords:
    """All that people said: of outputs, of systems, and which of two outputs is better."""

    ratings: Sequence[Rating] = ()
    systems: Mapping[str, float] = field(default_factory=dict)
    ranks: Sequence[RelativeRank] = ()
    humans: frozenset[str] = frozenset()
    outliers: frozenset[str] = frozenset()
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    degrees: int = 1  # of freedom that raters' deviations leave out


def build_rated_set(
    name: str,
    subset: str,
    segments: Sequence[RatedSegment],
    judged: RatingRecords,
    *,
    criterion: str = "",
) -> RatedSet:
    """A rated set; ratings of one output are averaged, standardised first where raters are known.

    Systems come in the order of the organisers' scores, then as outputs and ratings name them.
    """
    systems = _order_systems(segments, judged)
    at = {segment.name: number for number, segment in enumerate(segments)}
    row = {system: number for number, system in enumerate(systems)}
    judgements = _index_ratings(judged.ratings, row, at)
    official = [judged.systems.get(system, np.nan) for system in systems]
    with_raters = any(rating.rater for rating in judged.ratings)
    return RatedSet(
        name=name,
        subset=subset,
        systems=systems,
        segments=tuple(at),
        candidates=tuple(tuple(s.outputs.get(system) for s in segments) for system in systems),
        references=tuple(s.references for s in segments),
        sources=tuple(s.source for s in segments),
        ratings=_mean_ratings(
            judgements, (len(row), len(at)), judged.degrees if with_raters else None
        ),
        system_ratings=np.array(official, dtype=np.float64),
        criterion=criterion,
        humans=judged.humans & row.keys(),
        outliers=judged.outliers & row.keys(),
        ranks=_index_ranks(judged.ranks, row, at),
        judgements=judgements if with_raters else None,
        published={
            metric: np.array([scores.get(s, np.nan) for s in systems], dtype=np.float64)
            for metric, scores in judged.published.items()
        },
    )


def _order_systems(segments: Sequence[RatedSegment], judged: RatingRecords) -> tuple[str, ...]:
    outputs = dict.fromkeys(system for segment in segments for system in segment.outputs)
    rated = dict.fromkeys(rating.system for rating in judged.ratings)
    return tuple({**dict.fromkeys(judged.systems), **outputs, **rated})


def _index_ratings(
    ratings: Sequence[Rating], row: Mapping[str, int], at: Mapping[str, int]
) -> Judgements:
    raters = {rater: n for n, rater in enumerate(dict.fromkeys(r.rater for r in ratings))}
    return Judgements(
        systems=_as_indexes([row[r.system] for r in ratings]),
        segments=_as_indexes([at[r.segment] for r in ratings]),
        raters=_as_indexes([raters[r.rater] for r in ratings]),
        values=np.array([r.value for r in ratings], dtype=np.float64),
    )


def _mean_ratings(found: Judgements, shape: tuple[int, int], degrees: int | None) -> Floats:
    values = found.values
    if degrees is not None:
        values = z_score_by_rater(values, found.raters, degrees=degrees)
    known = ~np.isnan(values)
    cell = found.systems[known] * shape[1] + found.segments[known]
    size = shape[0] * shape[1]
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, values[known], minlength=size)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(shape)
    return means


def _index_ranks(
    ranks: Sequence[RelativeRank], row: Mapping[str, int], at: Mapping[str, int]
) -> RelativeRanks | None:
    if not ranks:
        return None
    return RelativeRanks(
        segments=_as_indexes([at[rank.segment] for rank in ranks]),
        better=_as_indexes([row[rank.better] for rank in ranks]),
        worse=_as_indexes([row[rank.worse] for rank in ranks]),
    )


def _as_indexes(values: Sequence[int]) -> Indexes:
    return np.array(values, dtype=np.intp)


def require_field(record: Mapping[str, Any], name: str, where: str) -> Any:
    """A field that must be there."""
    if name not in record:
        raise InputError(f"{where} has no {name!r}; its fields: {', '.join(record) or 'none'}")
    return record[name]


def require_text(record: Mapping[str, Any], name: str, where: str) -> str:
    """A field that must be text."""
    return check_text(require_field(record, name, where), name, where)


def check_text(value: Any, name: str, where: str) -> str:
    """The value, which must be text."""
    if not isinstance(value, str):
        raise InputError(f"the {name} of {where} must be a string, got {_short_repr(value)}")
    return value


def require_name(record: Mapping[str, Any], name: str, where: str) -> str:
    """A field that names something: text, or a whole number as text.

    >>> require_name({"segment": 7}, "segment", "x.jsonl line 1")
    '7'
    """
    value = require_field(record, name, where)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (isinstance(value, str) or whole) or value == "":
        raise InputError(
            f"the {name} of {where} must be a name or a number, got {_short_repr(value)}"
        )
    return str(value)


def check_texts(value: Any, name: str, where: str) -> tuple[str, ...]:
    """A text or a list of texts."""
    return tuple(
        check_text(each, name, where) for each in (value if isinstance(value, list) else [value])
    )


def require_number(record: Mapping[str, Any], name: str, where: str) -> float:
    """A field that must be a number; null, empty and NaN are NaN.

    >>> require_number({"rating": "0.5"}, "rating", "x.tsv line 2")
    0.5
    """
    value = require_field(record, name, where)
    if value is None or value == "":
        return math.nan
    try:
        number = math.inf if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise InputError(f"the {name} of {where} must be a finite number, got {_short_repr(value)}")
    return number


def _short_repr(value: Any) -> str:
    return repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"
