"""Scores as rows of a file, one per pair and metric: JSONL, TSV or Parquet by its suffix."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from evenmatch.data.files import Columns, parquet_writer
from evenmatch.errors import DataError
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
    """One score: of which pair, counted from 0, and by which metric."""

    row: int
    metric: str
    score: Score


def score_rows(first: int, names: Sequence[str], found: Sequence[Scores]) -> Iterator[ScoreRow]:
    """Scores as rows from `first` on: pair by pair, and in each the metrics in their order."""
    for index, scores in enumerate(zip(*(s.segments for s in found), strict=True), first):
        for name, score in zip(names, scores, strict=True):
            yield ScoreRow(index, name, score)


WriteRows: TypeAlias = Callable[[Sequence[ScoreRow]], None]


def is_score_file(path: str) -> bool:
    """Whether a file of that name holds rows of scores."""
    return path.lower().endswith(SCORE_SUFFIXES)


@contextmanager
def score_writer(path: str) -> Iterator[WriteRows]:
    """A new file of rows; gives a function that adds some. It appears whole or not at all."""
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
    """Where to write a file so that it takes the place of `path` only when it is finished."""
    target = Path(path)
    if target.exists() and not target.is_file():
        yield path  # a device or a pipe is written to as it is
        return
    if not target.parent.is_dir():
        raise DataError(
            f"there is no folder {target.parent} to write {target.name} in; make it first"
        )
    final = target.resolve()  # a link stays, and what it points to is replaced
    place = final.with_name(f".{final.name}.{os.getpid()}")
    try:
        yield str(place)
        os.replace(place, final)
    finally:
        place.unlink(missing_ok=True)


def _open_text(path: str, *, compressed: bool) -> IO[str]:
    if compressed:
        return gzip.open(path, "wt", encoding="utf-8", compresslevel=6, newline="")
    return open(path, "w", encoding="utf-8", newline="")


def score_to_record(score: Score) -> dict[str, Any]:
    """A score as JSON has it; what is no finite number becomes null."""
    return {
        "value": _finite_or_none(score.value),
        "precision": _finite_or_none(score.precision),
        "recall": _finite_or_none(score.recall),
        "flags": sorted(score.flags),
    }


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _json_line(row: ScoreRow) -> str:
    return json.dumps({"row": row.row, "metric": row.metric, **score_to_record(row.score)}) + "\n"


def row_to_cells(row: ScoreRow) -> list[str]:
    """A row's columns as text, in full precision; an absent number is empty."""
    numbers = (row.score.value, row.score.precision, row.score.recall)
    shown = ["" if n is None else repr(float(n)) for n in numbers]
    return [str(row.row), row.metric, *shown, ",".join(sorted(row.score.flags))]


def format_tsv_line(texts: Sequence[str]) -> str:
    """One line of a TSV file; white space inside a cell becomes one space."""
    return "\t".join(" ".join(text.split()) for text in texts) + "\n"


def _rows_to_columns(rows: Sequence[ScoreRow]) -> Columns:
    return {
        "row": [row.row for row in rows],
        "metric": [row.metric for row in rows],
        "value": [row.score.value for row in rows],
        "precision": [row.score.precision for row in rows],
        "recall": [row.score.recall for row in rows],
        "flags": [sorted(row.score.flags) for row in rows],
    }
