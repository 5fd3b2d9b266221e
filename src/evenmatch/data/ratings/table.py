"""User tables of ratings, with the columns `system, segment, candidate, references, rating`.

`reference` may replace `references`; the columns `source`, `rater` and `subset` are optional. With
raters, an output may have several rows, and ratings are z-scored per rater.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.files import LocatedRecord, check_text, read_records
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

# The value of a segment, of its output by a system, or of a rating, and the row it came from first.
_FirstValues: TypeAlias = dict[tuple[str, ...], tuple[Any, str]]


def read_rating_table(path: Path, subsets: Sequence[str]) -> Iterator[RatedSet]:
    """Yield a rated set, named after the file, for each value of the column `subset`."""
    rows: dict[str, list[LocatedRecord]] = {}
    for where, record in read_records(str(path)):
        given = record.get("subset")
        subset = "" if given is None else require_name(record, "subset", where)
        rows.setdefault(subset, []).append((where, record))
    if not rows:
        raise DataError(
            f"{path} has no rows; expected system, segment, candidate, references, rating"
        )
    for subset in rows:
        if not subsets or subset in subsets:
            yield _build_set(path.name.split(".")[0], subset, rows[subset])


def _build_set(name: str, subset: str, rows: Sequence[LocatedRecord]) -> RatedSet:
    segments: dict[str, RatedSegment] = {}
    outputs: dict[str, dict[str, str]] = {}  # by segment and system
    ratings: list[Rating] = []
    first: _FirstValues = {}
    for where, record in rows:
        references = record.get("references", record.get("reference"))
        if references is None or references == []:
            raise InputError(
                f"{where} has no 'references'; give one or a list (it may be empty text)"
            )
        source, rater = record.get("source"), record.get("rater")
        candidate = require_text(record, "candidate", where)
        source = None if source is None else check_text(source, "source", where)
        references = check_texts(references, "references", where)
        system, segment = (require_name(record, key, where) for key in ("system", "segment"))
        value = require_number(record, "rating", where)
        rater = "" if rater is None else require_name(record, "rater", where)
        _check_same(first, (segment,), (source, references), where, "source or references")
        _check_same(first, (segment, system), candidate, where, "candidate")
        if ratings and bool(rater) != bool(ratings[0].rater):
            raise InputError(
                f"{rows[0][0] if rater else where} has no rater but others have one; "
                "give a rater in every row"
            )
        if (segment, system, rater) in first:
            raise InputError(
                f"{where} rates the same output as {first[segment, system, rater][1]}; "
                "give each output one row, or one per rater in a column 'rater'"
            )
        first[segment, system, rater] = value, where
        outputs.setdefault(segment, {})[system] = candidate
        segments[segment] = RatedSegment(segment, source, references, outputs[segment])
        ratings.append(Rating(system, segment, value, rater))
    return build_rated_set(name, subset, list(segments.values()), ratings)


def _check_same(
    first: _FirstValues, key: tuple[str, ...], value: Any, where: str, what: str
) -> None:
    """Raise if an earlier row has another value for the same segment, or segment and system."""
    before, place = first.setdefault(key, (value, where))
    if before != value:
        raise InputError(
            f"{where} has a different {what} for the same segment than {place}; "
            "give both the same, or use different segment names"
        )
