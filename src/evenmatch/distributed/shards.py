"""The plan of a large run: its input cut into shards of rows, each known by its content.

A stretch of one file: where it lies and what is in it.

Stretches of JSONL: cut without reading what is in them, carried as bytes, read by a worker.

Stretches of Parquet: rows within a row group, carried as an Arrow stream.

The input of a large run while it goes on: one file open at a time, read shard by shard.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    """So many rows of one file: `first` counts from the first row of the whole input."""

    number: int
    first: int
    file: str
    chunk: FileChunk

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return self.chunk.rows

    def describe_rows(self, begin: int, end: int) -> str:
        """The place of some of its rows, in words; both are counted from its first row."""
        low, high = self.first + begin, self.first + end - 1
        own = self.chunk.first_row + begin + 1, self.chunk.first_row + end
        rows = f"row {low}" if low == high else f"rows {low} to {high}"
        what = "line" if is_json(self.file) else "row"
        place = f"{what} {own[0]}" if low == high else f"{what}s {own[0]} to {own[1]}"
        return f"{rows} ({self.file} {place})"

    @property
    def description(self) -> str:
        """Where it lies, for messages."""
        return self.describe_rows(0, self.rows)


def plan_shards(path: str, rows: int) -> list[Shard]:
    """The shards of a JSONL or Parquet file, or of all such files of a folder in name order.

    Reads the whole input once: shards are known by their content, so that a later run can tell
    whether what is done still fits.
    """
    if rows < 1:
        raise InputError(f"a shard holds at least 1 row, got {rows}")
    shards: list[Shard] = []
    first = 0
    for file in _input_files(local_path(path)):
        for cut in _split_file(file, rows):
            shards.append(Shard(len(shards), first, file, cut))
            first += cut.rows
    if not shards:
        raise InputError("there is nothing to score: the input holds no pair")
    return shards


def _input_files(path: str) -> list[str]:
    if is_url(path):
        # Asked whether it is a folder, a web server would send the whole file.
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
    """The files of pairs among those a path stands for."""
    found = [file for file in files if _is_supported(file)]
    if not found and files == [path]:
        raise InputError(
            f"cannot cut {path} into shards; give .jsonl or .parquet, or a folder of them"
        )
    if not found:
        raise DataError(f"the folder {path} holds no .jsonl and no .parquet file")
    return found


def _is_supported(path: str) -> bool:
    return path != "-" and (is_json(path) or path.lower().endswith(".parquet"))


def _split_file(file: str, rows: int) -> Iterator[FileChunk]:
    return split_jsonl(file, rows) if is_json(file) else split_parquet(file, rows)


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Rows of a file, `begin` counted from its first, with the hash of their content.

    `at` is the reader's own: byte and length in a file of lines, group and row in a table.
    """

    first_row: int
    rows: int
    position: tuple[int, int]
    content_hash: str


