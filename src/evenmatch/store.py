"""A bounded key-value store on disk that several processes can share, and that detects damage.

Entries are appended to numbered segments. A segment is two files: `.data` holds the values, and
`.index` has one fixed-size record per entry with its key, place and checksum. A value counts as
present only if its checksum is right, so that a process that was killed, a full disk or changed
bytes can hide an entry but not alter one. Files are read with `read`, not mapped into memory: a
file that someone truncates cannot stop the process.

The oldest segment is evicted first. An entry that is used again gets another record in the newest
segment, and its value is then moved instead of removed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evenmatch.errors import DataError
from evenmatch.files import hold_lock

_RECORD = np.dtype(
    [("key", "V20"), ("segment", "<u4"), ("offset", "<u8"), ("size", "<u4"), ("checksum", "<u4")]
)
_SEGMENT_NAME = re.compile(r"(\d{8})\.(?:data|index)")
_LOCK_NAME = "lock"
_FORMER_FILES = ("data.mdb", "lock.mdb")  # of the format used before
_SEGMENTS = 16  # segments of a full store
_TARGET_FILL = 0.9  # fraction of `max_bytes` in use after eviction
_MAX_GAP = 1 << 14  # values closer than this are read at once
_MAX_READ = 1 << 22  # values read at once


def entry_key(*parts: object) -> bytes:
    """Return the key of an entry: a hash of what identifies it."""
    *first, last = map(str, parts)
    return entry_keys(first, [last])[0]


def entry_keys(first: Sequence[object], last: Iterable[str]) -> list[bytes]:
    """Return the keys of entries that differ only in the last part of what identifies them."""
    prefix = "".join(f"{part}\0" for part in first).encode("utf-8", "surrogatepass")
    copy_hash = hashlib.blake2b(prefix, digest_size=20).copy
    keys = []
    for part in last:
        own = copy_hash()
        own.update(part.encode("utf-8", "surrogatepass"))
        keys.append(own.digest())
    return keys


@dataclass(frozen=True)
class Store:
    """A store in one folder that evicts the least recently used entries; keys have 20 bytes."""

    folder: Path
    max_bytes: int

    @contextmanager
    def read_entries(self, keys: Sequence[bytes]) -> Iterator[list[memoryview | None]]:
        """Yield the entry of each key, or None if it is absent or damaged."""
        with self._errors():
            found = _open_segments(self.folder, os.getpid()).read(keys)
        yield [found.get(key) for key in keys]

    def write(self, new: Mapping[bytes, bytes], used: Iterable[bytes] = ()) -> None:
        """Add new entries, mark `used` ones as recently used, and evict the oldest if needed."""
        with self._errors():
            segments = _open_segments(self.folder, os.getpid())
            segments.write(new, used, self.max_bytes)

    def usage(self) -> tuple[int, int]:
        """Return the number of entries and the total size of the values in bytes."""
        with self._errors():
            return _open_segments(self.folder, os.getpid()).usage()

    def clear(self) -> None:
        """Remove every file; other processes continue with an empty store."""
        with self._errors():
            if self.folder.is_dir():
                _open_segments(self.folder, os.getpid()).clear()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(
                f"cannot use the cache in {self.folder} ({error.strerror or error}); "
                "name a folder that can be written with EVENMATCH_CACHE, empty this one with: "
                "evenmatch cache clear, or score without a cache"
            ) from None


class _Place(NamedTuple):
    """Where a value is, and the segment with its newest record."""

    segment: int
    offset: int
    size: int
    checksum: int
    last_used: int


@dataclass
class _Segments:
    """The segments of a folder, as one process knows them."""

    folder: Path
    places: dict[bytes, _Place] = field(default_factory=dict)
    read_sizes: dict[int, int] = field(default_factory=dict)  # bytes of each index read so far
    lock: threading.RLock = field(default_factory=threading.RLock)

    def read(self, keys: Iterable[bytes]) -> dict[bytes, memoryview]:
        """Return the values of the keys that are present and intact."""
        with self.lock:
            self._refresh()
            by_segment: dict[int, list[tuple[_Place, bytes]]] = {}
            for key in dict.fromkeys(keys):
                if place := self.places.get(key):
                    by_segment.setdefault(place.segment, []).append((place, key))
            found: dict[bytes, memoryview] = {}
            for segment, rows in by_segment.items():
                found |= self._read_values(segment, rows)
            damaged = [key for rows in by_segment.values() for _, key in rows if key not in found]
            for key in damaged:
                del self.places[key]  # so that it is written again
            if damaged:
                logging.getLogger("evenmatch").warning(
                    "%d entries in %s are damaged or gone; they are computed again",
                    len(damaged),
                    self.folder,
                )
            return found

    def _read_values(
        self, segment: int, rows: list[tuple[_Place, bytes]]
    ) -> dict[bytes, memoryview]:
        """Read values of one segment; those that are close to each other in one call."""
        found: dict[bytes, memoryview] = {}
        try:
            file = self._path(segment, "data").open("rb", buffering=0)
        except FileNotFoundError:  # evicted by another process
            return found
        with file:
            end = os.fstat(file.fileno()).st_size
            for group in _group_rows(rows, end):
                first, last = group[0][0].offset, group[-1][0].offset + group[-1][0].size
                file.seek(first)
                data = memoryview(file.read(last - first))
                for (_, offset, size, checksum, _), key in group:
                    value = data[offset - first : offset - first + size]
                    if _checksum(key, value) == checksum and len(value) == size:
                        found[key] = value
        return found

    def write(self, new: Mapping[bytes, bytes], used: Iterable[bytes], max_bytes: int) -> None:
        """Append the entries that are absent, record uses, and evict."""
        with self.lock:
            self._refresh()
            # A use is recorded only for entries that are in danger of being evicted.
            old = max(self.read_sizes, default=0) - _SEGMENTS // 2
            touched = [k for k in used if (p := self.places.get(k)) and p.last_used <= old]
            if not touched and all(key in self.places for key in new):
                return
        with self._exclusive():
            self._refresh()
            absent = {key: value for key, value in new.items() if key not in self.places}
            if not self.read_sizes:
                for name in _FORMER_FILES:
                    (self.folder / name).unlink(missing_ok=True)
            self._append(absent, [key for key in touched if key in self.places], max_bytes)
            if self._data_bytes() > max_bytes:
                self._evict(max_bytes)

    def usage(self) -> tuple[int, int]:
        """Return the number of entries and the bytes of all values."""
        with self.lock:
            self._refresh()
            return len(self.places), self._data_bytes()

    def clear(self) -> None:
        """Remove everything but the lock; numbers of segments are not used again."""
        with self._exclusive():
            newest = max(self._numbers(), default=0)
            for path in self.folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif path.name != _LOCK_NAME:
                    path.unlink()
            self._path(newest + 1, "index").touch()

    def _append(self, new: Mapping[bytes, bytes], touched: Iterable[bytes], most: int) -> None:
        """Append values and records, to a new segment whenever the newest is full."""
        records = [(key, *self.places[key][:4]) for key in touched]
        number = max(self.read_sizes, default=1)
        waiting: list[bytes] = []
        size = start = self._size(number, "data")
        for key, value in new.items():
            if size and size + len(value) > most // _SEGMENTS:
                self._append_to(number, start, waiting, records)
                number, waiting, records = number + 1, [], []
                size = start = self._size(number, "data")
            records.append((key, number, size, len(value), _checksum(key, value)))
            waiting.append(value)
            size += len(value)
        self._append_to(number, start, waiting, records)

    def _append_to(
        self, number: int, start: int, values: Sequence[bytes], records: Sequence[object]
    ) -> None:
        """Append values to a segment, then their records; on a full disk, append nothing."""
        index_size = self._size(number, "index")
        index_size -= index_size % _RECORD.itemsize  # an incomplete record is overwritten
        try:
            # Values come first: a process killed in between leaves bytes that nobody looks up.
            _write_at(self._path(number, "data"), start, b"".join(values))
            _write_at(self._path(number, "index"), index_size, np.array(records, _RECORD).tobytes())
        except OSError:
            for kind, size in (("data", start), ("index", index_size)):
                if self._path(number, kind).exists():
                    os.truncate(self._path(number, kind), size)
            raise
        self._refresh()

    def _evict(self, max_bytes: int) -> None:
        """Remove the oldest segments; move what was used since into the newest one."""
        newest, moved = max(self.read_sizes), 0
        for number in sorted(self.read_sizes):
            if self._data_bytes() <= _TARGET_FILL * max_bytes:
                break
            used = [
                key
                for key, place in self.places.items()
                if place.segment == number < place.last_used
            ]
            values = {key: bytes(value) for key, value in self.read(used).items()}
            moved += sum(map(len, values.values()))
            for kind in ("index", "data"):
                self._path(number, kind).unlink(missing_ok=True)
            self._refresh()
            if values and moved <= max_bytes // 2:
                self._append(values, (), max_bytes)
        if newest not in self.read_sizes:
            self._path(newest + 1, "index").touch()

    def _refresh(self) -> None:
        """Read the records that were added since the last call."""
        numbers = self._numbers()
        sizes = {number: self._size(number, "index") for number in numbers}
        if any(sizes.get(number, -1) < size for number, size in self.read_sizes.items()):
            self.places.clear()  # segments were removed: read all records again
            self.read_sizes.clear()
        for number in numbers:
            known = self.read_sizes.get(number, 0)
            if sizes[number] - known >= _RECORD.itemsize:
                self._read_index(number, known)
            self.read_sizes.setdefault(number, 0)

    def _read_index(self, number: int, known: int) -> None:
        try:
            with self._path(number, "index").open("rb") as file:
                file.seek(known)
                data = file.read()
        except FileNotFoundError:  # evicted by another process
            return
        count = len(data) // _RECORD.itemsize
        records = np.frombuffer(data, _RECORD, count)
        keys, *columns = (records[name].tolist() for name in _RECORD.names or ())
        places = zip(*columns, [number] * count, strict=True)
        make_place = partial(tuple.__new__, _Place)  # in a third of the time of _Place._make
        self.places.update(zip(keys, map(make_place, places), strict=True))
        self.read_sizes[number] = known + count * _RECORD.itemsize

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Keep other threads and processes from writing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.lock, hold_lock(self.folder / _LOCK_NAME):
            yield

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted({int(found[1]) for name in names if (found := _SEGMENT_NAME.fullmatch(name))})

    def _data_bytes(self) -> int:
        return sum(self._size(number, "data") for number in self._numbers())

    def _size(self, number: int, kind: str) -> int:
        try:
            return self._path(number, kind).stat().st_size
        except FileNotFoundError:
            return 0

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"{number:08d}.{kind}"


@lru_cache(maxsize=8)
def _open_segments(folder: Path, process: int) -> _Segments:
    """Return what this process knows about a folder; a forked process begins anew."""
    return _Segments(folder)


def _group_rows(rows: list[tuple[_Place, bytes]], end: int) -> Iterator[list[tuple[_Place, bytes]]]:
    """Yield rows to read in one call, sorted by offset; values beyond `end` are left out."""
    group: list[tuple[_Place, bytes]] = []
    first = last = 0
    for row in sorted(rows):
        _, offset, size, *_ = row[0]
        stop = offset + size
        if stop > end:
            continue
        if group and (offset - last > _MAX_GAP or stop - first > _MAX_READ):
            yield group
            group = []
        if not group:
            first = offset
        group.append(row)
        last = stop
    if group:
        yield group


def _checksum(key: bytes, value: bytes | memoryview) -> int:
    return zlib.crc32(value, zlib.crc32(key))


def _write_at(path: Path, offset: int, data: bytes) -> None:
    with path.open("ab") as file:
        file.truncate(offset)
        file.write(data)
