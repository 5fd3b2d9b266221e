"""transformer: vectors in context, from a pretrained model at a chosen layer."""

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

MAX_PADDED_LENGTH = 4096  # a cached text names its marks, paddings among them, in 64 KiB


@register("vectors", "transformer")
@dataclass(frozen=True)
class Transformer:
    """The hidden states of a pretrained model.

    `model` is an embedded model's name, a Hugging Face name or a folder. `layer` counts blocks;
    'auto' takes the one known to agree best with people. `pool` joins the pieces of a unit.
    `long` says what happens to a text the model cannot take whole. `pad_to` pads every text to
    that many pieces and cuts it off there: what the model makes of its paddings are units without
    weight, wherever opening and closing tokens are units too (LiSAScore's way to make repetition).
    `adapter` switches on one that `debias` made, by its folder, or one that comes with evenmatch.
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
        """Encode each text once and look at it as its units ask."""
        depth = self.layer_index()
        found = self.backbone.encode([units.text for units in batch], [depth], Run())
        return [self.embed(u, s, depth) for u, s in zip(batch, found, strict=True)]

    @property
    def backbone(self) -> PretrainedBackbone:
        """The model as such; encoders that differ only in layer or weights share it."""
        return PretrainedBackbone(
            self.model, self.long, self.trust_remote_code, self.pad_to, self.adapter
        )

    def layer_index(self) -> int:
        """The number of the layer read."""
        return resolve_layer(self.layer, self.backbone.checkpoint())

    def embed(self, units: Units, found: HiddenStates, depth: int) -> Embedded:
        """The units' vectors out of one text's states at that depth."""
        vectors = found.layers[depth]
        return embed_units(
            units, found, vectors, how=self.pool, weights=self.weights, mass=self.mass
        )

    @property
    def needs_idf(self) -> bool:
        """Whether an idf table has still to be counted."""
        return lacks_idf_table(self)

    def with_idf(self, references: Iterable[str]) -> Transformer:
        """The same encoder with its idf counted from these references."""
        body = self.backbone
        return with_idf_table(
            self, (k for some in iter_chunks(references) for k in body.token_ids(some))
        )

    def without_weights(self) -> Transformer:
        """The same encoder with all units alike."""
        return with_uniform_weights(self)

    def pin(self) -> Transformer:
        """The layer as a number, and folders as their content hashes."""
        return dataclasses.replace(
            self,
            model=self.backbone.checkpoint().name,
            layer=self.layer_index(),
            adapter=pin_adapter(self.adapter),
        )

    def sources(self) -> tuple[str, ...]:
        """The model and the adapter by content."""
        return (f"model {self.backbone.checkpoint().label}", *adapter_sources(self.adapter))
