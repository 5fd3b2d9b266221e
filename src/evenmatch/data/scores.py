"""Score files: the scores of every pair, as JSONL, TSV, CSV or Parquet by suffix.

`score_records` gives the rows of a file as flat records in one of two layouts: 'long' has a row for
each pair and metric, 'wide' a row for each pair with a column for each metric. Both carry the
pair's own fields, such as an id. `score_writer` writes them.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import stat
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from evenmatch.data.files import is_csv, is_parquet, is_tsv, parquet_writer
from evenmatch.errors import DataError
from evenmatch.files import temporary_path
from evenmatch.types import Pair, Score, Scores

SCORE_COLUMNS = {
    "row": "whole",
    "metric": "text",
    "value": "number",
    "precision": "number",
    "recall": "number",
    "flags": "texts",
}

SCORE_SUFFIXES = (".jsonl", ".tsv", ".csv", ".parquet", ".jsonl.gz", ".tsv.gz", ".csv.gz")

LayoutStyle: TypeAlias = Literal["long", "wide"]


@dataclass(frozen=True, slots=True)
class ScoreLayout:
    """How a score file is written.

    `fields` are the pair's own fields that become columns of a table; None takes those of the first
    pair. JSONL has the fields of each pair. `scale` multiplies every number.
    """

    style: LayoutStyle = "long"
    fields: tuple[str, ...] | None = None
    scale: float = 1.0

    def describe(self, suffix: str) -> str:
        """Describe the format of a file with this suffix."""
        scaled = "" if self.scale == 1 else f" scale {self.scale:g}"
        return f"{suffix}{'' if self.style == 'long' else ' wide'}{scaled}"


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """The scores of one pair (`row` counts from 0) by metric, and the pair's own fields."""

    row: int
    scores: Mapping[str, Score]
    fields: Mapping[str, Any]

    def scaled(self, factor: float) -> ScoredPair:
        """Return the pair with its scores multiplied by a factor."""
        return replace(self, scores={n: s.scaled(factor) for n, s in self.scores.items()})


WritePairs: TypeAlias = Callable[[Sequence[ScoredPair]], None]


def scored_pairs(
    first: int, names: Sequence[str], scores: Sequence[Scores], pairs: Sequence[Pair]
) -> Iterator[ScoredPair]:
    """Yield the scores of each pair by all metrics; rows are numbered from `first`."""
    segments = zip(*(s.segments for s in scores), strict=True)
    for row, (own, pair) in enumerate(zip(segments, pairs, strict=True), first):
        yield ScoredPair(row, dict(zip(names, own, strict=True)), pair.fields or {})


def score_records(pairs: Iterable[ScoredPair], style: LayoutStyle) -> Iterator[dict[str, Any]]:
    """Yield the rows of a score file in a layout.

    A field with the name of another column is called `input.NAME`.

    >>> pair = ScoredPair(0, {"bleu": Score(0.5), "ter": Score(0.2)}, {"id": "x1"})
    >>> list(score_records([pair], "wide"))
    [{'row': 0, 'id': 'x1', 'bleu': 0.5, 'ter': 0.2, 'flags': []}]
    """
    for pair in pairs:
        taken = {*SCORE_COLUMNS, *(pair.scores if style == "wide" else ())}
        own = {f"input.{n}" if n in taken else n: value for n, value in pair.fields.items()}
        if style == "long":
            for name, score in pair.scores.items():
                numbers = (score.value, score.precision, score.recall)
                parts = dict(zip(("value", "precision", "recall"), numbers, strict=True))
                flags = sorted(score.flags)
                yield {"row": pair.row, **own, "metric": name, **parts, "flags": flags}
        else:
            values = {name: score.value for name, score in pair.scores.items()}
            every = sorted({flag for score in pair.scores.values() for flag in score.flags})
            yield {"row": pair.row, **own, **values, "flags": every}


def is_score_file(path: str) -> bool:
    """Whether a file is a score file by its name."""
    return path.lower().endswith(SCORE_SUFFIXES)


@contextmanager
def score_writer(path: str, layout: ScoreLayout = ScoreLayout()) -> Iterator[WritePairs]:
    """Create a score file; yields a function that appends pairs. The file is written atomically."""
    open_file = _table_writer if is_parquet(path) or is_tsv(path) or is_csv(path) else _json_writer
    with atomic_write(path) as place, open_file(path, place, layout) as write:
        if layout.scale == 1:
            yield write
        else:
            yield lambda pairs: write([pair.scaled(layout.scale) for pair in pairs])


