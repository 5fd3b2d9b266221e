"""lookup: one fixed vector per word or piece, from a table or from a model's input embeddings.

Tables of word vectors, as word2vec and GloVe write them: found, read, looked up.
"""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.errors import DataError, InputError
from evenmatch.files import DIGEST_PREFIX, file_digest, recall_path, remember_path
from evenmatch.models.backbone import load_input_embeddings
from evenmatch.models.checkpoints import find_checkpoint
from evenmatch.models.hidden_states import HiddenStates
from evenmatch.models.packing import iter_chunks
from evenmatch.models.tokenizer import (
    NO_LIMIT,
    ModelTokenizer,
    load_model_tokenizer,
    wrap_tokenizer,
)
from evenmatch.protocols import Weighting
from evenmatch.registry import check_settings, register
from evenmatch.types import NO_FLAGS, Array, Embedded, Units
from evenmatch.units.text import Words
from evenmatch.vectors.pooling import embed_units, readable_units
from evenmatch.vectors.weighting import (
    Uniform,
    lacks_idf_table,
    with_idf_table,
    with_uniform_weights,
)

LookupFunction: TypeAlias = Callable[[Sequence[str]], list[HiddenStates]]


@register("vectors", "lookup")
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
        check_settings(self)
        if bool(self.table) == bool(self.model):
            raise InputError("lookup takes either table='FILE' or model='NAME', one of them")

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Each piece or word looked up, whatever stands around it."""
        return _embed_batch(self._load_lookup(), batch, self.weights, self.mass)

    def _load_lookup(self) -> LookupFunction:
        if self.table:
            return read_word_table(find_word_table(self.table))
        found = find_checkpoint(self.model)
        matrix = load_input_embeddings(found)
        return EmbeddingLookup(
            load_model_tokenizer(found, trust_remote_code=False), matrix.__getitem__
        )

    @property
    def needs_idf(self) -> bool:
        """Whether an idf table has still to be counted."""
        return lacks_idf_table(self)

    def with_idf(self, references: Iterable[str]) -> Lookup:
        """The same encoder with its idf counted from these references."""
        look = self._load_lookup()
        return with_idf_table(
            self, (f.token_ids for some in iter_chunks(references) for f in look(some))
        )

    def without_weights(self) -> Lookup:
        """The same encoder with all units alike."""
        return with_uniform_weights(self)

    def pin(self) -> Lookup:
        """A file or folder as its content hash."""
        if self.table:
            return dataclasses.replace(self, table=find_word_table(self.table).name)
        return dataclasses.replace(self, model=find_checkpoint(self.model).name)

    def sources(self) -> tuple[str, ...]:
        """The table or model by content."""
        if self.table:
            return (f"table {find_word_table(self.table).digest[:12]}",)
        return (f"embeddings {find_checkpoint(self.model).label}",)


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
        weight = self.model.get_input_embeddings().weight.detach()

        def rows(keys: Array) -> Array:
            # only what is looked up leaves the device
            return weight[keys].float().cpu().numpy()

        look = EmbeddingLookup(_cached_tokenizer(self.tokenizer, len(self.tokenizer)), rows)
        return _embed_batch(look, batch, self.weights, self.mass)


@lru_cache(maxsize=4)
def _cached_tokenizer(tokenizer: Any, size: int) -> ModelTokenizer:
    """The tokenizer in our terms, made anew once it has grown."""
    return wrap_tokenizer(tokenizer, limit=NO_LIMIT)


@dataclass(frozen=True, eq=False)
class EmbeddingLookup:
    """Pieces of texts looked up in an embedding matrix."""

    tokenizer: ModelTokenizer
    rows: Callable[[Array], Array]

    def __call__(self, texts: Sequence[str]) -> list[HiddenStates]:
        """One row per piece; those of all texts are fetched together."""
        cuts = self.tokenizer(texts)
        if not cuts:
            return []
        found = self.rows(np.concatenate([cut.token_ids for cut in cuts]))
        ends = np.cumsum([len(cut.token_ids) for cut in cuts])
        return [
            HiddenStates(
                text, cut.token_ids, cut.spans, cut.special_tokens, {0: vectors}, cut.flags
            )
            for text, cut, vectors in zip(texts, cuts, np.split(found, ends[:-1]), strict=True)
        ]


def _embed_batch(
    look: LookupFunction, batch: Sequence[Units], weights: Weighting, mass: Weighting
) -> list[Embedded]:
    """Each text's units with the vectors of their pieces; cut here where that was left to us."""
    return [
        dataclasses.replace(
            embed_units(u, f, f.layers[0], how="mean", weights=weights, mass=mass),
            units=readable_units(u, f),
        )
        for u, f in zip(batch, look([u.text for u in batch]), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class WordTableFile:
    """A table on this disk: its file, and the hash of its content."""

    path: Path
    digest: str

    @property
    def name(self) -> str:
        """The table by content, as a signature shows it."""
        return f"{DIGEST_PREFIX}{self.digest[:16]}"


def find_word_table(table: str) -> WordTableFile:
    """The table of that file or content hash."""
    if table.startswith(DIGEST_PREFIX):
        path = recall_path("tables", table)
        if path is not None and path.is_file():
            found = WordTableFile(path, file_digest(path))
            if found.name == table:
                return found
        raise DataError(
            f"no vector table with the content {table} has been used on this machine; "
            "give the file that holds it instead"
        )
    path = Path(table).expanduser()
    if not path.is_file():
        raise DataError(f"there is no vector table {table}; give a file of words and numbers")
    found = WordTableFile(path, file_digest(path))
    remember_path("tables", found.name, path)
    return found


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words looked up in a table, as written or in lower case."""

    rows: Mapping[str, int]
    matrix: Array

    def __call__(self, texts: Sequence[str]) -> list[HiddenStates]:
        """One row per word; the last row of the matrix is zero and stands for the unknown."""
        return [self._lookup_words(Words()(text)) for text in texts]

    def _lookup_words(self, units: Units) -> HiddenStates:
        lost = len(self.matrix) - 1
        keys = np.array([self._find_row(w, lost) for w in units.words], dtype=np.int64)
        spans = np.array(units.spans, dtype=np.int32).reshape(-1, 2)
        unknown = keys.size > 0 and bool((keys == lost).all())
        flags = frozenset({"unknown_only"}) if unknown else NO_FLAGS
        return HiddenStates(units.text, keys, spans, {}, {0: self.matrix[keys]}, flags)

    def _find_row(self, word: str, lost: int) -> int:
        return self.rows.get(word, self.rows.get(word.lower(), lost))


@lru_cache(maxsize=2)
def read_word_table(table: WordTableFile) -> WordTable:
    """The table itself; of a word that stands there twice the first vector counts."""
    rows: dict[str, int] = {}
    vectors: list[Array] = []
    try:
        for word, vector in _iter_vectors(table.path):
            if vectors and len(vector) != len(vectors[0]):
                raise DataError(
                    f"{table.path} gives {word!r} {len(vector)} numbers, not {len(vectors[0])}"
                )
            rows.setdefault(word, len(vectors))
            vectors.append(vector)
    except DataError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot read the vector table {table.path}: {error}") from None
    if not vectors:
        raise DataError(f"the vector table {table.path} is empty")
    return WordTable(rows, np.vstack([*vectors, np.zeros_like(vectors[0])]))


def _iter_vectors(path: Path) -> Iterator[tuple[str, Array]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            word, *numbers = line.rstrip().split(" ")
            if number == 0 and len(numbers) == 1:
                continue  # word2vec's first line: how many words, how many numbers each
            yield word, np.array([n for n in numbers if n], dtype=np.float32)
