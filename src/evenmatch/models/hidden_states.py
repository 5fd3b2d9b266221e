"""What a model knows of one text, before anybody has chosen units, layer or weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from evenmatch.protocols import Encoder
from evenmatch.types import NO_FLAGS, Array, Embedded, Run, Units


@dataclass(frozen=True, slots=True, eq=False)
class HiddenStates:
    """One text through a model: its pieces and the vectors of the layers asked for."""

    text: str
    token_ids: Array  # the pieces' ids
    spans: Array  # (pieces, 2) character offsets
    special_tokens: Mapping[int, str]  # position and name of the opening and closing tokens
    layers: Mapping[int, Array]
    flags: frozenset[str] = NO_FLAGS


class Backbone(Protocol):
    """A model that several encoders may look at: one pass over a text serves them all."""

    def encode(
        self, texts: Sequence[str], layers: Sequence[int], run: Run, /
    ) -> list[HiddenStates]: ...
    def token_ids(self, texts: Sequence[str], /) -> list[Array]: ...
    def identity(self) -> str: ...


@runtime_checkable
class BackboneEncoder(Protocol):
    """An encoder made of a body and a way to look at it; equal bodies are run once."""

    @property
    def backbone(self) -> Backbone: ...
    def layer_index(self) -> int: ...
    def embed(self, units: Units, states: HiddenStates, depth: int, /) -> Embedded: ...


@runtime_checkable
class MultiLayerEncoder(Protocol):
    """Such an encoder that looks at several layers of its body at once."""

    def layer_indices(self) -> tuple[int, ...]: ...


@runtime_checkable
class TwoSidedEncoder(Protocol):
    """An encoder that looks at candidates otherwise than at references.

    `sides` gives an encoder for each; what is counted is counted on each side for itself.
    """

    def side_encoders(self) -> tuple[Encoder, Encoder]: ...
    @property
    def needs_idf(self) -> bool: ...
    def with_side_idf(self, candidates: Iterable[str], references: Iterable[str], /) -> Encoder: ...


@runtime_checkable
class PaddedEncoder(Protocol):
    """An encoder that pads texts to so many pieces; 0 where it does not."""

    @property
    def pad_to(self) -> int: ...


@runtime_checkable
class IdfEncoder(Protocol):
    """An encoder whose weights may have to be counted from the references first."""

    @property
    def needs_idf(self) -> bool: ...
    def with_idf(self, references: Iterable[str], /) -> Encoder: ...


@runtime_checkable
class WeightedEncoder(Protocol):
    """An encoder whose vectors are the same whatever its weights and mass."""

    def without_weights(self) -> Encoder: ...


def side_encoders(encoder: Encoder) -> tuple[Encoder, Encoder]:
    """What looks at candidates and what looks at references: mostly the same."""
    return encoder.side_encoders() if isinstance(encoder, TwoSidedEncoder) else (encoder, encoder)


def without_weights(encoder: Encoder) -> Encoder:
    """What the encoder's vectors depend on: those that differ in weights alone give the same."""
    return encoder.without_weights() if isinstance(encoder, WeightedEncoder) else encoder


def needs_idf_counts(encoder: Encoder) -> bool:
    """Whether texts have to be counted before the encoder can be used."""
    return isinstance(encoder, IdfEncoder | TwoSidedEncoder) and encoder.needs_idf