def hash_content(data: bytes) -> str:
    """Bytes by their content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def split_jsonl(path: str, rows: int) -> Iterator[FileChunk]:
    """The stretches of a file of lines; blank lines at its end are no rows."""
    held: list[tuple[FileChunk, int]] = []  # a stretch, its rows up to the last that is not blank
    with open_binary(path) as file:
        for cut, filled in _line_chunks(file, rows):
            if filled:
                yield from (before for before, _ in held)
                held = []
            held.append((cut, filled))
    last, filled = held[0] if held else (None, 0)
    if last is not None and filled:
        yield dataclasses.replace(last, rows=filled)


def _line_chunks(file: IO[bytes], rows: int) -> Iterator[tuple[FileChunk, int]]:
    begin = offset = 0
    while lines := list(islice(file, rows)):
        data = b"".join(lines)
        filled = max((n for n, line in enumerate(lines, 1) if line.strip()), default=0)
        yield FileChunk(begin, len(lines), (offset, len(data)), hash_content(data)), filled
        begin += len(lines)
        offset += len(data)


def read_jsonl_chunk(file: IO[bytes], cut: FileChunk) -> bytes:
    """The bytes of a stretch."""
    offset, size = cut.position
    file.seek(offset)
    return file.read(size)


def parse_jsonl_pairs(data: bytes, cut: FileChunk, path: str) -> Iterator[Pair]:
    """The pairs in a stretch, one by one; one that is none raises an error that says where."""
    lines = data.split(b"\n")
    for number, raw in enumerate(lines[: cut.rows], cut.first_row + 1):
        line = decode_line(raw, number, path)
        where = f"{path} line {number}"
        if not line.strip():
            raise InputError(f"{where} is blank; expected JSON")
        yield pair_from_record(parse_json_object(line, where), where)


def split_parquet(path: str, rows: int) -> Iterator[FileChunk]:
    """The stretches of a table; none crosses the end of a row group."""
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
    """One row group of a table, the columns that make a pair."""
    columns = [name for name in file.schema_arrow.names if name in PAIR_FIELDS]
    return file.read_row_group(group, columns=columns)


def read_parquet_chunk(group: Any, cut: FileChunk) -> bytes:
    """The rows of a stretch out of their row group, as an Arrow stream."""
    return _arrow_bytes(group.slice(cut.position[1], cut.rows))


def _arrow_bytes(table: Any) -> bytes:
    pyarrow = load_pyarrow()
    sink = pyarrow.BufferOutputStream()
    # Taken row by row, so that the bytes do not depend on how the group lies in memory.
    whole = table.take(list(range(table.num_rows))).combine_chunks()
    with pyarrow.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def parse_arrow_pairs(data: bytes, cut: FileChunk, path: str) -> Iterator[Pair]:
    """The pairs in a stretch, one by one; one that is none raises an error that says where."""
    pyarrow = load_pyarrow()
    with pyarrow.ipc.open_stream(data) as stream:
        records = stream.read_all().to_pylist()
    for number, record in enumerate(records, cut.first_row + 1):
        yield pair_from_record(record, f"{path} row {number}")


class ShardLoader:
    """Gives the bytes of shards; those of one file in a row are read without opening it again."""

    def __init__(self) -> None:
        self._files = ExitStack()
        self._open: tuple[str, Any] = ("", None)
        self._group: tuple[str, int, Any] = ("", -1, None)

    def __call__(self, shard: Shard) -> bytes:
        """The shard's bytes, or an error where they are no longer what was planned."""
        data = self._load_jsonl(shard) if is_json(shard.file) else self._load_parquet(shard)
        if hash_content(data) != shard.chunk.content_hash:
            raise DataError(f"{shard.file} changed while it was being scored; start again")
        return data

    def close(self) -> None:
        """Let go of the file that is open."""
        self._files.close()

    def _load_jsonl(self, shard: Shard) -> bytes:
        return read_jsonl_chunk(self._open_file(shard.file, open_binary), shard.chunk)

    def _load_parquet(self, shard: Shard) -> bytes:
        file, group = self._open_file(shard.file, open_parquet), shard.chunk.position[0]
        if self._group[:2] != (shard.file, group):
            self._group = (shard.file, group, read_row_group(file, group))
        return read_parquet_chunk(self._group[2], shard.chunk)

    def _open_file(self, path: str, how: Any) -> Any:
        if self._open[0] != path:
            self._files.close()
            self._open = (path, self._files.enter_context(how(path)))
        return self._open[1]


@contextmanager
def open_loader() -> Iterator[ShardLoader]:
    """A loader for as long as the block runs."""
    loader = ShardLoader()
    try:
        yield loader
    finally:
        loader.close()


def parse_shard_pairs(data: bytes, cut: FileChunk, path: str) -> Iterator[Pair]:
    """The pairs of a shard's bytes, by the name of the file they come from."""
    return (
        parse_jsonl_pairs(data, cut, path) if is_json(path) else parse_arrow_pairs(data, cut, path)
    )
