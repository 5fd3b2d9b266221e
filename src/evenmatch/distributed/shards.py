"""Shards of a large input: consecutive rows of one file, identified by a content hash.

`plan_shards` splits JSONL and Parquet files into shards. `ShardLoader` reads the bytes of a shard
in the driver, with one file open at a time; `parse_shard_pairs` parses them in a worker. A JSONL
shard is sent as bytes, a Parquet shard (rows of one row group) as an Arrow stream.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.files import (
    check_seekable,
    decode_line,
    is_json,
    is_parquet,
    is_url,
    list_files,
    load_pyarrow,
    local_path,
    open_binary,
    open_parquet,
    parse_json_object,
)
from evenmatch.data.pairs import pair_from_record
from evenmatch.errors import DataError, InputError
from evenmatch.types import Pair

# The number of rows, the position and the content hash of a shard.
_Chunk: TypeAlias = tuple[int, tuple[int, int], str]


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive rows of a file, and the hash of their content.

    `first` is the first row counted over the whole input, `first_in_file` the same row counted in
    its file. `position` is the byte offset and length in a JSONL file, the row group and row in a
    Parquet file.
    """

    number: int
    first: int
    file: str
    first_in_file: int
    rows: int
    position: tuple[int, int]
    content_hash: str

    def __str__(self) -> str:
        return self.describe_rows(0, self.rows)

    def describe_rows(self, begin: int, end: int) -> str:
        """Describe rows `begin` to `end` (exclusive) of the shard, for messages."""
        what = "line" if is_json(self.file) else "row"
        low, low_in_file = self.first + begin, self.first_in_file + begin + 1
        if end - begin == 1:
            return f"row {low} ({self.file} {what} {low_in_file})"
        high, high_in_file = self.first + end - 1, self.first_in_file + end
        return f"rows {low} to {high} ({self.file} {what}s {low_in_file} to {high_in_file})"


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
        split = _split_jsonl if is_json(file) else _split_parquet
        before = first
        for count, position, content_hash in split(file, rows):
            place = (file, first - before, count, position)
            shards.append(Shard(len(shards), first, *place, content_hash))
            first += count
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
        if hash_content(data) != shard.content_hash:
            raise DataError(f"{shard.file} changed while it was being scored; start again")
        return data

    def close(self) -> None:
        """Close the open file."""
        self._files.close()

    def _load_jsonl(self, shard: Shard) -> bytes:
        offset, size = shard.position
        file = self._open_file(shard.file, open_binary)
        file.seek(offset)
        data: bytes = file.read(size)
        return data

    def _load_parquet(self, shard: Shard) -> bytes:
        group, row = shard.position
        file = self._open_file(shard.file, open_parquet)
        if self._group[:2] != (shard.file, group):
            self._group = (shard.file, group, file.read_row_group(group))
        return _arrow_bytes(self._group[2].slice(row, shard.rows))

    def _open_file(self, path: str, opener: Any) -> Any:
        if self._open[0] != path:
            self._files.close()
            self._open = (path, self._files.enter_context(opener(path)))
        return self._open[1]


def parse_shard_pairs(data: bytes, shard: Shard) -> Iterator[Pair]:
    """Parse the pairs of a shard one by one; an invalid row raises an error naming it."""
    if is_json(shard.file):
        lines = data.split(b"\n")[: shard.rows]
        for number, raw in enumerate(lines, shard.first_in_file + 1):
            line = decode_line(raw, number, shard.file)
            where = f"{shard.file} line {number}"
            if not line.strip():
                raise InputError(f"{where} is blank; expected JSON")
            yield pair_from_record(parse_json_object(line, where), where)
        return
    with load_pyarrow().ipc.open_stream(data) as stream:
        try:
            records = stream.read_all().to_pylist()
        except UnicodeDecodeError as error:
            raise DataError(f"cannot read {shard}: {error}") from None
    for number, record in enumerate(records, shard.first_in_file + 1):
        yield pair_from_record(record, f"{shard.file} row {number}")


def make_shard(number: int, first: int, name: str, pairs: Sequence[Pair]) -> Shard:
    """Return pairs in memory as a shard that begins at row `first` of a file called `name`."""
    position, content_hash = (first, len(pairs)), hash_content(pairs_to_jsonl(pairs))
    return Shard(number, first, name, first, len(pairs), position, content_hash)


def pairs_to_jsonl(pairs: Sequence[Pair]) -> bytes:
    """Return the texts of pairs as JSONL."""
    records = (
        {"candidate": p.candidate, "references": p.references, "source": p.source} for p in pairs
    )
    return "\n".join(map(json.dumps, records)).encode()


def hash_content(data: bytes) -> str:
    """Content hash of bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _split_jsonl(path: str, rows: int) -> Iterator[_Chunk]:
    """Split a JSONL file into chunks; blank lines at its end are ignored."""
    offset = filled = 0
    pending: list[_Chunk] = []  # the last chunk with text, and the blank ones after it
    with open_binary(path) as file:
        while lines := list(islice(file, rows)):
            data = b"".join(lines)
            if data.strip():
                yield from pending
                pending = []
                filled = data.rstrip().count(b"\n") + 1
            pending.append((len(lines), (offset, len(data)), hash_content(data)))
            offset += len(data)
    if filled:
        yield filled, *pending[0][1:]


def _split_parquet(path: str, rows: int) -> Iterator[_Chunk]:
    """Split a Parquet file into chunks, each within one row group."""
    with open_parquet(path) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            for row in range(0, table.num_rows, rows):
                part = table.slice(row, rows)
                yield part.num_rows, (group, row), hash_content(_arrow_bytes(part))


def _arrow_bytes(table: Any) -> bytes:
    pyarrow = load_pyarrow()
    sink = pyarrow.BufferOutputStream()
    # `take` copies the rows, so that the bytes do not depend on the memory layout of the group.
    whole = table.take(list(range(table.num_rows))).combine_chunks()
    with pyarrow.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _input_files(path: str) -> list[str]:
    """List the JSONL and Parquet files of a path."""
    place = Path(path)
    files = [path]
    # Do not check whether a URL of a file is a folder: a web server would send the whole file.
    if is_url(path) and not _is_supported(path):
        files = list_files(path)
    elif place.is_dir():
        files = sorted(str(p) for p in place.rglob("*") if p.is_file())
    elif place.exists() and not place.is_file():
        raise InputError(f"{path} can be read only once; save it to a file first")
    found = [file for file in files if _is_supported(file)]
    if not found and files == [path]:
        raise InputError(
            f"cannot split {path} into shards; give a .jsonl or .parquet file, or a folder of them"
        )
    if not found:
        raise DataError(f"the folder {path} contains no .jsonl or .parquet file")
    if is_url(path):
        check_seekable(found[0])
    return found


def _is_supported(path: str) -> bool:
    return path != "-" and (is_json(path) or is_parquet(path))
