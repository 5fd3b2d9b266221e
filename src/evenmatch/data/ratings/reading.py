"""Read human ratings from a public set, a folder in WMT's layout, or a user's table.

A table has the columns `system, segment, candidate, references, rating`. `reference` may replace
`references`; the columns `source`, `rater` and `subset` are optional. With raters, an output may
have several rows, and ratings are z-scored per rater.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.catalogue.catalogue import canonical_name, data_sets, find_data_set
from evenmatch.data.files import LocatedRecord, check_text, read_records
from evenmatch.data.ratings.public_sets import (
    SYSTEM_SCORES_FILE,
    read_daseg,
    read_data_to_text,
    read_mqm,
    read_summaries,
    read_webnlg,
    read_wmt,
)
from evenmatch.data.ratings.rated_set import (
    RatedSegment,
    RatedSet,
    Rating,
    build_rated_set,
    check_texts,
    require_name,
    require_number,
    require_text,
)
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.registry.parts import check_arguments, suggest_name

# Ratings as an argument: anything `read_ratings` accepts, or what it returns.
RatingsLike: TypeAlias = str | PathLike[str] | RatedSet | Sequence[RatedSet]

# Reads the rated sets of a folder or file; only the given subsets, if any.
RatingsReader: TypeAlias = Callable[[Path, Sequence[str]], Iterator[RatedSet]]

# The value of a segment, of its output by a system, or of a rating, and the row it came from first.
_FirstValues: TypeAlias = dict[tuple[str, ...], tuple[Any, str]]

RATING_READERS: Mapping[str, RatingsReader] = {
    "d2t-human": read_data_to_text,
    "summ-realsumm": read_summaries,
    "summ-summeval": read_summaries,
    "webnlg2020-human": read_webnlg,
    "wmt1516-daseg": read_daseg,
    "wmt17-da": read_wmt,
    "wmt18-da": read_wmt,
    "wmt19-da": read_wmt,
    "wmt20-da": read_wmt,
    "wmt20-mqm": read_mqm,
}


@check_arguments
def read_ratings(data: str | PathLike[str], *, subsets: Sequence[str] = ()) -> list[RatedSet]:
    """Read rated sets from a public set, a folder or a table: one per language pair or criterion.

    `data` is a name in the catalogue, a folder with `system_scores.tsv` and `PAIR.jsonl.gz`, or a
    JSONL, TSV, CSV or Parquet table of `system, segment, candidate, references, rating`. Names in
    the catalogue take precedence over folders of the same name; write ./NAME for the folder.
    `subsets` selects some of the language pairs or criteria.
    """
    given = fspath(data)
    path, reader = _find_reader(given)
    found = list(reader(path, subsets))
    if lacking := [name for name in subsets if name not in {each.subset for each in found}]:
        known = dict.fromkeys(each.subset for each in reader(path, ()) if each.subset)
        near = suggest_name(lacking[0], known)
        raise UnknownNameError(
            f"{given} has no subset {lacking[0]!r}; {near}its subsets: {', '.join(known) or 'none'}"
        )
    return found


def as_rated_sets(ratings: RatingsLike) -> list[RatedSet]:
    """Return rated sets unchanged, or read them."""
    if isinstance(ratings, (str, PathLike)):
        return read_ratings(ratings)
    return [ratings] if isinstance(ratings, RatedSet) else list(ratings)


def join_set_names(sets: Sequence[RatedSet]) -> str:
    """Join the distinct names of rated sets."""
    return ", ".join(dict.fromkeys(each.name for each in sets))


def _find_reader(given: str) -> tuple[Path, RatingsReader]:
    given = canonical_name(given)
    if given in RATING_READERS:
        return find_data_set(given), RATING_READERS[given]
    if given in {each.name for each in data_sets()}:
        raise InputError(
            f"the data set {given!r} has no ratings; sets with ratings: {', '.join(RATING_READERS)}"
        )
    path = Path(given)
    if (path / SYSTEM_SCORES_FILE).is_file():
        return path, read_wmt
    if path.is_dir():
        name = path.resolve().name
        if name in RATING_READERS:
            return path, RATING_READERS[name]
        raise DataError(
            f"the folder {path} has no {SYSTEM_SCORES_FILE}; "
            "expected it together with a PAIR.jsonl.gz for each language pair"
        )
    if not path.exists():
        raise DataError(
            f"there is no data set, folder or file {given!r}; "
            f"{suggest_name(given.lower(), RATING_READERS)}"
            f"data sets with ratings: {', '.join(RATING_READERS)}"
        )
    return path, read_rating_table


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
