"""Stretches of Parquet: rows within a row group, carried as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evenmatch.data.parquet import load_pyarrow, opened_table
from evenmatch.data.records import FIELDS, pair_of
from evenmatch.types import Pair
from evenmatch.uses.scale.cuts import Cut, content_name


def cut_table(path: str, rows: int) -> Iterator[Cut]:
    """The stretches of a table; none crosses the end of a row group."""
    begin = 0
    with opened_table(path) as file:
        for group in range(file.num_row_groups):
            table = read_group(file, group)
            for row in range(0, table.num_rows, rows):
                part = table.slice(row, rows)
                yield Cut(begin, part.num_rows, (group, row), content_name(_packed(part)))
                begin += part.num_rows


def read_group(file: Any, group: int) -> Any:
    """One row group of a table, the columns that make a pair."""
    columns = [name for name in file.schema_arrow.names if name in FIELDS]
    return file.read_row_group(group, columns=columns)


def load_rows(group: Any, cut: Cut) -> bytes:
    """The rows of a stretch out of their row group, as an Arrow stream."""
    return _packed(group.slice(cut.at[1], cut.rows))


def _packed(table: Any) -> bytes:
    pyarrow = load_pyarrow()
    sink = pyarrow.BufferOutputStream()
    # Taken row by row, so that the bytes do not depend on how the group lies in memory.
    whole = table.take(list(range(table.num_rows))).combine_chunks()
    with pyarrow.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def row_pairs(data: bytes, cut: Cut, path: str) -> Iterator[Pair]:
    """The pairs in a stretch, one by one; one that is none raises an error that says where."""
    pyarrow = load_pyarrow()
    with pyarrow.ipc.open_stream(data) as stream:
        records = stream.read_all().to_pylist()
    for number, record in enumerate(records, cut.begin + 1):
        yield pair_of(record, f"{path} row {number}")
