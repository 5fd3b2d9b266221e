"""One text's states at one layer as bytes, compact or exact, and back.

The compact form keeps each vector as 16-bit integers beside one scale. Half-precision floats take
the same room but move a BERTScore by up to 1.2e-5; this moves it by some 3e-6 at most, because the
step is the same for all components of a vector, and keeps its length, which F_CONT needs.

After its head an entry has, for all pieces in turn: keys (4 bytes a piece), spans (8), and in the
compact form scales (4) and steps (2 a dimension), in the exact form numbers (4 a dimension).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from evenmatch.types import Array
from evenmatch.vectors.states import States

_HEAD = struct.Struct("<IIHB?")  # pieces, dimensions, bytes of names, flags, compact
_FLAGS = ("truncated", "unknown_only")
_TOP = 32767
# Texts unpacked at once: few enough that they stay in the processor's cache meanwhile, and that
# their room is taken from what was freed, not cleared anew by the system.
_TOGETHER = 16
Entry: TypeAlias = bytes | memoryview


def to_bytes(states: States, layer: int, *, exact: bool) -> bytes:
    """A text's pieces and its vectors at `layer`."""
    vectors = states.layers[layer]
    names = "\0".join(f"{at}\1{name}" for at, name in states.marks.items()).encode()
    flags = sum(1 << bit for bit, flag in enumerate(_FLAGS) if flag in states.flags)
    head = _HEAD.pack(*vectors.shape, len(names), flags, not exact)
    places = states.keys.astype(np.int32).tobytes() + states.spans.astype(np.int32).tobytes()
    # Arrays come first and names last: everything read as numbers stays aligned to 4 bytes.
    return b"".join((head, places, *_packed(vectors, exact), names))


def from_bytes(texts: Sequence[str], layer: int, data: Sequence[Entry]) -> list[States]:
    """The states of each text as written by `to_bytes`, all of them compact or all exact.

    They are copies, so `data` may go away.
    """
    found: list[States] = []
    for start in range(0, len(texts), _TOGETHER):
        some = slice(start, start + _TOGETHER)
        found += _states(texts[some], layer, data[some])
    return found


def _states(texts: Sequence[str], layer: int, data: Sequence[Entry]) -> list[States]:
    """Like parts of all texts are laid end to end, and so unpacked at once."""
    heads = [_HEAD.unpack_from(own) for own in data]
    counts = [head[0] for head in heads]
    _, dimensions, _, _, compact = heads[0]
    keys = _end_to_end(data, counts, 0, 4, np.int32).astype(np.int64)
    spans = _end_to_end(data, counts, 4, 8, np.int32).reshape(-1, 2)
    vectors = _unpacked(data, counts, dimensions) if compact else _plain(data, counts, dimensions)
    found = []
    stop = 0
    for text, own, (pieces, _, named, flags, _) in zip(texts, data, heads, strict=True):
        start, stop = stop, stop + pieces
        at = slice(start, stop)
        marks = _marks(bytes(own[len(own) - named :]))
        layers = {layer: vectors[at]}
        found.append(States(text, keys[at], spans[at], marks, layers, _flags(flags)))
    return found


def _end_to_end(
    data: Sequence[Entry], counts: Sequence[int], first: int, width: int, kind: type[np.generic]
) -> Array:
    """A part of every entry; it lies `first` bytes a piece from its head and takes `width`."""
    parts = [
        own[_HEAD.size + first * n : _HEAD.size + (first + width) * n]
        for own, n in zip(data, counts, strict=True)
    ]
    return np.frombuffer(bytearray().join(parts), kind)


def _packed(vectors: Array, exact: bool) -> tuple[bytes, ...]:
    if exact:
        return (np.ascontiguousarray(vectors, dtype=np.float32).tobytes(),)
    scale = np.abs(vectors).max(1, initial=0.0).astype(np.float32) / np.float32(_TOP)
    steps = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    return scale.tobytes(), steps.tobytes()


def _plain(data: Sequence[Entry], counts: Sequence[int], dimensions: int) -> Array:
    return _end_to_end(data, counts, 12, 4 * dimensions, np.float32).reshape(-1, dimensions)


def _unpacked(data: Sequence[Entry], counts: Sequence[int], dimensions: int) -> Array:
    scale = _end_to_end(data, counts, 12, 4, np.float32)
    steps = _end_to_end(data, counts, 16, 2 * dimensions, np.int16).reshape(-1, dimensions)
    return steps * scale[:, None]


@lru_cache
def _flags(bits: int) -> frozenset[str]:
    return frozenset(flag for bit, flag in enumerate(_FLAGS) if bits >> bit & 1)


@lru_cache(maxsize=4096)  # texts of one length have the same, and parsing them takes a while
def _marks(names: bytes) -> Mapping[int, str]:
    if not names:
        return {}
    pairs = (entry.split("\1", 1) for entry in names.decode().split("\0"))
    return {int(at): name for at, name in pairs}
