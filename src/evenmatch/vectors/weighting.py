"""Weightings of units: uniform, by inverse document frequency (idf), or by vector norm.

An idf weighting needs a table of document frequencies (`IdfTable`). It is counted once
(`count_documents`), stored (`store_idf_table`), and named by its content hash, so that a signature
names exactly the table that was used. The tables on disk are bounded like other cached data; those
of `SHIPPED_TABLES` come with evenmatch.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenmatch.errors import DataError, InputError
from evenmatch.files import DIGEST_PREFIX, cache_dir
from evenmatch.registry import CallContext, register
from evenmatch.store import Store, entry_key
from evenmatch.types import Array

# Names and content hashes of the files in `data`. `english` has the tokens of BERT's uncased
# English vocabulary, which the embedded encoder uses; `tools/idf_table.py` counts it.
SHIPPED_TABLES = {"english": "sha256:8c8321260d9f5d41"}

_MAX_TOKEN_ID = 1 << 20  # hashes of words are far larger

E = TypeVar("E")  # an encoder with `weights` and `mass`


@register("weighting", "uniform")
@dataclass(frozen=True)
class Uniform:
    """Every unit has weight 1."""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        """Return ones."""
        return _ones(len(keys))


@lru_cache(maxsize=4096)
def _ones(count: int) -> Array:
    """Return one read-only array for all texts of a length."""
    ones = np.ones(count)
    ones.flags.writeable = False
    return ones


@register("weighting", "norm")
@dataclass(frozen=True)
class Norm:
    """The Euclidean norm of a unit's vector (the mass of F_CONT)."""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        """Return the norms."""
        exact = np.asarray(vectors, dtype=np.float64)
        return np.sqrt(np.vecdot(exact, exact))


@register("weighting", "idf")
@dataclass(frozen=True)
class Idf:
    """Inverse document frequency: log((N + 1) / (df + 1)) over N documents, as in bert_score.

    `table` is a file of counts or the content hash of one, or 'english', which comes with evenmatch
    and fits the embedded encoder. '' counts the references of the call; the signature then names
    the resulting table.
    """

    table: str = ""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        """Return the idf of each key; a key that is not in the table has df 0."""
        return load_idf_table(self.table).idf(keys)

    def resolve(self, context: CallContext) -> tuple[Idf, tuple[str, ...]]:
        """Return this weighting with its table named by content hash."""
        return Idf(context.once(pin_idf_table, self.table)), ()


def lacks_idf_table(encoder: Any) -> bool:
    """Whether an encoder's weights or mass are an idf without a table."""
    return Idf() in (encoder.weights, encoder.mass)


def with_idf_table(encoder: E, count: Callable[[], str]) -> E:
    """Return the encoder with the idf table that `count` stores, wherever it lacks one."""
    lacking = [name for name in ("weights", "mass") if getattr(encoder, name) == Idf()]
    if not lacking:
        return encoder
    return dataclasses.replace(encoder, **dict.fromkeys(lacking, Idf(count())))  # type: ignore[type-var]  # parts are dataclasses


MAX_STORE_BYTES = 1 << 28
_MAX_UNSAVED_TABLES = 64

# The newest tables that could not be written to disk, or must not be.
_unsaved_tables: dict[str, IdfTable] = {}
_saving_allowed: ContextVar[bool] = ContextVar("may_save_idf", default=True)


@contextmanager
def without_saving_idf() -> Iterator[None]:
    """Keep the idf tables counted within this block in memory; write none to disk."""
    before = _saving_allowed.set(False)
    try:
        yield
    finally:
        _saving_allowed.reset(before)


@dataclass(frozen=True, eq=False)
class IdfTable:
    """Document frequencies: in how many of `documents` each key occurs; keys are sorted."""

    documents: int
    keys: Array
    counts: Array

    def idf(self, keys: Array) -> Array:
        """Return log((N + 1) / (df + 1)) for each key."""
        keys = np.asarray(keys)
        if self._by_key is not None:  # the same as below, in a fifth of the time
            return self._by_key.take(keys, mode="clip")
        if not self.keys.size:
            return np.full(keys.shape, self._unknown_idf)
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[at] == keys, self._known_idf[at], self._unknown_idf)

    @cached_property
    def _by_key(self) -> Array | None:
        """The idf of every key up to the largest, and of unknown keys; None for other than ids."""
        if not self.keys.size or self.keys[0] < 0 or self.keys[-1] > _MAX_TOKEN_ID:
            return None
        table = np.full(self.keys[-1] + 2, self._unknown_idf)
        table[self.keys] = self._known_idf
        return table

    @cached_property
    def _known_idf(self) -> Array:
        return np.log((self.documents + 1.0) / (self.counts + 1.0))

    @cached_property
    def _unknown_idf(self) -> float:
        return math.log(self.documents + 1.0)

    def to_json(self) -> str:
        """Return the table as JSON; equal counts give equal text."""
        pairs = np.stack([self.keys, self.counts], axis=1).tolist()
        return json.dumps({"documents": self.documents, "counts": pairs}, separators=(",", ":"))


