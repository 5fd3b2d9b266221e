"""Score files: one row per pair and metric, as JSONL, TSV or Parquet by suffix."""

from __future__ import annotations

import gzip
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.files import load_pyarrow
from evenmatch.errors import DataError
from evenmatch.files import temporary_path
from evenmatch.types import Score, Scores

SCORE_COLUMNS = ("row", "metric", "value", "precision", "recall", "flags")

SCORE_SUFFIXES = (".jsonl", ".tsv", ".parquet", ".jsonl.gz", ".tsv.gz")


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of one pair (`row` counts from 0) by one metric."""

    row: int
    metric: str
    score: Score


WriteRows: TypeAlias = Callable[[Sequence[ScoreRow]], None]


def score_rows(first: int, names: Sequence[str], scores: Sequence[Scores]) -> Iterator[ScoreRow]:
    """Yield a row for each pair, numbered from `first`, and within it for each metric."""
    for index, segment in enumerate(zip(*(s.segments for s in scores), strict=True), first):
        for name, score in zip(names, segment, strict=True):
            yield ScoreRow(index, name, score)


def is_score_file(path: str) -> bool:
    """Whether a file is a score file by its name."""
    return path.lower().endswith(SCORE_SUFFIXES)


@contextmanager
def score_writer(path: str) -> Iterator[WriteRows]:
    """Create a score file; yields a function that appends rows. The file is written atomically."""
    with atomic_write(path) as place:
        plain = path.lower().removesuffix(".gz")
        if plain.endswith(".parquet"):
            with _parquet_writer(place) as write:
                yield write
            return
        opened: Any = open if plain == path.lower() else partial(gzip.open, compresslevel=6)
        with opened(place, "wt", encoding="utf-8", newline="") as file:
            if plain.endswith(".tsv"):
                file.write(format_tsv_line(SCORE_COLUMNS))
                yield lambda rows: file.writelines(map(format_tsv_line, map(row_to_cells, rows)))
            else:
                yield lambda rows: file.writelines(map(_json_line, rows))


@contextmanager
def atomic_write(path: str) -> Iterator[str]:
    """Yield a temporary path that replaces `path` when the block ends without an error."""
    target = Path(path)
    if target.exists() and not target.is_file():
        yield path  # devices and pipes are written to directly
        return
    if not target.parent.is_dir():
        raise DataError(
            f"there is no folder {target.parent} to write {target.name} in; create it first"
        )
    final = target.resolve()  # a symbolic link is kept and its target is replaced
    place = temporary_path(final)
    try:
        place.touch()
        mode = stat.S_IMODE(place.stat().st_mode)
        yield str(place)
        place.chmod(mode)  # some writers create private files
        os.replace(place, final)
    finally:
        place.unlink(missing_ok=True)


def score_to_record(score: Score) -> dict[str, Any]:
    """Convert a score to a JSON record; NaN and infinite numbers become null."""
    return {
        "value": finite_or_none(score.value),
        "precision": finite_or_none(score.precision),
        "recall": finite_or_none(score.recall),
        "flags": sorted(score.flags),
    }


def row_to_cells(row: ScoreRow) -> list[str]:
    """Format the cells of a row in full precision; a missing number is empty."""
    numbers = (row.score.value, row.score.precision, row.score.recall)
    shown = ["" if n is None else repr(float(n)) for n in numbers]
    return [str(row.row), row.metric, *shown, ",".join(sorted(row.score.flags))]


def format_tsv_line(texts: Sequence[str]) -> str:
    """Format one line of a TSV file; white space inside a cell becomes one space."""
    return "\t".join(" ".join(text.split()) for text in texts) + "\n"


def _json_line(row: ScoreRow) -> str:
    return json.dumps({"row": row.row, "metric": row.metric, **score_to_record(row.score)}) + "\n"


@contextmanager
def _parquet_writer(path: str) -> Iterator[WriteRows]:
    pyarrow = load_pyarrow()
    text, number = pyarrow.string(), pyarrow.float64()
    types = (pyarrow.int64(), text, number, number, number, pyarrow.list_(text))
    schema = pyarrow.schema(list(zip(SCORE_COLUMNS, types, strict=True)))
    with pyarrow.parquet.ParquetWriter(path, schema) as file:

        def write(rows: Sequence[ScoreRow]) -> None:
            columns: dict[str, list[Any]] = {
                name: [getattr(row.score, name) for row in rows] for name in SCORE_COLUMNS[2:5]
            }
            columns["row"], columns["metric"] = [r.row for r in rows], [r.metric for r in rows]
            columns["flags"] = [sorted(row.score.flags) for row in rows]
            file.write_table(pyarrow.Table.from_pydict(columns, schema))

        yield write


def finite_or_none(value: float | None) -> float | None:
    """Return the number; None in place of NaN and infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None
