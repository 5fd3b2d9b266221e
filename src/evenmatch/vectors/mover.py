"""The encoder of MoverScore (Zhao et al. 2019): weighted n-grams of a model's tokens.

`Mover` holds the settings and opens an encoder for each side, because idf is counted on each side
separately. Tokens that only continue a word, punctuation and stop words are dropped, and the
vectors of each n-gram are pooled by its tokens' weights.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.backbone import HiddenStates, LongTextMode, OpenBackbone, PretrainedBackbone
from evenmatch.models.checkpoints import Checkpoint, Layer, find_checkpoint, resolve_layer
from evenmatch.models.tokenizer import load_model_tokenizer
from evenmatch.protocols import Weighting
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.registry.parts import check_at_most
from evenmatch.types import Array, Embedded, OpenEncoder, Units
from evenmatch.vectors.pooling import embed_units
from evenmatch.vectors.transformer import count_reference_tokens
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
        check_at_most(1000, layers=self.layers, n_gram=self.n_gram)

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Embed each text as a reference, with its n-grams as readable units."""
        encoder = self.open(CallContext())[1]
        assert encoder.readable is not None
        embedded = encoder.encode(batch)
        return [dataclasses.replace(e, units=encoder.readable(e.units)) for e in embedded]

    @property
    def backbone(self) -> PretrainedBackbone:
        """The underlying model, shared with every encoder that uses it."""
        return PretrainedBackbone(self.model, self.long, self.trust_remote_code)

    def open(self, context: CallContext) -> tuple[OpenEncoder, OpenEncoder]:
        """Find model and layers; return the encoder of candidates and that of references."""
        backbone: OpenBackbone = context.open(self.backbone)
        checkpoint = backbone.checkpoint
        top = context.once(resolve_layer, self.layer, checkpoint)
        if self.layers > top + 1:
            raise InputError(
                f"{checkpoint.display_name} has {top + 1} layers from layer {top} down, "
                f"embeddings included, got layers={self.layers}"
            )
        layers = tuple(range(top - self.layers + 1, top + 1))
        backbone.add_layers(*layers)
        dropped = _find_dropped_tokens(checkpoint, self.trust_remote_code, self.stop_words)

        def open_side(weighting: Weighting) -> OpenEncoder:
            side = _MoverSide(backbone, layers, self.n_gram, weighting, dropped)
            key = self, weighting, backbone.facts
            return OpenEncoder(side.encode, key, facts=backbone.facts, readable=side.readable)

        candidates = open_side(self.candidates)
        same = self.candidates == self.references
        return candidates, candidates if same else open_side(self.references)

    def count_idf(self, context: CallContext) -> Mover:
        """Return this encoder with each side's idf counted from its own texts."""
        changed: dict[str, Weighting] = {}
        backbone: OpenBackbone = context.open(self.backbone)
        if self.candidates == Idf():
            texts: Iterable[str] = (pair.candidate for pair in context.pairs())
            changed["candidates"] = Idf(store_idf_table(count_documents(backbone.token_ids(texts))))
        if self.references == Idf():
            changed["references"] = Idf(
                context.once(count_reference_tokens, self.backbone, context)
            )
        return dataclasses.replace(self, **changed) if changed else self  # type: ignore[arg-type]  # only weightings change

    def resolve(self, context: CallContext) -> tuple[Mover, tuple[str, ...]]:
        """Return this encoder with its layer as a number and a folder named by content hash."""
        checkpoint = context.once(find_checkpoint, self.model)
        top = context.once(resolve_layer, self.layer, checkpoint)
        resolved = dataclasses.replace(self, model=checkpoint.name, layer=top)
        return resolved, (f"model {checkpoint.label}",)


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


@dataclass(frozen=True, eq=False)
class _MoverSide:
    """Embeds the texts of one side; `layers_read` are its layers, the lowest first."""

    backbone: OpenBackbone
    layers_read: tuple[int, ...]
    n_gram: int
    weighting: Weighting
    dropped_tokens: Array  # by token id

    def encode(self, batch: Sequence[Units]) -> list[Embedded]:
        """Embed each text."""
        states = self.backbone.hidden_states([units.text for units in batch])
        return [self.embed(u, s) for u, s in zip(batch, states, strict=True)]

    def embed(self, units: Units, states: HiddenStates) -> Embedded:
        """Embed the weighted n-grams of one text."""
        vectors = self._combine_layers(states)
        if not units.by_model:
            weigh = self.weighting
            return embed_units(units, states, vectors, how="mean", weights=weigh, mass=weigh)
        n_grams, sums, weights = self._find_n_grams(states, vectors)
        if n_grams.shape[1] == 1 and sums.any():
            pooled = vectors[n_grams[:, 0]]
        else:  # the weighted mean of each n-gram's vectors; 0 if none of its tokens has weight
            shares = weights[n_grams] / np.maximum(sums, 1e-300)[:, None]
            pooled = (shares[:, :, None] * vectors[n_grams]).sum(1)
        return Embedded(units, pooled, sums, sums, states.flags)

    def readable(self, units: Units) -> Units:
        """Return the n-grams of a text as readable units."""
        if not units.by_model:
            return units
        states = self.backbone.hidden_states([units.text])[0]
        n_grams = self._find_n_grams(states, self._combine_layers(states))[0]
        spans = tuple(map(tuple, states.spans.tolist()))
        words = [states.text[start:stop] for start, stop in spans]
        for at, name in states.special_tokens.items():
            words[at] = name
        return Units(states.text, tuple(words), spans, tuple(map(tuple, n_grams.tolist())))

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
