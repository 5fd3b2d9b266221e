"""File formats: text lines, JSONL, TSV, CSV and Parquet, local or remote.

- Lines: UTF-8 text, gzipped or not, or standard input (`read_lines`).
- Records: one mapping per row of a JSONL, TSV, CSV or Parquet file, with its position for error
  messages (`read_records`).
- URLs such as s3://bucket/pairs.jsonl are opened with fsspec (`open_location`).
- Parquet tables are read and written in batches.

The suffix of a file determines its format. For a new one, extend `read_records` here, and
`open_pair_file` in `pairs.py` for files of pairs.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from evenmatch.errors import DataError, InputError, MissingExtraError, needs_extra

STANDARD_INPUT = "-"

# The position of a record for messages, such as "x.jsonl line 3", and the record.
LocatedRecord: TypeAlias = tuple[str, Mapping[str, Any]]

Columns: TypeAlias = Mapping[str, Sequence[Any]]

_BLOCK = 1 << 20  # bytes read at a time

_GZIP_LIMIT = "EVENMATCH_MAX_GZIP_BYTES"

_BATCH = 4096  # rows read at a time

_MAX_CELL = 1 << 30  # characters of a CSV cell

_BYTE_ORDER_MARK = "\ufeff"

_REFERENCE_COLUMN = re.compile(r"references?[_.]?\d*")

_FILE_SCHEME = "file://"


def read_lines(path: str) -> Iterator[str]:
    """Yield each line of a file without its line ending; empty lines are kept.

    Only a line feed ends a line, so that characters such as U+2028 cannot misalign the lines of two
    files. One carriage return before the line feed is part of the line ending.
    """
    with open_binary(path) as file:
        for number, raw in enumerate(file, 1):
            yield decode_line(raw, number, path)


def decode_line(raw: bytes, number: int, path: str) -> str:
    """Decode line `number` (from 1) of a file and remove its line ending."""
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{display_path(path)} line {number} is not UTF-8 text (byte {error.start + 1}); "
            "save the file as UTF-8"
        ) from None
    if number == 1:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    return line.removesuffix("\n").removesuffix("\r")


def count_lines(path: str) -> int:
    """Count the lines that `read_lines` yields, without decoding them."""
    count, last = 0, b"\n"
    with open_binary(path) as file:
        while block := file.read(_BLOCK):
            if not count and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(f"{display_path(path)} is UTF-16 text; save the file as UTF-8")
            count += block.count(b"\n")
            last = block
    return count + (not last.endswith(b"\n"))


def is_rereadable(path: str) -> bool:
    """Whether a file can be read more than once; pipes and standard input cannot."""
    return path != STANDARD_INPUT and (not Path(path).exists() or Path(path).is_file())


def display_path(path: str) -> str:
    """Name of a file in messages."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def open_binary(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressing .gz; a damaged file is a `DataError`."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise DataError("standard input is closed; give a file instead")
        yield sys.stdin.buffer
        return
    try:
        with open_location(path) as raw:
            if not path.endswith(".gz"):
                yield raw
                return
            with gzip.open(raw, "rb") as file:
                yield cast(IO[bytes], io.BufferedReader(_BoundedReader(file, path), _BLOCK))
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"{path} is not a complete gzip file ({error}); compress it again"
        ) from None


class _BoundedReader(io.RawIOBase):
    """A decompressed stream that is refused past a limit: a small file may hold terabytes."""

    def __init__(self, file: gzip.GzipFile, path: str) -> None:
        self._file, self._path, self._limit = file, path, max_gzip_bytes()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        if self._file.tell() > self._limit:
            raise DataError(
                f"{self._path} has more than {self._limit} bytes when decompressed; "
                f"set {_GZIP_LIMIT} to a higher limit, or decompress it yourself"
            )
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)


def max_gzip_bytes() -> int:
    """Return the largest decompressed size of a gzip file: EVENMATCH_MAX_GZIP_BYTES, or 16 GiB."""
    given = os.environ.get(_GZIP_LIMIT, "")
    if given and not given.isdecimal():
        raise InputError(f"{_GZIP_LIMIT} must be a number of bytes, got {given!r}")
    return int(given) if given else 16 << 30


def read_records(path: str) -> Iterator[LocatedRecord]:
    """Read the records of a file in the format given by its suffix."""
    if is_json(path):
        return read_json_records(path)
    if is_tsv(path):
        return read_tsv_records(path)
    if is_csv(path):
        return read_csv_records(path)
    if is_parquet(path):
        return read_parquet_records(path)
    raise InputError(f"unknown file type of {path}; name it .jsonl, .tsv, .csv or .parquet")


