"""Static embeddings: one fixed vector per word or token, whatever its context.

- `Lookup` reads a table of word vectors (word2vec, GloVe) or a model's input embeddings.
- `LiveLookup` reads the input embeddings of a model that is being trained.

`find_word_table` and `read_word_table`, at the end, handle the files of word vectors.
"""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.errors import DataError, InputError
from evenmatch.files import DIGEST_PREFIX
from evenmatch.models.backbone import HiddenStates, load_input_embeddings
from evenmatch.models.checkpoints import LocalFile, find_by_content, find_checkpoint, pin_file
from evenmatch.models.tokenizer import (
    NO_LIMIT,
    ModelTokenizer,
    iter_chunks,
    load_model_tokenizer,
    wrap_tokenizer,
)
from evenmatch.protocols import Weighting
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.types import NO_FLAGS, Array, Embedded, OpenEncoder, Units
from evenmatch.units.text import Words
from evenmatch.vectors.pooling import embed_units, readable_units
from evenmatch.vectors.weighting import Uniform, count_documents, store_idf_table, with_idf_table

# Looks up the tokens of texts; the second argument says whether their character offsets are needed.
LookupFunction: TypeAlias = Callable[[Sequence[str], bool], list[HiddenStates]]


@register("vectors", "lookup")
@dataclass(frozen=True)
class Lookup:
    """Static vectors of words from `table`, or of tokens from the input embeddings of `model`.

    A table is a text file in the format of word2vec and GloVe, one word and its numbers per line,
    gzipped or not. A word that is not in it gets a zero vector, which is similar to nothing.
    """

    table: str = ""
    model: str = ""
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()

    def __post_init__(self) -> None:
        check_settings(self)
        if bool(self.table) == bool(self.model):
            raise InputError("lookup takes either table='FILE' or model='NAME', exactly one")

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Embed each text by looking up its words or tokens, regardless of context."""
        lookup = _load_lookup(self.table, self.model)
        return _embed_readable(lookup, batch, self.weights, self.mass)

    def open(self, context: CallContext) -> tuple[OpenEncoder, OpenEncoder]:
        """Load the table, or the input embeddings; candidates and references are encoded alike."""
        lookup = context.once(_load_lookup, self.table, self.model)
        # Tokens as readable units take longer than their scores, so they are made on demand.
        embed = _embed_readable if self.table else _embed_batch
        encoder = OpenEncoder(
            lambda batch: embed(lookup, batch, self.weights, self.mass),
            dataclasses.replace(self, weights=Uniform(), mass=Uniform()),
            readable=lambda units: readable_units(units, lookup([units.text], True)[0]),
            no_model=True,
        )
        return encoder, encoder

    def count_idf(self, context: CallContext) -> Lookup:
        """Return this encoder with idf counted from the call's references."""

        def count() -> str:
            lookup = context.once(_load_lookup, self.table, self.model)
            references = (reference for pair in context.pairs() for reference in pair.references)
            documents = (
                s.token_ids for chunk in iter_chunks(references) for s in lookup(chunk, False)
            )
            return store_idf_table(count_documents(documents))

        return with_idf_table(self, count)

    def resolve(self, context: CallContext) -> tuple[Lookup, tuple[str, ...]]:
        """Return this encoder with its file or folder named by content hash."""
        if self.table:
            table = context.once(find_word_table, self.table)
            resolved = dataclasses.replace(self, table=table.name)
            return resolved, (f"table {table.digest[:12]}",)
        checkpoint = context.once(find_checkpoint, self.model)
        resolved = dataclasses.replace(self, model=checkpoint.name)
        return resolved, (f"embeddings {checkpoint.label}",)


def _load_lookup(table: str, model: str) -> LookupFunction:
    if table:
        return read_word_table(find_word_table(table))
    found = find_checkpoint(model)
    tokenizer = load_model_tokenizer(found, trust_remote_code=False)
    return partial(_lookup_tokens, tokenizer, partial(load_input_embeddings(found).take, axis=0))


