"""User tables of ratings, with the columns `system, segment, candidate, references, rating`.

`reference` may replace `references`; the columns `source`, `rater` and `subset` are optional. With
raters, an output may have several rows, and ratings are z-scored per rater.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.data.files import check_text, read_records
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.records import (
    RatedSegment,
    Rating,
    build_rated_set,
    check_texts,
    require_name,
    require_number,
    require_text,
)
from evenmatch.errors import DataError, InputError

_Key = TypeVar("_Key")

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _RatingRow:
    where: str
    subset: str
    candidate: str
    source: str | None
    references: tuple[str, ...]
    rating: Rating


def read_rating_table(path: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Yield a rated set, named after the file, for each value of the column `subset`."""
    rows: dict[str, list[_RatingRow]] = {}
    for where, record in read_records(str(path)):
        row = _parse_row(record, where)
        rows.setdefault(row.subset, []).append(row)
    if not rows:
        raise DataError(
            f"{path} has no rows; expected system, segment, candidate, references, rating"
        )
    for subset in rows:
        if not subsets or subset in subsets:
            segments = _build_segments(rows[subset])
            _check_raters(rows[subset])
            ratings = [row.rating for row in rows[subset]]
            yield build_rated_set(path.name.split(".")[0], subset, segments, ratings)


def _parse_row(record: Mapping[str, Any], where: str) -> _RatingRow:
    references = record.get("references", record.get("reference"))
    if references is None or references == []:
        raise InputError(f"{where} has no 'references'; give one or a list (it may be empty text)")
    source, rater, subset = (record.get(name) for name in ("source", "rater", "subset"))
    return _RatingRow(
        where=where,
        subset="" if subset is None else require_name(record, "subset", where),
        candidate=require_text(record, "candidate", where),
        source=None if source is None else check_text(source, "source", where),
        references=check_texts(references, "references", where),
        rating=Rating(
            require_name(record, "system", where),
            require_name(record, "segment", where),
            require_number(record, "rating", where),
            "" if rater is None else require_name(record, "rater", where),
        ),
    )


def _build_segments(rows: Sequence[_RatingRow]) -> list[RatedSegment]:
    inputs = _consistent_values(
        rows, lambda r: r.rating.segment, lambda r: (r.source, r.references), "source or references"
    )
    texts = _consistent_values(
        rows, lambda r: (r.rating.segment, r.rating.system), lambda r: r.candidate, "candidate"
    )
    outputs: dict[str, dict[str, str]] = {segment: {} for segment in inputs}
    for (segment, system), text in texts.items():
        outputs[segment][system] = text
    return [RatedSegment(name, *known, outputs[name]) for name, known in inputs.items()]


def _consistent_values(
    rows: Sequence[_RatingRow],
    key: Callable[[_RatingRow], _Key],
    value: Callable[[_RatingRow], _Value],
    what: str,
) -> dict[_Key, _Value]:
    """Return the value of each key; raise if two rows disagree."""
    first: dict[_Key, _RatingRow] = {}
    for row in rows:
        before = first.setdefault(key(row), row)
        if value(before) != value(row):
            raise InputError(
                f"{row.where} has a different {what} for the same segment than {before.where}; "
                "give both the same, or use different segment names"
            )
    return {known: value(row) for known, row in first.items()}


def _check_raters(rows: Sequence[_RatingRow]) -> None:
    """Raise if only some rows have a rater, or if an output is rated twice by the same."""
    seen: dict[tuple[str, str, str], str] = {}
    for row in rows:
        rating = row.rating
        if bool(rating.rater) != bool(rows[0].rating.rater):
            without = rows[0] if rating.rater else row
            raise InputError(
                f"{without.where} has no rater but others have one; give a rater in every row"
            )
        key = (rating.system, rating.segment, rating.rater)
        if key in seen:
            raise InputError(
                f"{row.where} rates the same output as {seen[key]}; "
                "give each output one row, or one per rater in a column 'rater'"
            )
        seen[key] = row.where
