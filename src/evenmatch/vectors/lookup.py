"""lookup: one fixed vector per word or piece, from a table or from a model's input embeddings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Array, Embedded, Units, Weighting
from evenmatch.vectors import checkpoints, states, wordtables
from evenmatch.vectors.blocks import load_embeddings
from evenmatch.vectors.packing import portions
from evenmatch.vectors.states import States
from evenmatch.vectors.tokens import NO_LIMIT, Tokens, load_tokens, wrap
from evenmatch.vectors.weighting import Uniform, all_alike, is_uncounted, with_table

Look: TypeAlias = Callable[[Sequence[str]], list[States]]


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
        check_settings(self)
        if bool(self.table) == bool(self.model):
            raise InputError("lookup takes either table='FILE' or model='NAME', one of them")

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Each piece or word looked up, whatever stands around it."""
        return _looked_up(self._states(), batch, self.weights, self.mass)

    def _states(self) -> Look:
        if self.table:
            return wordtables.read(wordtables.find(self.table))
        found = checkpoints.find(self.model)
        matrix = load_embeddings(found)
        return Embeddings(load_tokens(found, trust_remote_code=False), matrix.__getitem__)

    @property
    def uncounted(self) -> bool:
        """Whether an idf table has still to be counted."""
        return is_uncounted(self)

    def counted(self, references: Iterable[str]) -> Lookup:
        """The same encoder with its idf counted from these references."""
        look = self._states()
        return with_table(self, (f.keys for some in portions(references) for f in look(some)))

    def unweighted(self) -> Lookup:
        """The same encoder with all units alike."""
        return all_alike(self)

    def pinned(self) -> Lookup:
        """A file or folder as its content hash."""
        if self.table:
            return dataclasses.replace(self, table=wordtables.find(self.table).name)
        return dataclasses.replace(self, model=checkpoints.find(self.model).name)

    def sources(self) -> tuple[str, ...]:
        """The table or model by content."""
        if self.table:
            return (f"table {wordtables.find(self.table).digest[:12]}",)
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
        weight = self.model.get_input_embeddings().weight.detach()

        def rows(keys: Array) -> Array:
            # only what is looked up leaves the device
            return weight[keys].float().cpu().numpy()

        look = Embeddings(_wrapped(self.tokenizer, len(self.tokenizer)), rows)
        return _looked_up(look, batch, self.weights, self.mass)


@lru_cache(maxsize=4)
def _wrapped(tokenizer: Any, size: int) -> Tokens:
    """The tokenizer in our terms, made anew once it has grown."""
    return wrap(tokenizer, limit=NO_LIMIT)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Pieces of texts looked up in an embedding matrix."""

    tokens: Tokens
    rows: Callable[[Array], Array]

    def __call__(self, texts: Sequence[str]) -> list[States]:
        """One row per piece; those of all texts are fetched together."""
        cuts = self.tokens(texts)
        if not cuts:
            return []
        found = self.rows(np.concatenate([cut.keys for cut in cuts]))
        ends = np.cumsum([len(cut.keys) for cut in cuts])
        return [
            States(text, cut.keys, cut.spans, cut.marks, {0: vectors}, cut.flags)
            for text, cut, vectors in zip(texts, cuts, np.split(found, ends[:-1]), strict=True)
        ]


def _looked_up(
    look: Look, batch: Sequence[Units], weights: Weighting, mass: Weighting
) -> list[Embedded]:
    """Each text's units with the vectors of their pieces; cut here where that was left to us."""
    return [
        dataclasses.replace(
            states.view(u, f, f.layers[0], how="mean", weights=weights, mass=mass),
            units=states.cut(u, f),
        )
        for u, f in zip(batch, look([u.text for u in batch]), strict=True)
    ]
