"""A bounded key-value store on disk that several processes can share.

LMDB provides consistency: it copies on write, so a reader sees either a complete entry or none,
even after a process is killed, and many processes may read while one writes. On 5,000 entries of
20 kB it read six times and wrote three times as fast as SQLite. This module adds the eviction of
the least recently used entries, with three tables: `entries` (key to value), `stamps` (key to hour
of last use, and the total size) and `ages` (stamp and key, sorted by age).
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, MissingExtraError

_STAMP = struct.Struct(">I")  # big-endian, so that the oldest stamp sorts first
_SIZE_KEY = b"size"
_STAMP_SECONDS = 3600  # a second use within the same hour is not recorded
_TARGET_FILL = 0.9  # fraction of `max_bytes` in use after eviction


def entry_key(*parts: object) -> bytes:
    """Return the key of an entry: a hash of what identifies it."""
    content = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=20).digest()


@dataclass(frozen=True)
class Store:
    """A store in one folder that evicts the least recently used entries."""

    folder: Path
    max_bytes: int

    @contextmanager
    def read_entries(self, keys: Sequence[bytes]) -> Iterator[list[memoryview | None]]:
        """Yield the entry of each key, or None; the memoryviews are valid inside the context."""
        if not (self.folder / "data.mdb").is_file():
            yield [None for _ in keys]
            return
        with self._transaction(write=False) as (entries, _, _):
            yield [entries.get(key) for key in keys]

    def write(self, new: Mapping[bytes, bytes], used: Iterable[bytes] = ()) -> None:
        """Add new entries, mark `used` ones as recently used, and evict the oldest if needed."""
        stamp = _STAMP.pack(int(time.time()) // _STAMP_SECONDS)
        with self._transaction(write=True) as (entries, stamps, ages):
            for key, value in new.items():
                if entries.put(key, value, overwrite=False):
                    _add_bytes(stamps, len(value))
                _touch(stamps, ages, key, stamp)
            for key in used:
                _touch(stamps, ages, key, stamp)
            _evict(entries, stamps, ages, self.max_bytes)

    def usage(self) -> tuple[int, int]:
        """Return the number of entries and their total size in bytes."""
        if not (self.folder / "data.mdb").is_file():
            return 0, 0
        with self._transaction(write=False) as (entries, stamps, _):
            return entries.count(), _total_bytes(stamps)

    def clear(self) -> None:
        """Remove every entry; other processes continue with an empty store."""
        file = self.folder / "data.mdb"
        if not file.is_file():
            return
        try:
            with self._transaction(write=True) as tables:
                for table in tables:
                    table.drop()
        except DataError:
            file.unlink()  # the file is damaged and cannot be read by anyone

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[tuple[_Table, _Table, _Table]]:
        import lmdb

        # Address space to reserve. It takes no disk space, except on Windows; elsewhere it does not
        # depend on `max_bytes`, since processes that share a store must use the same value.
        map_size = 1 << 40 if os.name == "posix" else 2 * self.max_bytes + (64 << 20)
        environment, names = _open_environment(self.folder, map_size, os.getpid())
        try:
            with environment.begin(write=write, buffers=True) as transaction:
                yield tuple(_Table(transaction, name) for name in names)  # type: ignore[misc]  # three names
        except lmdb.MapFullError:
            raise DataError(
                f"the vector cache in {self.folder} is full; raise its size limit"
            ) from None
        except lmdb.Error as error:
            raise _store_error(self.folder, error) from None


@dataclass(frozen=True, slots=True)
class _Table:
    """A named LMDB table within a transaction."""

    transaction: Any
    database: Any

    def get(self, key: bytes) -> memoryview | None:
        found: memoryview | None = self.transaction.get(key, db=self.database)
        return found

    def put(self, key: bytes, value: bytes, *, overwrite: bool = True) -> bool:
        return bool(self.transaction.put(key, value, db=self.database, overwrite=overwrite))

    def delete(self, key: bytes) -> None:
        self.transaction.delete(key, db=self.database)

    def first(self) -> bytes | None:
        cursor = self.transaction.cursor(db=self.database)
        return bytes(cursor.key()) if cursor.first() else None

    def count(self) -> int:
        return int(self.transaction.stat(self.database)["entries"])

    def drop(self) -> None:
        self.transaction.drop(self.database, delete=False)


@lru_cache(maxsize=8)
def _open_environment(folder: Path, map_size: int, process: int) -> tuple[Any, tuple[Any, ...]]:
    """Open the environment once per process: LMDB forbids opening it twice, or after a fork."""
    try:
        import lmdb
    except ImportError:
        raise MissingExtraError(
            "the vector cache needs lmdb; install it with: pip install 'evenmatch[cache]'"
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        environment = lmdb.open(str(folder), map_size=map_size, max_dbs=3)
        return environment, tuple(environment.open_db(n) for n in (b"entries", b"stamps", b"ages"))
    except (lmdb.Error, OSError) as error:
        raise _store_error(folder, error) from None


def _store_error(folder: Path, error: Exception) -> DataError:
    return DataError(
        f"cannot use the vector cache in {folder} ({error}); "
        "remove it with: evenmatch cache clear, or score without a cache"
    )


def _touch(stamps: _Table, ages: _Table, key: bytes, stamp: bytes) -> None:
    before = stamps.get(key)
    if before is not None:
        if bytes(before) == stamp:
            return
        ages.delete(bytes(before) + key)
    stamps.put(key, stamp)
    ages.put(stamp + key, b"")


def _evict(entries: _Table, stamps: _Table, ages: _Table, max_bytes: int) -> None:
    if _total_bytes(stamps) <= max_bytes:
        return
    while _total_bytes(stamps) > _TARGET_FILL * max_bytes:
        oldest = ages.first()
        if oldest is None:
            break
        key = oldest[_STAMP.size :]
        value = entries.get(key)
        _add_bytes(stamps, -len(value) if value is not None else 0)
        entries.delete(key)
        stamps.delete(key)
        ages.delete(oldest)


def _total_bytes(stamps: _Table) -> int:
    found = stamps.get(_SIZE_KEY)
    return int.from_bytes(found, "little") if found is not None else 0


def _add_bytes(stamps: _Table, change: int) -> None:
    stamps.put(_SIZE_KEY, max(0, _total_bytes(stamps) + change).to_bytes(8, "little"))
