"""One text's states at one layer as bytes, compact or exact, and back.

The compact form keeps each vector as 16-bit integers beside one scale. Half-precision floats take
the same room but move a BERTScore by up to 1.2e-5; this moves it by less than 2e-6, because the
step is the same for all components of a vector, and keeps its length, which F_CONT needs.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from evenmatch.types import NO_FLAGS, Array
from evenmatch.vectors.states import States

_HEAD = struct.Struct("<IIHB?")  # pieces, dimensions, bytes of names, flags, compact
_FLAGS = ("truncated", "unknown_only")
_TOP = 32767


def to_bytes(states: States, layer: int, *, exact: bool) -> bytes:
    """A text's pieces and its vectors at `layer`."""
    vectors = states.layers[layer]
    names = "\0".join(f"{at}\1{name}" for at, name in states.marks.items()).encode()
    flags = sum(1 << bit for bit, flag in enumerate(_FLAGS) if flag in states.flags)
    head = _HEAD.pack(*vectors.shape, len(names), flags, not exact)
    places = states.keys.astype(np.int32).tobytes() + states.spans.astype(np.int32).tobytes()
    # Arrays come first and names last: everything read as numbers stays aligned to 4 bytes.
    return b"".join((head, places, *_packed(vectors, exact), names))


def from_bytes(text: str, layer: int, data: bytes | memoryview) -> States:
    """The states written by `to_bytes`; arrays are copies, so `data` may go away."""
    pieces, dimensions, named, flags, compact = _HEAD.unpack_from(data)
    places = np.frombuffer(data, np.int32, 3 * pieces, _HEAD.size)
    start = _HEAD.size + places.nbytes
    vectors = _unpacked(data, start, pieces, dimensions, compact)
    names = bytes(data[len(data) - named :]).decode() if named else ""
    return States(
        text,
        places[:pieces].astype(np.int64),
        places[pieces:].reshape(pieces, 2).copy(),
        _marks(names),
        {layer: vectors},
        frozenset(f for bit, f in enumerate(_FLAGS) if flags >> bit & 1) if flags else NO_FLAGS,
    )


def _packed(vectors: Array, exact: bool) -> tuple[bytes, ...]:
    if exact:
        return (np.ascontiguousarray(vectors, dtype=np.float32).tobytes(),)
    scale = np.abs(vectors).max(1, initial=0.0).astype(np.float32) / np.float32(_TOP)
    steps = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    return scale.tobytes(), steps.tobytes()


def _unpacked(
    data: bytes | memoryview, start: int, pieces: int, dimensions: int, compact: bool
) -> Array:
    count = pieces * dimensions
    if not compact:
        return np.frombuffer(data, np.float32, count, start).reshape(pieces, dimensions).copy()
    scale = np.frombuffer(data, np.float32, pieces, start)
    steps = np.frombuffer(data, np.int16, count, start + scale.nbytes)
    # Two kinds of numbers in one product would take numpy many times as long.
    vectors = steps.astype(np.float32).reshape(pieces, dimensions)
    vectors *= scale[:, None]
    return vectors


@lru_cache(maxsize=4096)  # texts of one length have the same, and parsing them takes a while
def _marks(names: str) -> Mapping[int, str]:
    if not names:
        return {}
    pairs = (entry.split("\1", 1) for entry in names.split("\0"))
    return {int(at): name for at, name in pairs}