@contextmanager
def _json_writer(path: str, place: str, layout: ScoreLayout) -> Iterator[WritePairs]:
    with _open_text(path, place) as file:
        yield lambda pairs: file.writelines(map(json_line, score_records(pairs, layout.style)))


@contextmanager
def _table_writer(path: str, place: str, layout: ScoreLayout) -> Iterator[WritePairs]:
    """Write a table, whose columns are known when the first pairs are written."""
    columns: dict[str, str] = {}
    with ExitStack() as stack:
        if is_parquet(path):
            append_columns = stack.enter_context(parquet_writer(place, columns))

            def append(records: Sequence[Mapping[str, Any]]) -> None:
                append_columns({name: [r.get(name) for r in records] for name in columns})
        else:
            file = stack.enter_context(_open_text(path, place))
            format_line = format_tsv_line if is_tsv(path) else format_csv_line

            def append(records: Sequence[Mapping[str, Any]]) -> None:
                for record in records:
                    file.write(format_line([exact_cell(record.get(name)) for name in columns]))

        def write(pairs: Sequence[ScoredPair]) -> None:
            if pairs and not columns:
                columns.update(_column_types(pairs[0], layout))
                if not is_parquet(path):
                    file.write(format_line(list(columns)))
            records = list(score_records(pairs, layout.style))
            _warn_of_other_fields(records, columns)
            append(records)

        yield write


def _column_types(pair: ScoredPair, layout: ScoreLayout) -> dict[str, str]:
    """Return the columns of a table and their types; those of the pair's own fields are 'any'."""
    fields = pair.fields if layout.fields is None else layout.fields
    scores = next(score_records([replace(pair, fields={})], layout.style))
    every = next(score_records([replace(pair, fields=dict.fromkeys(fields))], layout.style))
    return {n: SCORE_COLUMNS.get(n, "number") if n in scores else "any" for n in every}


def _warn_of_other_fields(records: Iterable[Mapping[str, Any]], columns: Collection[str]) -> None:
    for record in records:
        if others := [name for name in record if name not in columns]:
            warnings.warn(
                f"row {record['row']} has the field {others[0]!r}, which the first row lacks; a "
                "table leaves it out, .jsonl keeps it",
                stacklevel=4,
            )
            return


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


def replace_file(path: str | PathLike[str], content: str | bytes) -> None:
    """Write a file atomically; a text in UTF-8."""
    with atomic_write(str(path)) as place:
        Path(place).write_bytes(content.encode() if isinstance(content, str) else content)


def score_to_record(score: Score) -> dict[str, Any]:
    """Convert a score to a JSON record; NaN and infinite numbers become null."""
    numbers = {"value": score.value, "precision": score.precision, "recall": score.recall}
    return json_record({**numbers, "flags": sorted(score.flags)})


def exact_cell(value: Any) -> str:
    """Format a cell in full precision; None is empty, lists of texts are joined by commas."""
    match value:
        case None:
            return ""
        case str():
            return value
        case float():
            return repr(float(value))
        case list() if all(isinstance(each, str) for each in value):
            return ",".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def format_tsv_line(texts: Sequence[str]) -> str:
    """Format one line of a TSV file; white space inside a cell becomes one space."""
    return "\t".join(" ".join(text.split()) for text in texts) + "\n"


def format_csv_line(texts: Sequence[str]) -> str:
    """Format one line of a CSV file; cells are quoted where necessary.

    >>> format_csv_line(["a, b", "c"])
    '"a, b",c\\n'
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(texts)
    return line.getvalue()


def json_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record for JSON; NaN and infinite numbers become None."""
    return {n: finite_or_none(v) if isinstance(v, float) else v for n, v in record.items()}


def json_line(record: Mapping[str, Any]) -> str:
    """Format a record as a line of JSONL; NaN and infinite numbers become null."""
    return json.dumps(json_record(record), default=str) + "\n"


def _open_text(path: str, place: str) -> IO[str]:
    """Open the file `place` for writing, compressed if `path` says so."""
    if path.lower().endswith(".gz"):
        return gzip.open(place, "wt", encoding="utf-8", compresslevel=6, newline="")
    return open(place, "w", encoding="utf-8", newline="")


def finite_or_none(value: float | None) -> float | None:
    """Return the number; None in place of NaN and infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None
