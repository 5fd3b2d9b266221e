"""What a model knows of one text, before anybody has chosen units, layer or weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import NO_FLAGS, Array, Embedded, Encoder, Run, Units, Weighting
from evenmatch.vectors.pool import pool


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """One text through a model: its pieces and the vectors of the layers asked for."""

    text: str
    keys: Array  # the pieces' ids
    spans: Array  # (pieces, 2) character offsets
    marks: Mapping[int, str]  # position and name of the opening and closing tokens
    layers: Mapping[int, Array]
    flags: frozenset[str] = NO_FLAGS


class Body(Protocol):
    """A model that several encoders may look at: one pass over a text serves them all."""

    def encode(self, texts: Sequence[str], layers: Sequence[int], run: Run, /) -> list[States]: ...
    def keys(self, texts: Sequence[str], /) -> list[Array]: ...
    def identity(self) -> str: ...


@runtime_checkable
class Viewing(Protocol):
    """An encoder made of a body and a way to look at it; equal bodies are run once."""

    @property
    def body(self) -> Body: ...
    def depth(self) -> int: ...
    def look(self, units: Units, states: States, depth: int, /) -> Embedded: ...


@runtime_checkable
class Deep(Protocol):
    """Such an encoder that looks at several layers of its body at once."""

    def depths(self) -> tuple[int, ...]: ...


@runtime_checkable
class Sided(Protocol):
    """An encoder that looks at candidates otherwise than at references.

    `sides` gives an encoder for each; what is counted is counted on each side for itself.
    """

    def sides(self) -> tuple[Encoder, Encoder]: ...
    @property
    def uncounted(self) -> bool: ...
    def counted_sides(self, candidates: Iterable[str], references: Iterable[str], /) -> Encoder: ...


@runtime_checkable
class Padding(Protocol):
    """An encoder that pads texts to so many pieces; 0 where it does not."""

    @property
    def pad_to(self) -> int: ...


@runtime_checkable
class Counting(Protocol):
    """An encoder whose weights may have to be counted from the references first."""

    @property
    def uncounted(self) -> bool: ...
    def counted(self, references: Iterable[str], /) -> Encoder: ...


@runtime_checkable
class Weighing(Protocol):
    """An encoder whose vectors are the same whatever its weights and mass."""

    def unweighted(self) -> Encoder: ...


def sides_of(encoder: Encoder) -> tuple[Encoder, Encoder]:
    """What looks at candidates and what looks at references: mostly the same."""
    return encoder.sides() if isinstance(encoder, Sided) else (encoder, encoder)


def unweighted(encoder: Encoder) -> Encoder:
    """What the encoder's vectors depend on: those that differ in weights alone give the same."""
    return encoder.unweighted() if isinstance(encoder, Weighing) else encoder


def needs_counting(encoder: Encoder) -> bool:
    """Whether texts have to be counted before the encoder can be used."""
    return isinstance(encoder, Counting | Sided) and encoder.uncounted


def view(
    units: Units, states: States, vectors: Array, *, how: str, weights: Weighting, mass: Weighting
) -> Embedded:
    """Units with vectors, from the pieces of the model that saw their text."""
    if not units.by_model:
        return pool(units, states.spans, states.keys, vectors, how, weights, mass, states.flags)
    keys = states.keys
    marked = units.marks and not _is_bare(states)
    alone = units.closing or units.opening
    if alone or (states.marks and not marked):
        keep = _mark(units, states) if alone else _kept(states)
        keys, vectors = keys[keep], vectors[keep]
    counts = weights(keys, vectors)
    if marked and states.marks:
        # By name, not by place: someone who writes "[SEP]" in a text gains no weight by it either.
        for mark in {int(keys[at]) for at in states.marks}:
            counts = counts * (keys != mark)
    return Embedded(units, vectors, counts, mass(keys, vectors), states.flags)


def cut(units: Units, states: States) -> Units:
    """The units themselves, readable, where the cutting was left to the model."""
    if not units.by_model:
        return units
    at = _units_at(units, states)
    spans = tuple((int(states.spans[i][0]), int(states.spans[i][1])) for i in at)
    words = tuple(
        states.marks.get(i) or units.text[a:b] for i, (a, b) in zip(at, spans, strict=True)
    )
    return Units(units.text, words, spans, tuple((i,) for i in range(len(words))))


def _units_at(units: Units, states: States) -> Sequence[int]:
    """The positions of the pieces that are units."""
    every = range(len(states.keys))
    if units.closing or units.opening:
        return every[_mark(units, states)]
    if units.marks and not _is_bare(states):
        return every
    return [i for i in every if i not in states.marks]


def _mark(units: Units, states: States) -> slice:
    """Where the mark that is the only unit stands; nowhere if there is no text.

    The opening token is the first of all, the closing token the first after the text.
    """
    if _is_bare(states):
        return slice(0)
    pieces = (i for i in range(len(states.keys)) if i not in states.marks)
    at = 0 if units.opening else 1 + max(pieces)
    if at not in states.marks:
        where = "opening token before" if units.opening else "closing token after"
        raise InputError(f"this model puts no {where} a text; name one that does, such as 'minilm'")
    return slice(at, at + 1)


def _is_bare(states: States) -> bool:
    """Whether a text has no piece but the marks around it; then it has no units at all."""
    return len(states.marks) == len(states.keys)


def _kept(states: States) -> Array | slice:
    """The positions that are not marks; a slice, which copies nothing, where they are in a row."""
    n, marks = len(states.keys), states.marks
    start = 0
    while start < n and start in marks:
        start += 1
    stop = n
    while stop > start and stop - 1 in marks:
        stop -= 1
    if stop - start + len(marks) == n:
        return slice(start, stop)
    return np.array([i for i in range(n) if i not in marks], dtype=np.int64)
