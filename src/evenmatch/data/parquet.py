"""Parquet files of pairs and of scores, read and written in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from evenmatch.data.addresses import opened_anywhere
from evenmatch.data.records import FIELDS, pair_of
from evenmatch.data.texts import is_rereadable
from evenmatch.errors import DataError, MissingExtraError
from evenmatch.types import Pair

Columns: TypeAlias = Mapping[str, Sequence[Any]]

_BATCH = 4096


@dataclass(frozen=True)
class ParquetPairs:
    """A table whose columns are the fields that `records` names."""

    path: str

    def __iter__(self) -> Iterator[Pair]:
        found = parquet_records(self.path, FIELDS)
        return (pair_of(record, where) for where, record in found)

    @property
    def rereadable(self) -> bool:
        """Whether the file can be read twice."""
        return is_rereadable(self.path)

    @property
    def total(self) -> int:
        """The number of rows, from the file's footer."""
        with opened_table(self.path) as file:
            return int(file.metadata.num_rows)


def parquet_records(
    path: str, wanted: Sequence[str] | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a table with where they stand; of the `wanted` columns those there are."""
    row = 0
    with opened_table(path) as file:
        names = file.schema_arrow.names
        columns = [name for name in names if wanted is None or name in wanted]
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
            for record in batch.to_pylist():
                row += 1
                yield f"{path} row {row}", record


@contextmanager
def opened_table(path: str) -> Iterator[Any]:
    """A Parquet file, open; damage is said in one line."""
    pyarrow = load_pyarrow()
    with opened_anywhere(path) as raw:
        try:
            with pyarrow.parquet.ParquetFile(raw) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(f"cannot read {path} as Parquet: {reason}") from None


def load_pyarrow() -> Any:
    """The pyarrow package, its Parquet part loaded."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            "Parquet files need pyarrow; install it with: pip install 'evenmatch[parquet]'"
        ) from None
    return pyarrow


@contextmanager
def table_writer(path: str, types: dict[str, str]) -> Iterator[Callable[[Columns], None]]:
    """A new table of columns with these types; gives a function that adds to every column."""
    pyarrow = load_pyarrow()
    kinds = {
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "text": pyarrow.string(),
        "texts": pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in types.items()])
    with pyarrow.parquet.ParquetWriter(path, schema) as file:

        def write(columns: Columns) -> None:
            arrays = [pyarrow.array(columns[field.name], field.type) for field in schema]
            file.write_batch(pyarrow.record_batch(arrays, schema=schema))

        yield write


def join_tables(paths: Sequence[str], out: str) -> None:
    """One table of the rows of several that have the same columns, in order."""
    pyarrow = load_pyarrow()
    tables = map(_whole_table, paths)
    first = next(tables)
    with pyarrow.parquet.ParquetWriter(out, first.schema) as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table)


def _whole_table(path: str) -> Any:
    with opened_table(path) as file:
        return file.read()