@dataclass(frozen=True, eq=False)
class LiveLookup:
    """The current input embeddings of a model that is being trained.

    It has no spec, since its vectors change from step to step.
    """

    model: Any
    tokenizer: Any
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Embed each text with the current weights; no gradient flows back."""
        weight = self.model.get_input_embeddings().weight.detach()

        def rows(ids: Array) -> Array:
            # only the rows that are needed leave the device
            return weight[ids].float().cpu().numpy()

        tokenizer = _cached_tokenizer(self.tokenizer, len(self.tokenizer))
        lookup = partial(_lookup_tokens, tokenizer, rows)
        return _embed_readable(lookup, batch, self.weights, self.mass)


@lru_cache(maxsize=4)
def _cached_tokenizer(tokenizer: Any, size: int) -> ModelTokenizer:
    """Wrap a tokenizer; its `size` is part of the cache key, so that added tokens are noticed."""
    return wrap_tokenizer(tokenizer, limit=NO_LIMIT)


def _lookup_tokens(
    tokenizer: ModelTokenizer, rows: Callable[[Array], Array], texts: Sequence[str], spans: bool
) -> list[HiddenStates]:
    """Look up the tokens of texts in an embedding matrix; all rows are fetched together."""
    tokenized = tokenizer(texts, spans=spans)
    if not tokenized:
        return []
    vectors = rows(np.concatenate([t.token_ids for t in tokenized]))
    stop = 0
    for t in tokenized:
        start, stop = stop, stop + len(t.token_ids)
        t.layers[0] = vectors[start:stop]
    return tokenized


def _embed_batch(
    lookup: LookupFunction, batch: Sequence[Units], weights: Weighting, mass: Weighting
) -> list[Embedded]:
    """Embed the units of each text by the mean of their tokens."""
    states = lookup([u.text for u in batch], not all(u.by_model for u in batch))
    if any(u.closing and not s.special_tokens for u, s in zip(batch, states, strict=True)):
        raise InputError(
            "a table puts no closing token after a text; use an encoder with a model: transformer"
        )
    return [
        embed_units(u, s, s.layers[0], how="mean", weights=weights, mass=mass)
        for u, s in zip(batch, states, strict=True)
    ]


def _embed_readable(
    lookup: LookupFunction, batch: Sequence[Units], weights: Weighting, mass: Weighting
) -> list[Embedded]:
    """Embed each text, with its tokens as readable units if splitting was left to the encoder."""
    found = _embed_batch(lookup, batch, weights, mass)
    states = lookup([u.text for u in batch], True)
    return [
        dataclasses.replace(e, units=readable_units(u, s))
        for u, e, s in zip(batch, found, states, strict=True)
    ]


def find_word_table(table: str) -> LocalFile:
    """Find a table of word vectors by file or content hash."""
    if table.startswith(DIGEST_PREFIX):
        return find_by_content("tables", table, "vector table", "file")
    path = Path(table).expanduser()
    if not path.is_file():
        raise DataError(f"there is no vector table {table}; give a file of words and numbers")
    return pin_file("tables", path)


@lru_cache(maxsize=2)
def read_word_table(table: LocalFile) -> LookupFunction:
    """Read a table of word vectors; of a word that occurs twice the first vector is used.

    Words are looked up as written or else in lower case.
    """
    rows: dict[str, int] = {}
    vectors: list[Array] = []
    try:
        for word, vector in _iter_vectors(table.path):
            if vectors and len(vector) != len(vectors[0]):
                raise DataError(
                    f"{table.path} has {len(vector)} numbers for {word!r}, not {len(vectors[0])}"
                )
            rows.setdefault(word, len(vectors))
            vectors.append(vector)
    except DataError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot read the vector table {table.path}: {error}") from None
    if not vectors:
        raise DataError(f"the vector table {table.path} is empty")
    matrix = np.vstack([*vectors, np.zeros_like(vectors[0])])
    return lambda texts, spans: [_lookup_words(rows, matrix, Words()(text)) for text in texts]


def _lookup_words(rows: Mapping[str, int], matrix: Array, units: Units) -> HiddenStates:
    """Return one row per word; the last row of the matrix is zero, for unknown words."""
    unknown = len(matrix) - 1
    found = [rows.get(w, rows.get(w.lower(), unknown)) for w in units.words]
    ids = np.array(found, dtype=np.int64)
    spans = np.array(units.spans, dtype=np.int32).reshape(-1, 2)
    unknown_only = ids.size > 0 and bool((ids == unknown).all())
    flags = frozenset({"unknown_only"}) if unknown_only else NO_FLAGS
    return HiddenStates(units.text, ids, spans, {}, {0: matrix[ids]}, flags)


def _iter_vectors(path: Path) -> Iterator[tuple[str, Array]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            word, *numbers = line.rstrip().split(" ")
            if number == 0 and len(numbers) == 1:
                continue  # word2vec's header: number of words, dimension
            yield word, np.array([n for n in numbers if n], dtype=np.float32)
