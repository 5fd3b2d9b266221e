"""The encoder of MoverScore (Zhao et al. 2019): weighted n-grams of a model's tokens.

`Mover` holds the settings. `MoverSide` embeds the texts of one side; candidates and references have
one each, because idf is counted on each side separately. It drops tokens that only continue a
word, punctuation and stop words, and pools the vectors of each n-gram by its tokens' weights.
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
    """N-grams of a model's tokens, without punctuation and tokens that only continue a word.

    `model` and `layer` are as for `transformer`. `layers` is the number of layers read, from
    `layer` down; of several, the L2-normalised vectors are combined by concatenating their minimum,
    mean and maximum. `n_gram` is the number of consecutive tokens in a unit. `candidates` and
    `references` are the weightings of the two sides; if all tokens of a text get weight 0, they
    count equally. `stop_words` are left out too. `long` says how to handle a text longer than the
    model's limit. Units that are not the model's own tokens are pooled by their mean.
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
        """Embed each text as a reference."""
        return self.side_encoders()[1](batch)

    @property
    def backbone(self) -> PretrainedBackbone:
        """The underlying model, shared with every encoder that uses it."""
        return PretrainedBackbone(self.model, self.long, self.trust_remote_code)

    def side_encoders(self) -> tuple[MoverSide, MoverSide]:
        """Return the encoder of candidates and the encoder of references."""
        checkpoint = self.backbone.checkpoint()
        top = resolve_layer(self.layer, checkpoint)
        if self.layers > top + 1:
            raise InputError(
                f"{checkpoint.display_name} has {top + 1} layers from layer {top} down, "
                f"embeddings included, got layers={self.layers}"
            )
        layers = tuple(range(top - self.layers + 1, top + 1))
        dropped = _find_dropped_tokens(checkpoint, self.trust_remote_code, self.stop_words)
        candidate_side, reference_side = (
            MoverSide(self.backbone, layers, self.n_gram, weighting, self.stop_words, dropped)
            for weighting in (self.candidates, self.references)
        )
        return candidate_side, reference_side

    @property
    def needs_idf(self) -> bool:
        """Whether an idf table must be counted first."""
        return Idf() in (self.candidates, self.references)

    def with_side_idf(self, candidates: Iterable[str], references: Iterable[str]) -> Mover:
        """Return this encoder with each side's idf counted from its own texts."""
        return dataclasses.replace(
            self,
            candidates=self._with_counts(self.candidates, candidates),
            references=self._with_counts(self.references, references),
        )

    def _with_counts(self, weighting: Weighting, texts: Iterable[str]) -> Weighting:
        if weighting != Idf():
            return weighting
        documents = (ids for chunk in iter_chunks(texts) for ids in self.backbone.token_ids(chunk))
        return Idf(store_idf_table(count_documents(documents)))

    def pin(self) -> Mover:
        """Return this encoder with its layer as a number and a folder named by content hash."""
        checkpoint = self.backbone.checkpoint()
        top = resolve_layer(self.layer, checkpoint)
        return dataclasses.replace(self, model=checkpoint.name, layer=top)

    def sources(self) -> tuple[str, ...]:
        """The model by content hash, for the signature."""
        return (f"model {self.backbone.checkpoint().label}",)


@lru_cache(maxsize=4)
def _find_dropped_tokens(
    checkpoint: Checkpoint, trust_remote_code: bool, stop_words: tuple[str, ...]
) -> Array:
    """Return a boolean mask over the vocabulary: whether a token is left out."""
    vocabulary = load_model_tokenizer(checkpoint, trust_remote_code).backend.get_vocab()
    left_out = {*stop_words, *string.punctuation}
    dropped = np.zeros(max(vocabulary.values()) + 1, dtype=bool)
    for token, token_id in vocabulary.items():
        dropped[token_id] = "##" in token or token in left_out
    return dropped