def is_json(path: str) -> bool:
    """Whether a file is JSONL by its name; standard input is."""
    plain = path.lower().removesuffix(".gz")
    return path == STANDARD_INPUT or plain.endswith((".jsonl", ".json", ".ndjson"))


def is_tsv(path: str) -> bool:
    """Whether a file is TSV by its name."""
    return path.lower().removesuffix(".gz").endswith(".tsv")


def is_csv(path: str) -> bool:
    """Whether a file is CSV by its name."""
    return path.lower().removesuffix(".gz").endswith(".csv")


def is_parquet(path: str) -> bool:
    """Whether a file is Parquet by its name."""
    return path.lower().endswith(".parquet")


def read_json_records(path: str) -> Iterator[LocatedRecord]:
    """Read one JSON object per line; blank lines are allowed only at the end."""
    blank = 0
    for number, line in enumerate(read_lines(path), 1):
        where = f"{display_path(path)} line {number}"
        if not line.strip():
            blank = blank or number
            continue
        # Blank lines at the end are ignored; one in the middle would shift the rows after it.
        if blank:
            raise InputError(f"{display_path(path)} line {blank} is blank; expected JSON")
        yield where, parse_json_object(line, where)


def parse_json_object(line: str, where: str) -> dict[str, Any]:
    """Parse the JSON object of a line; `where` names the file and line in messages."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise InputError(f"{where} is not JSON: {reason}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where} must be a JSON object, got {type(record).__name__}")
    return record


def check_text(value: Any, name: str, where: str) -> str:
    """Return the value of a record's field; raise if it is not text."""
    if not isinstance(value, str):
        raise InputError(f"the {name} of {where} must be a string, got {short_repr(value)}")
    return value


def short_repr(value: Any) -> str:
    """Show a value in a message; a long one by its type."""
    return repr(value) if len(repr(value)) < 40 else f"a {type(value).__name__}"


def read_tsv_records(path: str) -> Iterator[LocatedRecord]:
    """Read a header and one record per line, split at tabs; quotes have no special meaning.

    The columns `reference`, `reference2` and so on are collected as `references`, including empty
    cells; a single one may hold a JSON list of strings.
    """
    rows = enumerate((line.split("\t") for line in read_lines(path)), 1)
    hint = "use JSONL for text that contains tabs or line breaks"
    return _read_table(rows, display_path(path), hint)


def read_csv_records(path: str) -> Iterator[LocatedRecord]:
    """Read a header and one record per row, as `read_tsv_records`; cells may be quoted (RFC 4180).

    A quoted cell may contain commas, doubled quotes and line breaks.
    """

    def rows() -> Iterator[tuple[int, list[str]]]:
        csv.field_size_limit(_MAX_CELL)
        reader = csv.reader((line + "\n" for line in read_lines(path)), strict=True)
        while True:
            first = reader.line_num + 1
            try:
                yield first, next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(f"{display_path(path)} line {first} is not CSV: {error}") from None

    return _read_table(rows(), display_path(path), "quote cells that contain commas")


def _read_table(
    rows: Iterator[tuple[int, list[str]]], name: str, hint: str
) -> Iterator[LocatedRecord]:
    """Read the records of a table from its numbered rows, of which the first is the header."""
    _, header = next(rows, (1, [""]))
    references = [n for n, name in enumerate(header) if _REFERENCE_COLUMN.fullmatch(name)]
    others = [(n, name) for n, name in enumerate(header) if n not in references]
    for number, cells in rows:
        where = f"{name} line {number}"
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} columns and the header {len(header)}; {hint}"
            )
        record: dict[str, Any] = {name: cells[n] for n, name in others}
        if references:
            texts = [cells[n] for n in references]
            record["references"] = _read_cell_list(texts[0], where) if len(texts) == 1 else texts
        yield where, record


def _read_cell_list(cell: str, where: str) -> list[str]:
    """Return the texts of a cell: those of a JSON list, or the cell itself.

    >>> _read_cell_list('["a", "b"]', "x.csv line 2"), _read_cell_list("[1] a", "x.csv line 2")
    (['a', 'b'], ['[1] a'])
    """
    if cell.startswith(("['", '["')) and cell.endswith(("']", '"]')):
        try:
            found = json.loads(cell)
        except ValueError:
            raise InputError(
                f"{where} has references that look like a list but are not JSON; write "
                '["first", "second"], or columns reference and reference2'
            ) from None
        if all(isinstance(text, str) for text in found):
            return list(found)
    return [cell]


def read_parquet_records(path: str) -> Iterator[LocatedRecord]:
    """Read the rows of a table with their positions."""
    row = 0
    with open_parquet(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH):
            for record in batch.to_pylist():
                row += 1
                yield f"{path} row {row}", record


