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


def view(
    units: Units, states: States, vectors: Array, *, how: str, weights: Weighting, mass: Weighting
) -> Embedded:
    """Units with vectors, from the pieces of the model that saw their text."""
    if not units.by_model:
        return pool(units, states.spans, states.keys, vectors, how, weights, mass, states.flags)
    keys = states.keys
    marked = units.marks and not _is_bare(states)
    if units.closing or (states.marks and not marked):
        keep = _closing(states) if units.closing else _kept(states)
        keys, vectors = keys[keep], vectors[keep]
    counts = weights(keys, vectors)
    if marked and states.marks:
        counts = np.array(counts)
        # By name, not by place: someone who writes "[SEP]" in a text gains no weight by it either.
        for mark in set(keys[list(states.marks)].tolist()):
            counts[keys == mark] = 0.0
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
    if units.closing:
        return every[_closing(states)]
    if units.marks and not _is_bare(states):
        return every
    return [i for i in every if i not in states.marks]


def _closing(states: States) -> slice:
    """Where the closing token stands: first after the text; nowhere if there is no text."""
    if _is_bare(states):
        return slice(0)
    at = 1 + max(i for i in range(len(states.keys)) if i not in states.marks)
    if at not in states.marks:
        raise InputError(
            "this model puts no closing token after a text; name one that does, such as 'minilm'"
        )
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
