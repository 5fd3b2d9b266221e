"""Shards of a large input: consecutive rows of one file, identified by a content hash.

`plan_shards` splits JSONL and Parquet files into shards. `ShardLoader` reads the bytes of a shard
in the driver, with one file open at a time; `parse_shard_pairs` parses them in a worker. A JSONL
shard is sent as bytes, a Parquet shard (rows of one row group) as an Arrow stream.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from evenmatch.data.files import (
    check_seekable,
    decode_line,
    is_json,
    is_url,
    list_files,
    load_pyarrow,
    local_path,
    open_binary,
    open_parquet,
    parse_json_object,
)
from evenmatch.data.pairs import PAIR_FIELDS, pair_from_record
from evenmatch.errors import DataError, InputError
from evenmatch.types import Pair


@dataclass(frozen=True, slots=True)
class Shard:
    """A chunk of one file; `first` is its first row, counted over the whole input."""

    number: int
    first: int
    file: str
    chunk: FileChunk

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.chunk.rows

    def describe_rows(self, begin: int, end: int) -> str:
        """Describe rows `begin` to `end` (exclusive) of the shard, for messages."""
        low, high = self.first + begin, self.first + end - 1
        in_file = self.chunk.first_row + begin + 1, self.chunk.first_row + end
        rows = f"row {low}" if low == high else f"rows {low} to {high}"
        what = "line" if is_json(self.file) else "row"
        place = f"{what} {in_file[0]}" if low == high else f"{what}s {in_file[0]} to {in_file[1]}"
        return f"{rows} ({self.file} {place})"

    @property
    def description(self) -> str:
        """Description of all rows of the shard, for messages."""
        return self.describe_rows(0, self.rows)


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Consecutive rows of a file, beginning with `first_row`, and the hash of their content.

    `position` is the byte offset and length in a JSONL file, the row group and row in a Parquet
    file.
    """

    first_row: int
    rows: int
    position: tuple[int, int]
    content_hash: str


def plan_shards(path: str, rows: int) -> list[Shard]:
    """Split a JSONL or Parquet file, or all such files of a folder in name order, into shards.

    Reads the whole input once, because shards are identified by their content: a resumed run can
    then check that scored rows have not changed.
    """
    if rows < 1:
        raise InputError(f"shard_rows must be at least 1, got {rows}")
    shards: list[Shard] = []
    first = 0
    for file in _input_files(local_path(path)):
        split = split_jsonl if is_json(file) else split_parquet
        for chunk in split(file, rows):
            shards.append(Shard(len(shards), first, file, chunk))
            first += chunk.rows
    if not shards:
        raise InputError("nothing to score: the input has no pairs")
    return shards


class ShardLoader:
    """Loads the bytes of shards; keeps the last file and row group open."""

    def __init__(self) -> None:
        self._files = ExitStack()
        self._open: tuple[str, Any] = ("", None)
        self._group: tuple[str, int, Any] = ("", -1, None)

    def __call__(self, shard: Shard) -> bytes:
        """Load a shard; raise `DataError` if the file has changed since it was planned."""
        data = self._load_jsonl(shard) if is_json(shard.file) else self._load_parquet(shard)
        if hash_content(data) != shard.chunk.content_hash:
            raise DataError(f"{shard.file} changed while it was being scored; start again")
        return data

    def close(self) -> None:
        """Close the open file."""
        self._files.close()

    def _load_jsonl(self, shard: Shard) -> bytes:
        offset, size = shard.chunk.position
        file = self._open_file(shard.file, open_binary)
        file.seek(offset)
        data: bytes = file.read(size)
        return data

    def _load_parquet(self, shard: Shard) -> bytes:
        group, row = shard.chunk.position
        file = self._open_file(shard.file, open_parquet)
        if self._group[:2] != (shard.file, group):
            self._group = (shard.file, group, read_row_group(file, group))
        return _arrow_bytes(self._group[2].slice(row, shard.rows))

    def _open_file(self, path: str, opener: Any) -> Any:
        if self._open[0] != path:
            self._files.close()
            self._open = (path, self._files.enter_context(opener(path)))
        return self._open[1]


def parse_shard_pairs(data: bytes, chunk: FileChunk, path: str) -> Iterator[Pair]:
    """Parse the pairs of a shard; the name of its file determines the format."""
    parse = parse_jsonl_pairs if is_json(path) else parse_arrow_pairs
    return parse(data, chunk, path)


