"""Contextual embeddings: the hidden states of a pretrained transformer at a chosen layer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from evenmatch.errors import InputError
from evenmatch.models.backbone import (
    HiddenStates,
    LongTextMode,
    OpenBackbone,
    PretrainedBackbone,
    resolve_model,
)
from evenmatch.models.checkpoints import Layer, find_checkpoint, resolve_layer
from evenmatch.protocols import Weighting
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.types import Embedded, OpenEncoder, Units
from evenmatch.vectors.pooling import embed_units, readable_units
from evenmatch.vectors.weighting import Uniform, count_documents, store_idf_table, with_idf_table

# A cache entry names its special tokens, padding included, in at most 64 KiB.
MAX_PADDED_LENGTH = 4096


@register("vectors", "transformer")
@dataclass(frozen=True)
class Transformer:
    """The hidden states of a pretrained model.

    `model` is an embedded model's name, a Hugging Face name or a folder. `layer` counts blocks;
    'auto' takes the layer known to agree best with human ratings. `pool` combines the tokens of a
    unit. `long` says how to handle a text longer than the model's limit. `pad_to` pads every text
    to that many tokens and truncates it there; wherever opening and closing tokens are units, the
    padding tokens are units without weight too (LiSAScore uses this to create repetition).
    `adapter` is the folder of an adapter trained by `debias`, or one that comes with evenmatch.
    """

    model: str = "minilm"
    layer: Layer = "auto"
    pool: Literal["max", "mean"] = "max"
    weights: Weighting = Uniform()
    mass: Weighting = Uniform()
    long: LongTextMode = "truncate"
    trust_remote_code: bool = False
    pad_to: int = 0
    adapter: str = ""

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 <= self.pad_to <= MAX_PADDED_LENGTH:
            raise InputError(
                f"pad_to must be 0 (no padding) to {MAX_PADDED_LENGTH}, got {self.pad_to}"
            )
        if self.pad_to and self.long != "truncate":
            raise InputError(
                f"a padded text is truncated at its length; leave out long={self.long!r} or pad_to"
            )

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Run each text through the model and embed its units."""
        return self.open(CallContext())[0].encode(batch)

    @property
    def backbone(self) -> PretrainedBackbone:
        """The underlying model; encoders that differ only in layer or weights share it."""
        return PretrainedBackbone(
            self.model, self.long, self.trust_remote_code, self.pad_to, self.adapter
        )

    def layer_index(self) -> int:
        """Return the number of the layer that is read."""
        return resolve_layer(self.layer, self.backbone.checkpoint())

    def open(self, context: CallContext) -> tuple[OpenEncoder, OpenEncoder]:
        """Find the model and the layer; candidates and references are encoded alike."""
        backbone: OpenBackbone = context.open(self.backbone)
        layer = context.once(resolve_layer, self.layer, backbone.checkpoint)
        backbone.add_layers(layer)

        def encode(batch: Sequence[Units]) -> list[Embedded]:
            states = backbone.hidden_states([units.text for units in batch])
            return [self.embed(u, s, layer) for u, s in zip(batch, states, strict=True)]

        def readable(units: Units) -> Units:
            return readable_units(units, backbone.hidden_states([units.text])[0])

        key = (dataclasses.replace(self, weights=Uniform(), mass=Uniform()), backbone.facts)
        encoder = OpenEncoder(encode, key, self.pad_to, backbone.facts, readable)
        return encoder, encoder

    def embed(self, units: Units, states: HiddenStates, layer: int) -> Embedded:
        """Embed the units of one text from its hidden states at a layer."""
        vectors = states.layers[layer]
        return embed_units(
            units, states, vectors, how=self.pool, weights=self.weights, mass=self.mass
        )

    def count_idf(self, context: CallContext) -> Transformer:
        """Return this encoder with idf counted from the references of the call."""
        count = partial(context.once, count_reference_tokens, self.backbone, context)
        return with_idf_table(self, count)

    def resolve(self, context: CallContext) -> tuple[Transformer, tuple[str, ...]]:
        """Return this encoder with its layer as a number and folders named by content hash."""
        layer = context.once(resolve_layer, self.layer, context.once(find_checkpoint, self.model))
        return resolve_model(self, context, layer=layer)


def count_reference_tokens(backbone: PretrainedBackbone, context: CallContext) -> str:
    """Count the tokens of the call's references; return the content hash of the idf table."""
    references = (reference for pair in context.pairs() for reference in pair.references)
    opened: OpenBackbone = context.open(backbone)
    return store_idf_table(count_documents(opened.token_ids(references)))
