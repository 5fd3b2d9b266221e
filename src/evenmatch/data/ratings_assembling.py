"""Segments and ratings as files have them, put together into a rated set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenmatch.data.raters import by_rater
from evenmatch.data.ratings import Floats, Indexes, Judgements, Ranks, RatedSet

# The one system of a set that does not say whose outputs it has.
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Segment:
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
class Rank:
    """One system's output of a segment found better than another's."""

    segment: str
    better: str
    worse: str


@dataclass(frozen=True, slots=True)
class Judged:
    """All that people said: of outputs, of systems, and which of two outputs is better."""

    ratings: Sequence[Rating] = ()
    systems: Mapping[str, float] = field(default_factory=dict)
    ranks: Sequence[Rank] = ()
    humans: frozenset[str] = frozenset()
    outliers: frozenset[str] = frozenset()
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    degrees: int = 1  # of freedom that raters' deviations leave out


def assemble(
    name: str, subset: str, segments: Sequence[Segment], judged: Judged, *, criterion: str = ""
) -> RatedSet:
    """A rated set; ratings of one output are averaged, standardised first where raters are known.

    Systems come in the order of the organisers' scores, then as outputs and ratings name them.
    """
    systems = _systems(segments, judged)
    at = {segment.name: number for number, segment in enumerate(segments)}
    row = {system: number for number, system in enumerate(systems)}
    judgements = _judgements(judged.ratings, row, at)
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
        ratings=_means(judgements, (len(row), len(at)), judged.degrees if with_raters else None),
        system_ratings=np.array(official, dtype=np.float64),
        criterion=criterion,
        humans=judged.humans & row.keys(),
        outliers=judged.outliers & row.keys(),
        ranks=_ranks(judged.ranks, row, at),
        judgements=judgements if with_raters else None,
        published={
            metric: np.array([scores.get(s, np.nan) for s in systems], dtype=np.float64)
            for metric, scores in judged.published.items()
        },
    )


def _systems(segments: Sequence[Segment], judged: Judged) -> tuple[str, ...]:
    outputs = dict.fromkeys(system for segment in segments for system in segment.outputs)
    rated = dict.fromkeys(rating.system for rating in judged.ratings)
    return tuple({**dict.fromkeys(judged.systems), **outputs, **rated})


def _judgements(
    ratings: Sequence[Rating], row: Mapping[str, int], at: Mapping[str, int]
) -> Judgements:
    raters = {rater: n for n, rater in enumerate(dict.fromkeys(r.rater for r in ratings))}
    return Judgements(
        systems=_numbers([row[r.system] for r in ratings]),
        segments=_numbers([at[r.segment] for r in ratings]),
        raters=_numbers([raters[r.rater] for r in ratings]),
        values=np.array([r.value for r in ratings], dtype=np.float64),
    )


def _means(found: Judgements, shape: tuple[int, int], degrees: int | None) -> Floats:
    values = found.values
    if degrees is not None:
        values = by_rater(values, found.raters, degrees=degrees)
    known = ~np.isnan(values)
    cell = found.systems[known] * shape[1] + found.segments[known]
    size = shape[0] * shape[1]
    count = np.bincount(cell, minlength=size)
    total = np.bincount(cell, values[known], minlength=size)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(shape)
    return means


def _ranks(ranks: Sequence[Rank], row: Mapping[str, int], at: Mapping[str, int]) -> Ranks | None:
    if not ranks:
        return None
    return Ranks(
        segments=_numbers([at[rank.segment] for rank in ranks]),
        better=_numbers([row[rank.better] for rank in ranks]),
        worse=_numbers([row[rank.worse] for rank in ranks]),
    )


def _numbers(values: Sequence[int]) -> Indexes:
    return np.array(values, dtype=np.intp)