def hash_content(data: bytes) -> str:
    """Content hash of bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def split_jsonl(path: str, rows: int) -> Iterator[FileChunk]:
    """Split a JSONL file into chunks; blank lines at its end are ignored."""
    pending: list[tuple[FileChunk, int]] = []  # chunks, with their rows up to the last non-blank
    with open_binary(path) as file:
        for chunk, filled in _line_chunks(file, rows):
            if filled:
                yield from (before for before, _ in pending)
                pending = []
            pending.append((chunk, filled))
    last, filled = pending[0] if pending else (None, 0)
    if last is not None and filled:
        yield dataclasses.replace(last, rows=filled)


def parse_jsonl_pairs(data: bytes, chunk: FileChunk, path: str) -> Iterator[Pair]:
    """Parse the pairs of a JSONL chunk one by one; an invalid line raises an error naming it."""
    lines = data.split(b"\n")
    for number, raw in enumerate(lines[: chunk.rows], chunk.first_row + 1):
        line = decode_line(raw, number, path)
        where = f"{path} line {number}"
        if not line.strip():
            raise InputError(f"{where} is blank; expected JSON")
        yield pair_from_record(parse_json_object(line, where), where)


def split_parquet(path: str, rows: int) -> Iterator[FileChunk]:
    """Split a Parquet file into chunks, each within one row group."""
    begin = 0
    with open_parquet(path) as file:
        for group in range(file.num_row_groups):
            table = read_row_group(file, group)
            for row in range(0, table.num_rows, rows):
                part = table.slice(row, rows)
                yield FileChunk(
                    begin, part.num_rows, (group, row), hash_content(_arrow_bytes(part))
                )
                begin += part.num_rows


def read_row_group(file: Any, group: int) -> Any:
    """Read the columns of a pair from one row group."""
    columns = [name for name in file.schema_arrow.names if name in PAIR_FIELDS]
    return file.read_row_group(group, columns=columns)


def parse_arrow_pairs(data: bytes, chunk: FileChunk, path: str) -> Iterator[Pair]:
    """Parse the pairs of an Arrow stream one by one; an invalid row raises an error naming it."""
    pyarrow = load_pyarrow()
    with pyarrow.ipc.open_stream(data) as stream:
        records = stream.read_all().to_pylist()
    for number, record in enumerate(records, chunk.first_row + 1):
        yield pair_from_record(record, f"{path} row {number}")


def _input_files(path: str) -> list[str]:
    if is_url(path):
        # Do not check whether the URL is a folder: a web server would send the whole file.
        found = _supported_files(path, [path] if _is_supported(path) else list_files(path))
        check_seekable(found[0])
        return found
    place = Path(path)
    if place.is_dir():
        return _supported_files(path, sorted(str(p) for p in place.rglob("*") if p.is_file()))
    if place.exists() and not place.is_file():
        raise InputError(f"{path} can be read only once; save it to a file first")
    return _supported_files(path, [path])


def _supported_files(path: str, files: list[str]) -> list[str]:
    """Select the JSONL and Parquet files among the files of a path."""
    found = [file for file in files if _is_supported(file)]
    if not found and files == [path]:
        raise InputError(
            f"cannot split {path} into shards; give a .jsonl or .parquet file, or a folder of them"
        )
    if not found:
        raise DataError(f"the folder {path} contains no .jsonl or .parquet file")
    return found


def _is_supported(path: str) -> bool:
    return path != "-" and (is_json(path) or path.lower().endswith(".parquet"))


def _line_chunks(file: IO[bytes], rows: int) -> Iterator[tuple[FileChunk, int]]:
    begin = offset = 0
    while lines := list(islice(file, rows)):
        data = b"".join(lines)
        filled = max((n for n, line in enumerate(lines, 1) if line.strip()), default=0)
        yield FileChunk(begin, len(lines), (offset, len(data)), hash_content(data)), filled
        begin += len(lines)
        offset += len(data)


def _arrow_bytes(table: Any) -> bytes:
    pyarrow = load_pyarrow()
    sink = pyarrow.BufferOutputStream()
    # `take` copies the rows, so that the bytes do not depend on the memory layout of the group.
    whole = table.take(list(range(table.num_rows))).combine_chunks()
    with pyarrow.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