@contextmanager
def parquet_writer(path: str, types: Mapping[str, str]) -> Iterator[Callable[[Columns], None]]:
    """Create a Parquet table with these column types; yields a function that appends rows.

    The file is created with the first rows; they decide the type of a column of 'any' type.
    """
    pyarrow = load_pyarrow()
    kinds = {
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "text": pyarrow.string(),
        "texts": pyarrow.list_(pyarrow.string()),
    }
    with ExitStack() as stack:
        writers: list[Any] = []  # opened with the first rows

        def make_schema(columns: Columns) -> Any:
            found = []
            for name, kind in types.items():
                inferred = kinds.get(kind) or pyarrow.array(columns[name]).type
                found.append((name, pyarrow.string() if inferred == pyarrow.null() else inferred))
            return pyarrow.schema(found)

        def write(columns: Columns) -> None:
            try:
                if not writers:
                    writer = pyarrow.parquet.ParquetWriter(path, make_schema(columns))
                    writers.append(stack.enter_context(writer))
                schema = writers[0].schema
                arrays = [pyarrow.array(columns[field.name], field.type) for field in schema]
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                reason = str(error).splitlines()[0]
                raise DataError(
                    f"a field has values of several types ({reason}), which a Parquet column "
                    "cannot have; write .jsonl"
                ) from None
            writers[0].write_batch(pyarrow.record_batch(arrays, schema=schema))

        yield write


def concatenate_parquet(paths: Sequence[str], out: str) -> None:
    """Concatenate the rows of tables with the same columns into one table."""
    pyarrow = load_pyarrow()
    schemas = []
    for path in paths:
        with open_parquet(path) as part:
            schemas.append(part.schema_arrow)
    try:
        schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    except pyarrow.ArrowTypeError as error:
        raise DataError(
            f"a field has values of several types ({error}), which a Parquet column cannot have; "
            "write .jsonl"
        ) from None
    with pyarrow.parquet.ParquetWriter(out, schema) as file:
        for path in paths:
            with open_parquet(path) as part:
                file.write_table(part.read().cast(schema))


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Open a Parquet file; a damaged file is a `DataError`."""
    pyarrow = load_pyarrow()
    with open_location(path) as raw:
        try:
            with pyarrow.parquet.ParquetFile(raw) as file:
                yield file
        except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataError(f"cannot read {path} as Parquet: {reason}") from None


def load_pyarrow() -> Any:
    """Import pyarrow with its Parquet module."""
    with needs_extra(
        "Parquet files need pyarrow; install it with: pip install 'evenmatch[parquet]'"
    ):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


def is_url(path: str) -> bool:
    """Whether a path is a URL other than file://."""
    return "://" in path and not path.startswith(_FILE_SCHEME)


def local_path(path: str) -> str:
    """Convert a file:// URL to a path; return anything else unchanged.

    >>> local_path("file:///data/a%20b.jsonl"), local_path("s3://data/x.jsonl")
    ('/data/a b.jsonl', 's3://data/x.jsonl')
    """
    return unquote(urlsplit(path).path) if path.startswith(_FILE_SCHEME) else path


@contextmanager
def open_location(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, by path or URL."""
    try:
        file = _open_file(path)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    with file:
        yield file


def _open_file(path: str) -> IO[bytes]:
    if not is_url(path):
        return open(local_path(path), "rb")
    store, place = resolve_filesystem(path)
    return cast(IO[bytes], store.open(place, "rb"))


def list_files(address: str) -> list[str]:
    """List the URLs of all files in a folder, sorted; for a file, only its own URL."""
    store, place = resolve_filesystem(address)
    if not store.isdir(place):
        return [address]
    return [store.unstrip_protocol(path) for path in sorted(store.find(place))]


def check_seekable(address: str) -> None:
    """Raise if a remote file cannot be read from the middle; some web servers do not allow it."""
    with open_location(address) as file:
        try:
            file.seek(max(0, file.seek(0, SEEK_END) - 1))
            file.read(1)
        except ValueError:
            raise InputError(f"{address} can be read only once; save it to a file first") from None


def upload_file(path: str, address: str) -> None:
    """Copy a local file to a URL."""
    store, place = resolve_filesystem(address)
    store.put_file(path, place)


def resolve_filesystem(address: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL and the path within it."""
    with needs_extra(f"{address} needs fsspec; install it with: pip install 'evenmatch[remote]'"):
        from fsspec.core import url_to_fs
    try:
        store, place = url_to_fs(address)
    except ImportError as error:
        raise MissingExtraError(f"cannot reach {address}: {error}") from None
    except ValueError as error:
        raise InputError(f"cannot reach {address}: {error}; check the address") from None
    return store, str(place)