def count_documents(documents: Iterable[Array]) -> IdfTable:
    """Count in how many documents each key occurs; each document is an array of keys."""
    total, frequencies = 0, Counter[int]()
    for keys in documents:
        total += 1
        frequencies.update(set(np.asarray(keys).tolist()))
    ordered = sorted(frequencies)
    counts = np.array([frequencies[k] for k in ordered], dtype=np.int64)
    return IdfTable(total, np.array(ordered, dtype=np.int64), counts)


def store_idf_table(table: IdfTable) -> str:
    """Store a table and return its content hash."""
    content = table.to_json().encode()
    name = _content_name(content)
    with suppress(DataError):
        if _saving_allowed.get():
            if _read_stored(name) is None:
                idf_store().write({entry_key("idf", name): content})
            return name
    _unsaved_tables[name] = table
    for oldest in list(_unsaved_tables)[:-_MAX_UNSAVED_TABLES]:
        del _unsaved_tables[oldest]
    return name


def idf_store() -> Store:
    """Return the store of idf tables, in the cache folder."""
    return Store(cache_dir() / "idf", MAX_STORE_BYTES)


def store_idf_json(text: str) -> str:
    """Store a table received from another machine as JSON; return its content hash."""
    return store_idf_table(_parse_table(text.encode(), "the received text"))


def load_idf_table(table: str) -> IdfTable:
    """Load a table by name, file or content hash."""
    if not table:
        raise InputError("idf has no table yet; score with it, or set one: idf(table='FILE')")
    table = SHIPPED_TABLES.get(table, table)
    if table in _unsaved_tables:
        return _unsaved_tables[table]
    try:
        if table.startswith(DIGEST_PREFIX):
            return _load_stored(table)
        path = Path(table).expanduser()
        return _read_table_file(path, path.stat().st_mtime_ns)
    except DataError:
        raise
    except OSError:
        raise DataError(
            f"the idf table {table} is not on this machine; count it again with idf=True"
        ) from None


@lru_cache(maxsize=8)
def _load_stored(name: str) -> IdfTable:
    """Load a stored table; cached, since every text needs it and its content never changes."""
    shipped = next((own for own, digest in SHIPPED_TABLES.items() if digest == name), None)
    if shipped:
        file = files("evenmatch.vectors") / "data" / f"{shipped}.json.gz"
        return _parse_table(gzip.decompress(file.read_bytes()), name)
    content = _read_stored(name)
    if content is None:
        raise FileNotFoundError(name)
    return _parse_table(content, name)


def _read_stored(name: str) -> bytes | None:
    with idf_store().read_entries([entry_key("idf", name)]) as (found,):
        return None if found is None else bytes(found)


@lru_cache(maxsize=8)
def _read_table_file(path: Path, changed: int) -> IdfTable:
    """Read a table file; `changed`, its modification time, is part of the cache key."""
    return _parse_table(path.read_bytes(), str(path))


def _content_name(content: bytes) -> str:
    return DIGEST_PREFIX + hashlib.sha256(content).hexdigest()[:16]


def _parse_table(text: bytes, table: str) -> IdfTable:
    try:
        data = json.loads(text)
        pairs = np.array(data["counts"], dtype=np.int64).reshape(-1, 2)
        pairs = pairs[pairs[:, 0].argsort()]
        documents = np.int64(data["documents"])
        if not 0 <= pairs[:, 1].min(initial=0) <= pairs[:, 1].max(initial=0) <= documents:
            raise ValueError("a count is negative or exceeds the number of documents")
        return IdfTable(int(documents), pairs[:, 0], pairs[:, 1])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise DataError(
            f"{table} is not an idf table; expected JSON with 'documents' and 'counts'"
        ) from None


def pin_idf_table(table: str) -> str:
    """Return the content hash of a table; '' (not counted yet) stays ''."""
    table = SHIPPED_TABLES.get(table, table)
    pinned = not table or table.startswith(DIGEST_PREFIX)
    return table if pinned else store_idf_table(load_idf_table(table))
