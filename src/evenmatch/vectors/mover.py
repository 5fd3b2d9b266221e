"""mover: pieces as MoverScore sees them, weighed on either side by how rare they are there.

One side of a MoverScore: a text's states into weighed runs of pieces.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.backbone import LongTextMode, PretrainedBackbone
from evenmatch.models.checkpoints import Checkpoint
from evenmatch.models.hidden_states import HiddenStates
from evenmatch.models.layers import Layer, resolve_layer
from evenmatch.models.packing import iter_chunks
from evenmatch.models.tokenizer import load_model_tokenizer
from evenmatch.protocols import Weighting
from evenmatch.registry import check_settings, register
from evenmatch.types import Array, Embedded, Run, Units
from evenmatch.vectors.pooling import embed_units
from evenmatch.vectors.weighting import Idf, Uniform, count_documents, store_idf_table


@register("vectors", "mover")
@dataclass(frozen=True)
class Mover:
    """Runs of a model's pieces; those that only continue a word and punctuation are left out.

    `model` and `layer` are as for `transformer`. `layers` is how many layers are read, from `layer`
    down: of several, the least, mean and greatest of each number are put side by side, every
    layer's vectors being brought to length 1 before. `n_gram` is how many pieces in a row make a
    unit. `candidates` and `references` weigh the pieces of either side, and where they weigh all of
    a text's pieces at 0, these count the same. `stop_words` are left out too. `long` says what
    happens to a text the model cannot take whole. Units that are not the model's own pieces are
    pooled by their mean.
    """

    model: str = "minilm"
    layer: Layer = "last"
    layers: int = 1
    n_gram: int = 1
    candidates: Weighting = Uniform()
    references: Weighting = Uniform()
    stop_words: tuple[str, ...] = ()
    long: LongTextMode = "truncate"
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        if self.layers < 1 or self.n_gram < 1:
            raise InputError(
                f"layers and n_gram must be at least 1, got {self.layers} and {self.n_gram}"
            )

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Encode each text as a reference."""
        return self.side_encoders()[1](batch)

    @property
    def backbone(self) -> PretrainedBackbone:
        """The model as such, shared with every encoder that looks at it."""
        return PretrainedBackbone(self.model, self.long, self.trust_remote_code)

    def side_encoders(self) -> tuple[MoverSide, MoverSide]:
        """What looks at candidates, and what looks at references."""
        checkpoint = self.backbone.checkpoint()
        top = resolve_layer(self.layer, checkpoint)
        if self.layers > top + 1:
            raise InputError(
                f"{checkpoint.display_name} has {top + 1} layers from layer {top} down, "
                f"embeddings included, got layers={self.layers}"
            )
        read = tuple(range(top - self.layers + 1, top + 1))
        dropped = _find_dropped_tokens(checkpoint, self.trust_remote_code, self.stop_words)
        left, right = (
            MoverSide(self.backbone, read, self.n_gram, weighting, self.stop_words, dropped)
            for weighting in (self.candidates, self.references)
        )
        return left, right

    @property
    def needs_idf(self) -> bool:
        """Whether an idf table has still to be counted."""
        return Idf() in (self.candidates, self.references)

    def with_side_idf(self, candidates: Iterable[str], references: Iterable[str]) -> Mover:
        """The same encoder with each side's idf counted from its own texts."""
        return dataclasses.replace(
            self,
            candidates=self._with_counts(self.candidates, candidates),
            references=self._with_counts(self.references, references),
        )

    def _with_counts(self, weighting: Weighting, texts: Iterable[str]) -> Weighting:
        if weighting != Idf():
            return weighting
        keys = (key for some in iter_chunks(texts) for key in self.backbone.token_ids(some))
        return Idf(store_idf_table(count_documents(keys)))

    def pin(self) -> Mover:
        """The layer as a number, and a folder as its content hash."""
        checkpoint = self.backbone.checkpoint()
        top = resolve_layer(self.layer, checkpoint)
        return dataclasses.replace(self, model=checkpoint.name, layer=top)

    def sources(self) -> tuple[str, ...]:
        """The model by content."""
        return (f"model {self.backbone.checkpoint().label}",)


@lru_cache(maxsize=4)
def _find_dropped_tokens(
    checkpoint: Checkpoint, trust_remote_code: bool, stop_words: tuple[str, ...]
) -> Array:
    """For each piece of the vocabulary whether it is left out."""
    vocabulary = load_model_tokenizer(checkpoint, trust_remote_code).backend.get_vocab()
    left_out = {*stop_words, *string.punctuation}
    dropped = np.zeros(max(vocabulary.values()) + 1, dtype=bool)
    for piece, key in vocabulary.items():
        dropped[key] = "##" in piece or piece in left_out
    return dropped


