"""Hidden states of one text, and the protocols of encoders that share a backbone.

A backbone runs each text through a model once; several encoders then read units, layers and weights
out of the same `HiddenStates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from evenmatch.protocols import Encoder
from evenmatch.types import NO_FLAGS, Array, Embedded, Run, Units


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStates:
    """The tokens of one text, and their vectors at the requested layers of a model."""

    text: str
    token_ids: Array  # (tokens,)
    spans: Array  # (tokens, 2) character offsets
    special_tokens: Mapping[int, str]  # position and name of opening, closing and padding tokens
    layers: Mapping[int, Array]  # layer number to (tokens, dim)
    flags: frozenset[str] = NO_FLAGS


class Backbone(Protocol):
    """A model that several encoders may share: one pass over a text serves all of them."""

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], run: Run, /
    ) -> list[HiddenStates]: ...
    def token_ids(self, texts: Sequence[str], /) -> list[Array]: ...
    def identity(self) -> str: ...


@runtime_checkable
class BackboneEncoder(Protocol):
    """An encoder that embeds units out of a backbone's hidden states; equal backbones run once."""

    @property
    def backbone(self) -> Backbone: ...
    def layer_index(self) -> int: ...
    def embed(self, units: Units, states: HiddenStates, depth: int, /) -> Embedded: ...


@runtime_checkable
class MultiLayerEncoder(Protocol):
    """A backbone encoder that reads several layers at once."""

    def layer_indices(self) -> tuple[int, ...]: ...


@runtime_checkable
class TwoSidedEncoder(Protocol):
    """An encoder that treats candidates differently from references.

    `side_encoders` returns an encoder for each side; idf is counted on each side separately.
    """

    def side_encoders(self) -> tuple[Encoder, Encoder]: ...
    @property
    def needs_idf(self) -> bool: ...
    def with_side_idf(self, candidates: Iterable[str], references: Iterable[str], /) -> Encoder: ...


@runtime_checkable
class PaddedEncoder(Protocol):
    """An encoder that pads texts to `pad_to` tokens; 0 means no padding."""

    @property
    def pad_to(self) -> int: ...


@runtime_checkable
class IdfEncoder(Protocol):
    """An encoder whose idf weights may have to be counted from the references first."""

    @property
    def needs_idf(self) -> bool: ...
    def with_idf(self, references: Iterable[str], /) -> Encoder: ...


@runtime_checkable
class WeightedEncoder(Protocol):
    """An encoder whose vectors do not depend on its weights and mass."""

    def without_weights(self) -> Encoder: ...


def side_encoders(encoder: Encoder) -> tuple[Encoder, Encoder]:
    """Return the encoders of candidates and of references; for most encoders they are the same."""
    return encoder.side_encoders() if isinstance(encoder, TwoSidedEncoder) else (encoder, encoder)


def without_weights(encoder: Encoder) -> Encoder:
    """Return the encoder without weights; encoders that differ only in weights become equal."""
    return encoder.without_weights() if isinstance(encoder, WeightedEncoder) else encoder


def needs_idf_counts(encoder: Encoder) -> bool:
    """Whether an idf table must be counted before the encoder can be used."""
    return isinstance(encoder, IdfEncoder | TwoSidedEncoder) and encoder.needs_idf
