"""lookup: one fixed vector per word or piece, from a table or from a model's input embeddings."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import DataError, InputError
from evenmatch.registry import register
from evenmatch.types import NO_FLAGS, Array, Embedded, Units, Weighting
from evenmatch.units.words import Words
from evenmatch.vectors import checkpoints, states
from evenmatch.vectors.blocks import load_embeddings
from evenmatch.vectors.packing import portions
from evenmatch.vectors.states import States
from evenmatch.vectors.tokens import NO_LIMIT, Tokens, load_tokens, wrap
from evenmatch.vectors.weighting import Uniform, is_uncounted, with_table


@register("encoder", "lookup")
@dataclass(frozen=True)
class Lookup:
    """Static vectors: of words from `table`, or of pieces from the input embeddings of `model`.

    A table is a text file as word2vec and GloVe write it, a word and its numbers per line, gzipped
    or not. A word that it lacks gets a zero vector, which is similar to nothing.
    """

    table: str = ""
    model: str = ""
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()

    def __post_init__(self) -> None:
        if bool(self.table) == bool(self.model):
            raise InputError("lookup takes either table='FILE' or model='NAME', one of them")

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Each piece or word looked up, whatever stands around it."""
        look = self._states()
        return [
            states.view(
                units, found, found.layers[0], how="mean", weights=self.weights, mass=self.mass
            )
            for units, found in zip(batch, look([u.text for u in batch]), strict=True)
        ]

    def _states(self) -> Callable[[Sequence[str]], list[States]]:
        if self.table:
            return _read_table(self.table)
        found = checkpoints.find(self.model)
        matrix = load_embeddings(found)
        return Embeddings(load_tokens(found, trust_remote_code=False), lambda: matrix)

    @property
    def uncounted(self) -> bool:
        """Whether an idf table has still to be counted."""
        return is_uncounted(self)

    def counted(self, references: Iterable[str]) -> Lookup:
        """The same encoder with its idf counted from these references."""
        look = self._states()
        return with_table(self, (f.keys for some in portions(references) for f in look(some)))

    def sources(self) -> tuple[str, ...]:
        """The table or model by content."""
        if self.table:
            return (f"table {checkpoints.file_sha256(Path(self.table))[:12]}",)
        return (f"embeddings {checkpoints.find(self.model).label}",)


@dataclass(frozen=True, eq=False)
class LiveLookup:
    """The input embeddings of a model in training, as they are at the moment of the call.

    It has no spec: what it computes changes from step to step.
    """

    model: Any
    tokenizer: Any
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Looked up in the current weights; no gradient flows back."""
        weight = self.model.get_input_embeddings().weight
        look = Embeddings(
            wrap(self.tokenizer, limit=NO_LIMIT), lambda: weight.detach().float().cpu().numpy()
        )
        return [
            states.view(u, f, f.layers[0], how="mean", weights=self.weights, mass=self.mass)
            for u, f in zip(batch, look([u.text for u in batch]), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Pieces of texts looked up in an embedding matrix."""

    tokens: Tokens
    matrix: Callable[[], Array]

    def __call__(self, texts: Sequence[str]) -> list[States]:
        """One row per piece."""
        matrix = self.matrix()
        return [
            States(t, c.keys, c.spans, c.marks, {0: matrix[c.keys]}, c.flags)
            for t, c in zip(texts, self.tokens(texts), strict=True)
        ]


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words looked up in a table, as written or in lower case."""

    rows: Mapping[str, int]
    matrix: Array

    def __call__(self, texts: Sequence[str]) -> list[States]:
        """One row per word; the last row of the matrix is zero and stands for the unknown."""
        return [self._one(Words()(text)) for text in texts]

    def _one(self, units: Units) -> States:
        lost = len(self.matrix) - 1
        keys = np.array([self._row(w, lost) for w in units.words], dtype=np.int64)
        spans = np.array(units.spans, dtype=np.int32).reshape(-1, 2)
        unknown = keys.size > 0 and bool((keys == lost).all())
        flags = frozenset({"unknown_only"}) if unknown else NO_FLAGS
        return States(units.text, keys, spans, {}, {0: self.matrix[keys]}, flags)

    def _row(self, word: str, lost: int) -> int:
        return self.rows.get(word, self.rows.get(word.lower(), lost))


@lru_cache(maxsize=2)
def _read_table(path: str) -> WordTable:
    rows: dict[str, int] = {}
    vectors: list[Array] = []
    width = 0
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.endswith(".gz")
            else open(path, encoding="utf-8") as file
        ):
            for number, line in enumerate(file, 1):
                word, *numbers = line.rstrip("\n").split(" ")
                if number == 1 and len(numbers) == 1:
                    continue  # word2vec's first line: how many words, how many numbers each
                vector = np.array([n for n in numbers if n], dtype=np.float32)
                width = width or len(vector)
                if len(vector) != width:
                    raise DataError(f"{path} line {number} has {len(vector)} numbers, not {width}")
                rows.setdefault(word, len(vectors))
                vectors.append(vector)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot read the vector table {path}: {error}") from None
    if not vectors:
        raise DataError(f"the vector table {path} is empty")
    return WordTable(rows, np.vstack([*vectors, np.zeros(width, dtype=np.float32)]))
