"""How much a unit counts: all alike, by rarity, or by the length of its vector."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np

from evenmatch.registry import register
from evenmatch.types import Array, Weighting
from evenmatch.vectors import tables


@register("weighting", "uniform")
@dataclass(frozen=True)
class Uniform:
    """Every unit counts the same."""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        """Ones."""
        return _ones(len(keys))


@lru_cache(maxsize=4096)
def _ones(count: int) -> Array:
    """One array for all texts of a length, which nobody may write to."""
    ones = np.ones(count)
    ones.flags.writeable = False
    return ones


@register("weighting", "norm")
@dataclass(frozen=True)
class Norm:
    """A unit counts as much as its vector is long (the mass of F_CONT)."""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        """The Euclidean norms."""
        exact = np.asarray(vectors, dtype=np.float64)
        return np.sqrt(np.vecdot(exact, exact))


@register("weighting", "idf")
@dataclass(frozen=True)
class Idf:
    """Rare pieces count more: log((N + 1) / (df + 1)) over N documents, as bert_score has it.

    `table` is a file of counts or the content hash of one; '' counts the references of the call,
    and the signature then names the table that came out.
    """

    table: str = ""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        """A key never counted has df 0."""
        return tables.load(self.table).idf(keys)

    def pinned(self) -> Idf:
        """The same weighting with its table named by content."""
        return dataclasses.replace(self, table=tables.by_content(self.table))


class Weighted(Protocol):
    """An encoder with a weighting and a mass."""

    @property
    def weights(self) -> Weighting: ...
    @property
    def mass(self) -> Weighting: ...


E = TypeVar("E", bound=Weighted)


def is_uncounted(encoder: Weighted) -> bool:
    """Whether one of its weightings is an idf whose table has still to be counted."""
    return Idf() in (encoder.weights, encoder.mass)


def all_alike(encoder: E) -> E:
    """The encoder without its weightings."""
    return dataclasses.replace(encoder, weights=Uniform(), mass=Uniform())  # type: ignore[type-var]  # parts are dataclasses


def with_table(encoder: E, documents: Iterable[Array]) -> E:
    """The encoder with its idf counted from the keys of these documents."""
    table = Idf(tables.store(tables.count(documents)))
    changed = {k: table for k in ("weights", "mass") if getattr(encoder, k) == Idf()}
    return dataclasses.replace(encoder, **changed)  # type: ignore[type-var]  # parts are dataclasses
