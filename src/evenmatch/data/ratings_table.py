"""A user's own ratings: one table of `system, segment, candidate, references, rating`.

`reference` will do for `references`, and `source`, `rater` and `subset` may be there too. With
raters an output may have several rows, and ratings are standardised per rater.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_assembling import Judged, Rating, Segment, assemble
from evenmatch.data.ratings_cells import as_text, name_of, number_of, text_of, texts_of
from evenmatch.data.tabular import records
from evenmatch.errors import DataError, InputError

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    subset: str
    candidate: str
    source: str | None
    references: tuple[str, ...]
    rating: Rating


def read_table(path: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """A set for each value of the column `subset`, or one; named as the file is."""
    rows: dict[str, list[_Row]] = {}
    for where, record in records(str(path)):
        row = _row(record, where)
        rows.setdefault(row.subset, []).append(row)
    if not rows:
        raise DataError(
            f"{path} has no rows; expected system, segment, candidate, references, rating"
        )
    for subset in rows:
        if not subsets or subset in subsets:
            segments = _segments(rows[subset])
            yield assemble(path.name.split(".")[0], subset, segments, _judged(rows[subset]))


def _row(record: Mapping[str, Any], where: str) -> _Row:
    references = record.get("references", record.get("reference"))
    if references is None or references == []:
        raise InputError(f"{where} has no 'references'; give one or a list (it may be empty text)")
    source, rater, subset = (record.get(name) for name in ("source", "rater", "subset"))
    return _Row(
        where=where,
        subset="" if subset is None else name_of(record, "subset", where),
        candidate=text_of(record, "candidate", where),
        source=None if source is None else as_text(source, "source", where),
        references=texts_of(references, "references", where),
        rating=Rating(
            name_of(record, "system", where),
            name_of(record, "segment", where),
            number_of(record, "rating", where),
            "" if rater is None else name_of(record, "rater", where),
        ),
    )


def _segments(rows: Sequence[_Row]) -> list[Segment]:
    inputs = _agreed(
        rows, lambda r: r.rating.segment, lambda r: (r.source, r.references), "source or references"
    )
    texts = _agreed(
        rows, lambda r: (r.rating.segment, r.rating.system), lambda r: r.candidate, "candidate"
    )
    outputs: dict[str, dict[str, str]] = {segment: {} for segment in inputs}
    for (segment, system), text in texts.items():
        outputs[segment][system] = text
    return [Segment(name, *known, outputs[name]) for name, known in inputs.items()]


def _agreed(
    rows: Sequence[_Row], key: Callable[[_Row], _Key], value: Callable[[_Row], _Value], what: str
) -> dict[_Key, _Value]:
    """What the rows say of each key, which has to be the same in all."""
    first: dict[_Key, _Row] = {}
    for row in rows:
        before = first.setdefault(key(row), row)
        if value(before) != value(row):
            raise InputError(
                f"{row.where} has another {what} for the same segment than {before.where}; "
                "give both the same, or name the segments apart"
            )
    return {known: value(row) for known, row in first.items()}


def _judged(rows: Sequence[_Row]) -> Judged:
    seen: dict[tuple[str, str, str], str] = {}
    for row in rows:
        rating = row.rating
        if bool(rating.rater) != bool(rows[0].rating.rater):
            without = rows[0] if rating.rater else row
            raise InputError(f"{without.where} has no rater and others have; give all rows one")
        key = (rating.system, rating.segment, rating.rater)
        if key in seen:
            raise InputError(
                f"{row.where} rates the same output as {seen[key]}; "
                "give each output one row, or one per rater in a column 'rater'"
            )
        seen[key] = row.where
    return Judged([row.rating for row in rows])
