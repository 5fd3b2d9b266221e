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
from pathlib import Path
from typing import IO, Any, TypeAlias

from evenmatch.data.files import Columns, parquet_writer
from evenmatch.errors import DataError
from evenmatch.files import temporary_path
from evenmatch.types import Score, Scores

SCORE_COLUMNS = {
    "row": "whole",
    "metric": "text",
    "value": "number",
    "precision": "number",
    "recall": "number",
    "flags": "texts",
}

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
            with parquet_writer(place, SCORE_COLUMNS) as add:
                yield lambda rows: add(_rows_to_columns(rows))
            return
        with _open_text(place, compressed=plain != path.lower()) as file:
            if plain.endswith(".tsv"):
                file.write(format_tsv_line(list(SCORE_COLUMNS)))
                yield lambda rows: file.writelines(
                    format_tsv_line(row_to_cells(row)) for row in rows
                )
            else:
                yield lambda rows: file.writelines(_json_line(row) for row in rows)


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


def _open_text(path: str, *, compressed: bool) -> IO[str]:
    if compressed:
        return gzip.open(path, "wt", encoding="utf-8", compresslevel=6, newline="")
    return open(path, "w", encoding="utf-8", newline="")


def _json_line(row: ScoreRow) -> str:
    return json.dumps({"row": row.row, "metric": row.metric, **score_to_record(row.score)}) + "\n"


def _rows_to_columns(rows: Sequence[ScoreRow]) -> Columns:
    return {
        "row": [row.row for row in rows],
        "metric": [row.metric for row in rows],
        "value": [row.score.value for row in rows],
        "precision": [row.score.precision for row in rows],
        "recall": [row.score.recall for row in rows],
        "flags": [sorted(row.score.flags) for row in rows],
    }


def finite_or_none(value: float | None) -> float | None:
    """Return the number; None in place of NaN and infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None