@dataclass(frozen=True)
class MoverSide:
    """How texts of one side are looked at; `read` are the layers, lowest first."""

    backbone: PretrainedBackbone
    layers_read: tuple[int, ...]
    n_gram: int
    weighting: Weighting
    stop_words: tuple[str, ...]
    dropped_tokens: Array = field(
        compare=False
    )  # by piece; follows from the model and the stop words

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Encode each text once and look at it, with its runs as units that can be read."""
        found = self.backbone.encode([units.text for units in batch], self.layers_read, Run())
        looks = [self.embed(u, s, self.layer_index()) for u, s in zip(batch, found, strict=True)]
        return [
            dataclasses.replace(
                seen, units=_readable_n_grams(s, self._find_n_grams(s, self._combine_layers(s))[0])
            )
            if seen.units.by_model
            else seen
            for seen, s in zip(looks, found, strict=True)
        ]

    def layer_index(self) -> int:
        """The highest layer read."""
        return self.layers_read[-1]

    def layer_indices(self) -> tuple[int, ...]:
        """All layers read."""
        return self.layers_read

    def embed(self, units: Units, found: HiddenStates, depth: int) -> Embedded:
        """The weighed runs of one text."""
        vectors = self._combine_layers(found)
        if not units.by_model:
            weigh = self.weighting
            return embed_units(units, found, vectors, how="mean", weights=weigh, mass=weigh)
        runs, counts, weights = self._find_n_grams(found, vectors)
        return Embedded(
            units, _pool_n_grams(vectors, weights, runs, counts), counts, counts, found.flags
        )

    def _combine_layers(self, found: HiddenStates) -> Array:
        if len(self.layers_read) == 1:
            return found.layers[self.layers_read[0]]
        stack = np.stack([found.layers[layer] for layer in self.layers_read]).astype(np.float64)
        stack /= np.linalg.norm(stack, axis=-1, keepdims=True).clip(min=1e-30)
        return np.concatenate([stack.min(0), stack.mean(0), stack.max(0)], axis=-1)

    def _find_n_grams(self, found: HiddenStates, vectors: Array) -> tuple[Array, Array, Array]:
        """The positions of each run's pieces, the weight of each run, and that of every piece."""
        kept, weights = self._weigh_tokens(found, vectors)
        if self.n_gram == 1 and weights.any():  # a piece is a run, and what weighs nothing is none
            heavy = np.flatnonzero(weights > 0)
            return heavy[:, None], weights[heavy], weights
        width = min(self.n_gram, len(kept))
        count = len(kept) - width + 1 if width else 0
        runs = kept[np.arange(count)[:, None] + np.arange(width)]
        # Marks are without weight, but a run may begin or end with one.
        counts = weights[runs].sum(1)
        heavy = counts > 0
        return (runs[heavy], counts[heavy], weights) if heavy.any() else (runs, counts, weights)

    def _weigh_tokens(self, found: HiddenStates, vectors: Array) -> tuple[Array, Array]:
        """The positions of the pieces that are kept, and the weight of every piece."""
        marks = list(found.special_tokens)
        kept = ~self.dropped_tokens[found.token_ids]
        kept[marks] = False
        if not kept.any():  # nothing but punctuation and the like: there, and worth nothing
            text = np.ones(len(kept), dtype=bool)
            text[marks] = False
            return np.flatnonzero(text), np.zeros(len(kept))
        weights = np.where(kept, self.weighting(found.token_ids, vectors), 0.0)
        # In a call of one pair every piece is in every document, and so has an idf of 0.
        weights = weights if weights.any() else kept.astype(np.float64)
        kept[marks] = True
        return np.flatnonzero(kept), weights


def _pool_n_grams(vectors: Array, weights: Array, runs: Array, counts: Array) -> Array:
    """The weighted mean of each run's vectors; nothing at all where no piece has weight."""
    if runs.shape[1] == 1 and counts.any():
        return vectors[runs[:, 0]]  # a run of one piece is that piece
    shares = weights[runs] / np.maximum(counts, 1e-300)[:, None]
    pooled: Array = (shares[:, :, None] * vectors[runs]).sum(1)
    return pooled


def _readable_n_grams(found: HiddenStates, runs: Array) -> Units:
    """The runs as units that can be read."""
    spans = tuple(map(tuple, found.spans.tolist()))
    words = [found.text[start:stop] for start, stop in spans]
    for at, mark in found.special_tokens.items():
        words[at] = mark
    return Units(found.text, tuple(words), spans, tuple(map(tuple, runs.tolist())))
