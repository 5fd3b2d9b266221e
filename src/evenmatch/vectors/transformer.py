"""transformer: vectors in context, from a pretrained model at a chosen layer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Embedded, Run, Units, Weighting
from evenmatch.vectors import layers, states
from evenmatch.vectors.adapter_files import adapter_source, pinned_adapter
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.packing import portions
from evenmatch.vectors.pretrained import Long, Pretrained
from evenmatch.vectors.states import States
from evenmatch.vectors.weighting import Uniform, all_alike, is_uncounted, with_table

LONGEST_PADDED = 4096  # a cached text names its marks, paddings among them, in 64 KiB


@register("encoder", "transformer")
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
    long: Long = "truncate"
    trust_remote_code: bool = False
    pad_to: int = 0
    adapter: str = ""

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 <= self.pad_to <= LONGEST_PADDED:
            raise InputError(
                f"pad_to must be 0 (no padding) to {LONGEST_PADDED}, got {self.pad_to}"
            )
        if self.pad_to and self.long != "truncate":
            raise InputError(
                f"a padded text is truncated at its length; leave out long={self.long!r} or pad_to"
            )

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Encode each text once and look at it as its units ask."""
        depth = self.depth()
        found = self.body.encode([units.text for units in batch], [depth], Run())
        return [self.look(u, s, depth) for u, s in zip(batch, found, strict=True)]

    @property
    def body(self) -> Pretrained:
        """The model as such; encoders that differ only in layer or weights share it."""
        return Pretrained(self.model, self.long, self.trust_remote_code, self.pad_to, self.adapter)

    def depth(self) -> int:
        """The number of the layer read."""
        return layers.resolve(self.layer, self.body.checkpoint())

    def look(self, units: Units, found: States, depth: int) -> Embedded:
        """The units' vectors out of one text's states at that depth."""
        vectors = found.layers[depth]
        return states.view(
            units, found, vectors, how=self.pool, weights=self.weights, mass=self.mass
        )

    @property
    def uncounted(self) -> bool:
        """Whether an idf table has still to be counted."""
        return is_uncounted(self)

    def counted(self, references: Iterable[str]) -> Transformer:
        """The same encoder with its idf counted from these references."""
        body = self.body
        return with_table(self, (k for some in portions(references) for k in body.keys(some)))

    def unweighted(self) -> Transformer:
        """The same encoder with all units alike."""
        return all_alike(self)

    def pinned(self) -> Transformer:
        """The layer as a number, and folders as their content hashes."""
        return dataclasses.replace(
            self,
            model=self.body.checkpoint().name,
            layer=self.depth(),
            adapter=pinned_adapter(self.adapter),
        )

    def sources(self) -> tuple[str, ...]:
        """The model and the adapter by content."""
        return (f"model {self.body.checkpoint().label}", *adapter_source(self.adapter))
