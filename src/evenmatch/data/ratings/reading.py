"""Read human ratings from a public set, a folder in WMT's layout, or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TypeAlias

from evenmatch.data.catalogue.catalogue import data_sets, find_data_set
from evenmatch.data.ratings.generated import read_data_to_text, read_summaries, read_webnlg
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.table import read_rating_table
from evenmatch.data.ratings.wmt import SYSTEM_SCORES_FILE, read_daseg, read_wmt
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.registry.parts import suggest_name

# Ratings as an argument: anything `read_ratings` accepts, or what it returns.
RatingsLike: TypeAlias = str | PathLike[str] | RatedSet | Sequence[RatedSet]

# Reads the rated sets of a folder or file; only the given subsets, if any.
RatingsReader: TypeAlias = Callable[[Path, Sequence[str]], Iterator[RatedSet]]


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
}


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
    if isinstance(ratings, RatedSet):
        return [ratings]
    return read_ratings(ratings) if isinstance(ratings, (str, PathLike)) else list(ratings)


def join_set_names(sets: Sequence[RatedSet]) -> str:
    """Join the distinct names of rated sets."""
    return ", ".join(dict.fromkeys(each.name for each in sets))


def _find_reader(given: str) -> tuple[Path, RatingsReader]:
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
            f"data sets with ratings: {', '.join(RATING_READERS)}"
        )
    return path, read_rating_table
