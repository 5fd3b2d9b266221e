"""hashed: vectors that need no model, for tests, documentation and very large dry runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Array, Embedded, Units, Weighting
from evenmatch.units.words import Words
from evenmatch.vectors.weighting import Uniform, all_alike, is_uncounted, with_table


@register("encoder", "hashed")
@dataclass(frozen=True)
class Hashed:
    """A fixed random direction per word: equal words are alike, all others nearly orthogonal.

    `lower` takes words of different case for the same.
    """

    dim: int = 256
    lower: bool = True
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.dim < 1:
            raise InputError(f"hashed's dim must be at least 1, got {self.dim}")

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """A unit of several words gets the sum of their vectors."""
        return [self._embed(cut_by_word(units)) for units in batch]

    @property
    def uncounted(self) -> bool:
        """Whether an idf table has still to be counted."""
        return is_uncounted(self)

    def counted(self, references: Iterable[str]) -> Hashed:
        """The same encoder with its idf counted from the words of these references."""
        return with_table(self, (_keys(self._members(Words()(text))) for text in references))

    def unweighted(self) -> Hashed:
        """The same encoder with all units alike."""
        return all_alike(self)

    def _members(self, units: Units) -> list[list[str]]:
        """The words of each unit."""
        words = [w.lower() if self.lower else w for w in units.words]
        return [[words[i] for i in group] for group in units.groups]

    def _embed(self, units: Units) -> Embedded:
        members = self._members(units)
        keys = _keys(members)
        vectors = np.array([self._sum(words) for words in members]).reshape(-1, self.dim)
        weights = self.weights(keys, vectors)
        if units.weights:
            weights = weights * np.asarray(units.weights)
        return Embedded(units, vectors, weights, self.mass(keys, vectors), units.flags)

    def _sum(self, words: list[str]) -> Array:
        # Nearly every unit is one word, and adding up one vector takes longer than all the rest.
        if len(words) == 1:
            return _direction(words[0], self.dim)
        return np.array([_direction(w, self.dim) for w in words]).reshape(-1, self.dim).sum(0)


def cut_by_word(units: Units) -> Units:
    """The units, cut into words where the cutting was left to the encoder."""
    if units.closing or units.opening:
        what = "closing" if units.closing else "opening"
        raise InputError(f"words have no {what} token; use an encoder with a model: transformer")
    return Words()(units.text) if units.by_model else units


def _keys(members: list[list[str]]) -> Array:
    return np.array([_key(" ".join(words)) for words in members], dtype=np.int64)


@lru_cache(maxsize=65536)
def _direction(word: str, dim: int) -> Array:
    direction = np.random.default_rng(_key(word)).standard_normal(dim, dtype=np.float32)
    return direction / np.sqrt(np.square(direction).sum())


@lru_cache(maxsize=65536)
def _key(word: str) -> int:
    """A number for a word that is the same in every process, which hash() is not."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
