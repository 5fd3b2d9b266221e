"""Contextual embeddings: the hidden states of a pretrained transformer at a chosen layer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenmatch.errors import InputError
from evenmatch.models.adapters import adapter_sources, pin_adapter
from evenmatch.models.backbone import LongTextMode, PretrainedBackbone
from evenmatch.models.hidden_states import HiddenStates
from evenmatch.models.layers import Layer, resolve_layer
from evenmatch.models.packing import iter_chunks
from evenmatch.protocols import Weighting
from evenmatch.registry import check_settings, register
from evenmatch.types import Embedded, Run, Units
from evenmatch.vectors.pooling import embed_units
from evenmatch.vectors.weighting import (
    Uniform,
    lacks_idf_table,
    with_idf_table,
    with_uniform_weights,
)

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
        depth = self.layer_index()
        found = self.backbone.encode([units.text for units in batch], [depth], Run())
        return [self.embed(u, s, depth) for u, s in zip(batch, found, strict=True)]

    @property
    def backbone(self) -> PretrainedBackbone:
        """The underlying model; encoders that differ only in layer or weights share it."""
        return PretrainedBackbone(
            self.model, self.long, self.trust_remote_code, self.pad_to, self.adapter
        )

    def layer_index(self) -> int:
        """Return the number of the layer that is read."""
        return resolve_layer(self.layer, self.backbone.checkpoint())

    def embed(self, units: Units, found: HiddenStates, depth: int) -> Embedded:
        """Embed the units of one text from its hidden states at layer `depth`."""
        vectors = found.layers[depth]
        return embed_units(
            units, found, vectors, how=self.pool, weights=self.weights, mass=self.mass
        )

    @property
    def needs_idf(self) -> bool:
        """Whether an idf table must be counted first."""
        return lacks_idf_table(self)

    def with_idf(self, references: Iterable[str]) -> Transformer:
        """Return this encoder with idf counted from these references."""
        backbone = self.backbone
        return with_idf_table(
            self, (ids for chunk in iter_chunks(references) for ids in backbone.token_ids(chunk))
        )

    def without_weights(self) -> Transformer:
        """Return this encoder with uniform weights and mass."""
        return with_uniform_weights(self)

    def pin(self) -> Transformer:
        """Return this encoder with its layer as a number and folders named by content hash."""
        return dataclasses.replace(
            self,
            model=self.backbone.checkpoint().name,
            layer=self.layer_index(),
            adapter=pin_adapter(self.adapter),
        )

    def sources(self) -> tuple[str, ...]:
        """The model and the adapter by content hash, for the signature."""
        return (f"model {self.backbone.checkpoint().label}", *adapter_sources(self.adapter))
