"""Document-frequency tables: counted once, frozen, and named by their content."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from evenmatch.errors import DataError, InputError
from evenmatch.storage.contents import BY_CONTENT, write_note
from evenmatch.storage.folders import cache_dir
from evenmatch.types import Array

# Tables that a read-only disk could not take; they live as long as the process.
_unwritten: dict[str, Table] = {}


@dataclass(frozen=True, eq=False)
class Table:
    """In how many of `documents` each key occurs; keys are sorted."""

    documents: int
    keys: Array
    counts: Array

    def idf(self, keys: Array) -> Array:
        """log((N + 1) / (df + 1)) for each key."""
        keys = np.asarray(keys)
        if not self.keys.size:
            return np.full(keys.shape, self._unknown)
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[at] == keys, self._known[at], self._unknown)

    @cached_property
    def _known(self) -> Array:
        return np.log((self.documents + 1.0) / (self.counts + 1.0))

    @cached_property
    def _unknown(self) -> float:
        return math.log(self.documents + 1.0)

    def dumps(self) -> str:
        """The table as JSON, the same text for the same counts."""
        pairs = np.stack([self.keys, self.counts], axis=1).tolist()
        return json.dumps({"documents": self.documents, "counts": pairs}, separators=(",", ":"))


def count(documents: Iterable[Array]) -> Table:
    """A table of how many documents hold each key; each document is an array of keys."""
    total, seen = 0, Counter[int]()
    for keys in documents:
        total += 1
        seen.update(set(np.asarray(keys).tolist()))
    ordered = sorted(seen)
    counts = np.array([seen[k] for k in ordered], dtype=np.int64)
    return Table(total, np.array(ordered, dtype=np.int64), counts)


def store(table: Table) -> str:
    """Keep a table and give its content name."""
    text = table.dumps()
    name = _name(text.encode())
    if not _place(name).is_file():
        write_note(_place(name), text)
    if not _place(name).is_file():
        _unwritten[name] = table
    return name


def keep_text(text: str) -> str:
    """Keep a table that comes from another machine as `dumps` wrote it; gives its content name."""
    return store(_parse(text.encode(), "what was sent"))


def load(table: str) -> Table:
    """The table of that file or content name."""
    if not table:
        raise InputError("idf has no table yet; score with it, or give a table: idf(table='FILE')")
    if table in _unwritten:
        return _unwritten[table]
    try:
        if table.startswith(BY_CONTENT):
            return _kept(table)
        path = Path(table).expanduser()
        return _read(path, path.stat().st_mtime_ns)
    except DataError:
        raise
    except OSError:
        raise DataError(
            f"the idf table {table} is not on this machine; count it anew with idf=True"
        ) from None


@lru_cache(maxsize=8)
def _kept(name: str) -> Table:
    """The table of that content, which never changes: every text asks for it."""
    path = _place(name)
    content = path.read_bytes()
    if _name(content) != name:
        raise DataError(f"{path} does not hold the idf table {name}; count it anew with idf=True")
    return _parse(content, name)


@lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> Table:
    """A table file, read again once it has `changed`."""
    return _parse(path.read_bytes(), str(path))


def _name(content: bytes) -> str:
    return BY_CONTENT + hashlib.sha256(content).hexdigest()[:16]


def _parse(text: bytes, table: str) -> Table:
    try:
        data = json.loads(text)
        pairs = np.array(data["counts"], dtype=np.int64).reshape(-1, 2)
        pairs = pairs[pairs[:, 0].argsort()]
        return Table(int(data["documents"]), pairs[:, 0], pairs[:, 1])
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"{table} is no idf table; expected JSON with 'documents' and 'counts'"
        ) from None


def by_content(table: str) -> str:
    """The content name of a table; '' (not counted yet) stays."""
    return table if not table or table.startswith(BY_CONTENT) else store(load(table))


def _place(name: str) -> Path:
    return cache_dir() / "idf" / f"{Path(name.removeprefix(BY_CONTENT)).name}.json"
