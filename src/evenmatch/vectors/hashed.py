"""Encoders that need no model.

- `hashed`: a fixed random vector per word, for tests, documentation and very large dry runs.
- `bare`: no vectors, for similarities that compare words only.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import Weighting
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.registry.parts import check_at_most
from evenmatch.types import Array, Embedded, OpenEncoder, Units
from evenmatch.units.text import Words
from evenmatch.vectors.weighting import Uniform, count_documents, store_idf_table, with_idf_table

_MAX_DIM = 1 << 16


@register("vectors", "hashed")
@dataclass(frozen=True)
class Hashed:
    """A fixed random direction per word: equal words have equal vectors, others nearly orthogonal.

    `lower` ignores the case of words.
    """

    dim: int = 256
    lower: bool = True
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.dim < 1:
            raise InputError(f"hashed's dim must be at least 1, got {self.dim}")
        check_at_most(_MAX_DIM, dim=self.dim)

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Embed each text; a unit of several words gets the sum of their vectors."""
        return [self._embed(split_into_words(units)) for units in batch]

    def open(self, context: CallContext) -> tuple[OpenEncoder, OpenEncoder]:
        """Return this encoder for both sides."""
        key = dataclasses.replace(self, weights=Uniform(), mass=Uniform())
        encoder = OpenEncoder(self, key)
        return encoder, encoder

    def count_idf(self, context: CallContext) -> Hashed:
        """Return this encoder with idf counted from the words of the call's references."""
        references = (reference for pair in context.pairs() for reference in pair.references)
        documents = (_hash_units(self._unit_words(Words()(text))) for text in references)
        return with_idf_table(self, lambda: store_idf_table(count_documents(documents)))

    def _unit_words(self, units: Units) -> list[list[str]]:
        """Return the words of each unit."""
        words = [w.lower() if self.lower else w for w in units.words]
        return [[words[i] for i in group] for group in units.groups]

    def _embed(self, units: Units) -> Embedded:
        members = self._unit_words(units)
        keys = _hash_units(members)
        vectors = np.array([self._sum_vectors(words) for words in members]).reshape(-1, self.dim)
        weights = self.weights(keys, vectors)
        if units.weights:
            weights = weights * np.asarray(units.weights)
        return Embedded(units, vectors, weights, self.mass(keys, vectors), units.flags)

    def _sum_vectors(self, words: list[str]) -> Array:
        # Nearly every unit is one word, and summing one vector would take longer than the rest.
        if len(words) == 1:
            return _random_direction(words[0], self.dim)
        every = np.array([_random_direction(w, self.dim) for w in words])
        return every.reshape(-1, self.dim).sum(0)


def split_into_words(units: Units) -> Units:
    """Split the text into words if splitting was left to the encoder; else return the units."""
    if units.closing or units.opening:
        what = "closing" if units.closing else "opening"
        raise InputError(f"words have no {what} token; use an encoder with a model: transformer")
    return Words()(units.text) if units.by_model else units


def _hash_units(members: list[list[str]]) -> Array:
    return np.array([_hash_word(" ".join(words)) for words in members], dtype=np.int64)


@lru_cache(maxsize=65536)
def _random_direction(word: str, dim: int) -> Array:
    direction = np.random.default_rng(_hash_word(word)).standard_normal(dim, dtype=np.float32)
    return direction / np.sqrt(np.square(direction).sum())


@lru_cache(maxsize=65536)
def _hash_word(word: str) -> int:
    """Hash a word to the same number in every process, unlike hash()."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@register("vectors", "bare")
@dataclass(frozen=True)
class Bare:
    """No vectors: units with equal weights, for similarities that compare words only."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Return the units as given, split into words if splitting was left to the encoder."""
        words = [(units, len(units.groups)) for units in map(split_into_words, batch)]
        return [Embedded(u, np.zeros((n, 0)), np.ones(n), np.ones(n)) for u, n in words]
