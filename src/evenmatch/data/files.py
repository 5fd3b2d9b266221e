"""Text files line by line: UTF-8, gzipped or not, or standard input.

Files of records: JSONL, TSV and Parquet, one mapping per row, with where it stands.

Files that lie elsewhere, by an address such as s3://bucket/pairs.jsonl, through fsspec.

Parquet files of pairs and of scores, read and written in batches.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from evenmatch.errors import DataError, InputError, MissingExtraError

STANDARD_INPUT = "-"


_BLOCK = 1 << 20


_BYTE_ORDER_MARK = "\ufeff"


def read_lines(path: str) -> Iterator[str]:
    """Each line of a file without its end; empty lines stay in their place.

    Only a line feed ends a line, so that characters such as U+2028 cannot shift the lines of two
    files against each other; one carriage return before it is taken for part of the ending.
    """
    with open_binary(path) as file:
        for number, raw in enumerate(file, 1):
            yield decode_line(raw, number, path)


def decode_line(raw: bytes, number: int, path: str) -> str:
    """One line of a file, the first being number 1, as text without its end."""
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{display_path(path)} line {number} is no UTF-8 text (byte {error.start + 1}); "
            "save the file as UTF-8"
        ) from None
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    return line.removesuffix("\n").removesuffix("\r")


def count_lines(path: str) -> int:
    """How many lines `read_lines` would give, without decoding them."""
    count, last = 0, b"\n"
    with open_binary(path) as file:
        while block := file.read(_BLOCK):
            count += block.count(b"\n")
            last = block
    return count + (not last.endswith(b"\n"))


def is_rereadable(path: str) -> bool:
    """Whether a file can be read a second time: a pipe and standard input cannot."""
    return path != STANDARD_INPUT and (not Path(path).exists() or Path(path).is_file())


def display_path(path: str) -> str:
    """A file's name as messages say it."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def open_binary(path: str) -> Iterator[IO[bytes]]:
    """A file's bytes, decompressed where it is gzipped; damage is said in one line."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        with open_location(path) as raw:
            if not path.endswith(".gz"):
                yield raw
                return
            with gzip.open(raw, "rb") as file:
                yield cast(IO[bytes], file)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path} is no whole gzip file ({error}); compress it again") from None


# A record, behind the words that say which file and row it is.
LocatedRecord: TypeAlias = tuple[str, Mapping[str, Any]]


_REFERENCE_COLUMN = re.compile(r"references?[_.]?\d*")


def is_json(path: str) -> bool:
    """Whether a file of that name, or standard input, has a JSON object on each line."""
    plain = path.lower().removesuffix(".gz")
    return path == STANDARD_INPUT or plain.endswith((".jsonl", ".json", ".ndjson"))


def is_tsv(path: str) -> bool:
    """Whether a file of that name has columns between tabs."""
    return path.lower().removesuffix(".gz").endswith(".tsv")


def read_records(path: str) -> Iterator[LocatedRecord]:
    """The records of a file by its suffix."""
    if is_json(path):
        return read_json_records(path)
    if is_tsv(path):
        return read_tsv_records(path)
    if path.lower().endswith(".parquet"):
        return read_parquet_records(path)
    raise InputError(f"cannot tell what kind of file {path} is; name it .jsonl, .tsv or .parquet")


def read_json_records(path: str) -> Iterator[LocatedRecord]:
    """One JSON object per line; blank lines may stand at the end only."""
    blank = 0
    for number, line in enumerate(read_lines(path), 1):
        where = f"{display_path(path)} line {number}"
        if not line.strip():
            blank = blank or number
            continue
        # Blank lines at the end are no rows; one in the middle would shift those after it.
        if blank:
            raise InputError(f"{display_path(path)} line {blank} is blank; expected JSON")
        yield where, parse_json_object(line, where)


def parse_json_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object that a line holds; `where` names the file and line for messages."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise InputError(f"{where} is no JSON: {reason}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} must be a JSON object, got {type(record).__name__}")
    return record


def read_tsv_records(path: str) -> Iterator[LocatedRecord]:
    """A header and one record per line, split at tabs only: quotes are text like any other.

    The columns `reference`, `reference2` and so on are all `references`, empty cells too.
    """
    rows = read_lines(path)
    header = next(rows, "").split("\t")
    references = [n for n, name in enumerate(header) if _REFERENCE_COLUMN.fullmatch(name)]
    others = [(n, name) for n, name in enumerate(header) if n not in references]
    for number, line in enumerate(rows, 2):
        cells = line.split("\t")
        where = f"{display_path(path)} line {number}"
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} columns and the header {len(header)}; "
                "write text with tabs or line ends as JSONL"
            )
        record: dict[str, Any] = {name: cells[n] for n, name in others}
        if references:
            record["references"] = [cells[n] for n in references]
        yield where, record


_FILE_SCHEME = "file://"


def is_url(path: str) -> bool:
    """Whether a name is an address, and of another place than this machine's files."""
    return "://" in path and not path.startswith(_FILE_SCHEME)