@dataclass(frozen=True)
class MoverSide:
    """The encoder of one side; `layers_read` are its layers, the lowest first."""

    backbone: PretrainedBackbone
    layers_read: tuple[int, ...]
    n_gram: int
    weighting: Weighting
    stop_words: tuple[str, ...]
    # by token id; not compared, since it follows from the model and the stop words
    dropped_tokens: Array = field(compare=False)

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Run each text through the model and embed it, with its n-grams as readable units."""
        states = self.backbone.encode([units.text for units in batch], self.layers_read, Run())
        return [self._embed_readable(u, s) for u, s in zip(batch, states, strict=True)]

    def _embed_readable(self, units: Units, states: HiddenStates) -> Embedded:
        embedded = self.embed(units, states, self.layer_index())
        if not embedded.units.by_model:
            return embedded
        n_grams = self._find_n_grams(states, self._combine_layers(states))[0]
        return dataclasses.replace(embedded, units=_readable_n_grams(states, n_grams))

    def layer_index(self) -> int:
        """Return the highest layer that is read."""
        return self.layers_read[-1]

    def layer_indices(self) -> tuple[int, ...]:
        """Return all layers that are read."""
        return self.layers_read

    def embed(self, units: Units, states: HiddenStates, depth: int) -> Embedded:
        """Embed the weighted n-grams of one text."""
        vectors = self._combine_layers(states)
        if not units.by_model:
            weigh = self.weighting
            return embed_units(units, states, vectors, how="mean", weights=weigh, mass=weigh)
        n_grams, sums, weights = self._find_n_grams(states, vectors)
        pooled = _pool_n_grams(vectors, weights, n_grams, sums)
        return Embedded(units, pooled, sums, sums, states.flags)

    def _combine_layers(self, states: HiddenStates) -> Array:
        if len(self.layers_read) == 1:
            return states.layers[self.layers_read[0]]
        stack = np.stack([states.layers[layer] for layer in self.layers_read]).astype(np.float64)
        stack /= np.linalg.norm(stack, axis=-1, keepdims=True).clip(min=1e-30)
        return np.concatenate([stack.min(0), stack.mean(0), stack.max(0)], axis=-1)

    def _find_n_grams(self, states: HiddenStates, vectors: Array) -> tuple[Array, Array, Array]:
        """Return the token positions of each n-gram, its weight, and the weight of every token.

        N-grams without weight are left out, unless there are no others.
        """
        kept, weights = self._weigh_tokens(states, vectors)
        if self.n_gram == 1 and weights.any():  # the same as below, in fewer steps
            weighted = np.flatnonzero(weights > 0)
            return weighted[:, None], weights[weighted], weights
        width = min(self.n_gram, len(kept))
        count = len(kept) - width + 1 if width else 0
        n_grams = kept[np.arange(count)[:, None] + np.arange(width)]
        # Special tokens have no weight, but an n-gram may begin or end with one.
        sums = weights[n_grams].sum(1)
        weighted = sums > 0
        if not weighted.any():
            return n_grams, sums, weights
        return n_grams[weighted], sums[weighted], weights

    def _weigh_tokens(self, states: HiddenStates, vectors: Array) -> tuple[Array, Array]:
        """Return the positions of the tokens that are kept, and the weight of every token."""
        special = list(states.special_tokens)
        kept = ~self.dropped_tokens[states.token_ids]
        kept[special] = False
        if not kept.any():  # only punctuation and the like: kept, without weight
            text = np.ones(len(kept), dtype=bool)
            text[special] = False
            return np.flatnonzero(text), np.zeros(len(kept))
        weights = np.where(kept, self.weighting(states.token_ids, vectors), 0.0)
        # In a call with one pair every token is in every document and has idf 0.
        weights = weights if weights.any() else kept.astype(np.float64)
        kept[special] = True
        return np.flatnonzero(kept), weights


def _pool_n_grams(vectors: Array, weights: Array, n_grams: Array, sums: Array) -> Array:
    """Return the weighted mean of each n-gram's vectors; 0 if none of its tokens has weight."""
    if n_grams.shape[1] == 1 and sums.any():
        return vectors[n_grams[:, 0]]
    shares = weights[n_grams] / np.maximum(sums, 1e-300)[:, None]
    pooled: Array = (shares[:, :, None] * vectors[n_grams]).sum(1)
    return pooled


def _readable_n_grams(states: HiddenStates, n_grams: Array) -> Units:
    """Return the n-grams as readable units."""
    spans = tuple(map(tuple, states.spans.tolist()))
    words = [states.text[start:stop] for start, stop in spans]
    for at, name in states.special_tokens.items():
        words[at] = name
    return Units(states.text, tuple(words), spans, tuple(map(tuple, n_grams.tolist())))