def local_path(path: str) -> str:
    """A file of this machine by its path, also where it was given as file://.

    >>> local_path("file:///data/a%20b.jsonl"), local_path("s3://data/x.jsonl")
    ('/data/a b.jsonl', 's3://data/x.jsonl')
    """
    return unquote(urlsplit(path).path) if path.startswith(_FILE_SCHEME) else path


@contextmanager
def open_location(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, by its path or its address."""
    if not is_url(path):
        with open(local_path(path), "rb") as file:
            yield file
        return
    store, place = resolve_filesystem(path)
    with store.open(place, "rb") as file:
        yield file


def list_files(address: str) -> list[str]:
    """The addresses of all files in a folder, in name order; of a file itself, and alone."""
    store, place = resolve_filesystem(address)
    if not store.isdir(place):
        return [address]
    return [store.unstrip_protocol(found) for found in sorted(store.find(place))]


def check_seekable(address: str) -> None:
    """Refuse a file that can be read only from its beginning, as some web servers send it."""
    with open_location(address) as file:
        try:
            file.seek(max(0, file.seek(0, SEEK_END) - 1))
            file.read(1)
        except ValueError:
            raise InputError(f"{address} can be read only once; save it to a file first") from None


def upload_file(path: str, address: str) -> None:
    """Copy a local file to an address."""
    store, place = resolve_filesystem(address)
    store.put_file(path, place)


def resolve_filesystem(address: str) -> tuple[Any, str]:
    """The file system an address is of, and the place in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError(
            f"{address} needs fsspec; install it with: pip install 'evenmatch[remote]'"
        ) from None
    try:
        store, place = url_to_fs(address)
    except ImportError as error:
        raise MissingExtraError(f"cannot reach {address}: {error}") from None
    except ValueError as error:
        raise InputError(f"cannot reach {address}: {error}; check the address") from None
    return store, str(place)


Columns: TypeAlias = Mapping[str, Sequence[Any]]


_BATCH = 4096


def read_parquet_records(
    path: str, wanted: Sequence[str] | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a table with where they stand; of the `wanted` columns those there are."""
    row = 0
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        columns = [name for name in names if wanted is None or name in wanted]
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
            for record in batch.to_pylist():
                row += 1
                yield f"{path} row {row}", record


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """A Parquet file, open; damage is said in one line."""
    pyarrow = load_pyarrow()
    with open_location(path) as raw:
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
def parquet_writer(path: str, types: dict[str, str]) -> Iterator[Callable[[Columns], None]]:
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


def concatenate_parquet(paths: Sequence[str], out: str) -> None:
    """One table of the rows of several that have the same columns, in order."""
    pyarrow = load_pyarrow()
    tables = map(_read_parquet, paths)
    first = next(tables)
    with pyarrow.parquet.ParquetWriter(out, first.schema) as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table)


def _read_parquet(path: str) -> Any:
    with open_parquet(path) as file:
        return file.read()
