"""Vectors kept between runs: a text that has been through a model never goes again.

One text's states at one layer as bytes, compact or exact, and back.

The compact form keeps each vector as 16-bit integers beside one scale. Half-precision floats take
the same room but move a BERTScore by up to 1.2e-5; this moves it by some 3e-6 at most, because the
step is the same for all components of a vector, and keeps its length, which F_CONT needs.

After its head an entry has, for all pieces in turn: keys (4 bytes a piece), spans (8), and in the
compact form scales (4) and steps (2 a dimension), in the exact form numbers (4 a dimension).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from evenmatch.files import cache_dir
from evenmatch.models.hidden_states import Backbone, HiddenStates
from evenmatch.store import Store
from evenmatch.types import Array, Cache, Run


def embedding_store(cache: Cache) -> Store:
    """The store behind a cache."""
    base = Path(cache.folder).expanduser() if cache.folder else cache_dir()
    return Store(base / "states", cache.max_bytes)


def cache_facts(cache: Cache | None) -> tuple[str, ...]:
    """What a signature says about a cache: nothing where it changes nothing."""
    return () if cache is None or cache.exact else ("vectors compact",)


def encode_cached(
    body: Backbone, texts: Sequence[str], layers: Sequence[int], run: Run, identity: str = ""
) -> list[HiddenStates]:
    """Each text's states at `layers`, from the cache where it has them all.

    `identity` is the body's, where somebody who calls often has it: finding it reads the disk.
    """
    if run.cache is None or not texts:
        return body.encode(texts, layers, run)
    cache = run.cache
    store = embedding_store(cache)
    origin = f"{identity or body.identity()} {'exact' if cache.exact else 'compact'}"
    keys = [[_cache_key(origin, layer, text) for layer in layers] for text in texts]
    found = _read_cached(store, texts, layers, keys)
    missing = [i for i, states in enumerate(found) if states is None]
    new: dict[bytes, bytes] = {}
    if missing:
        lacking = [texts[i] for i in missing]
        fresh = body.encode(lacking, layers, run)
        packed = [[states_to_bytes(s, layer, exact=cache.exact) for s in fresh] for layer in layers]
        # Read back what was written, so that a miss gives what a later hit will give.
        back = [states_from_bytes(lacking, n, data) for n, data in zip(layers, packed, strict=True)]
        for k, i in enumerate(missing):
            found[i] = _merge_layers([states[k] for states in back])
            new.update(zip(keys[i], (data[k] for data in packed), strict=True))
    known = set(missing)
    used = [key for i, own in enumerate(keys) if i not in known for key in own]
    store.write(new, used)
    return [states for states in found if states is not None]


def _read_cached(
    store: Store, texts: Sequence[str], layers: Sequence[int], keys: Sequence[Sequence[bytes]]
) -> list[HiddenStates | None]:
    found: list[list[HiddenStates]] = [[] for _ in texts]
    for number, layer in enumerate(layers):
        with store.read_entries([own[number] for own in keys]) as entries:
            there = [(i, data) for i, data in enumerate(entries) if data is not None]
            states = states_from_bytes(
                [texts[i] for i, _ in there], layer, [data for _, data in there]
            )
            for (i, _), own in zip(there, states, strict=True):
                found[i].append(own)
    return [_merge_layers(own) if len(own) == len(layers) else None for own in found]


def _merge_layers(per_layer: Sequence[HiddenStates]) -> HiddenStates:
    """The states of several layers of one text as one."""
    first = per_layer[0]
    if len(per_layer) == 1:
        return first
    layers = {n: v for states in per_layer for n, v in states.layers.items()}
    return HiddenStates(
        first.text, first.token_ids, first.spans, first.special_tokens, layers, first.flags
    )


def _cache_key(origin: str, layer: int, text: str) -> bytes:
    content = f"{origin}\0{layer}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=20).digest()


_HEADER = struct.Struct("<IIHB?")  # pieces, dimensions, bytes of names, flags, compact


_FLAGS = ("truncated", "unknown_only")


_INT16_MAX = 32767


# Texts unpacked at once: few enough that they stay in the processor's cache meanwhile, and that
# their room is taken from what was freed, not cleared anew by the system.
_BATCH_SIZE = 16


EntryBytes: TypeAlias = bytes | memoryview


def states_to_bytes(states: HiddenStates, layer: int, *, exact: bool) -> bytes:
    """A text's pieces and its vectors at `layer`."""
    vectors = states.layers[layer]
    names = "\0".join(f"{at}\1{name}" for at, name in states.special_tokens.items()).encode()
    flags = sum(1 << bit for bit, flag in enumerate(_FLAGS) if flag in states.flags)
    head = _HEADER.pack(*vectors.shape, len(names), flags, not exact)
    places = states.token_ids.astype(np.int32).tobytes() + states.spans.astype(np.int32).tobytes()
    # Arrays come first and names last: everything read as numbers stays aligned to 4 bytes.
    return b"".join((head, places, *_encode_vectors(vectors, exact), names))


def states_from_bytes(
    texts: Sequence[str], layer: int, data: Sequence[EntryBytes]
) -> list[HiddenStates]:
    """The states of each text as written by `to_bytes`, all of them compact or all exact.

    They are copies, so `data` may go away.
    """
    found: list[HiddenStates] = []
    for start in range(0, len(texts), _BATCH_SIZE):
        some = slice(start, start + _BATCH_SIZE)
        found += _decode_batch(texts[some], layer, data[some])
    return found


def _decode_batch(
    texts: Sequence[str], layer: int, data: Sequence[EntryBytes]
) -> list[HiddenStates]:
    """Like parts of all texts are laid end to end, and so unpacked at once."""
    heads = [_HEADER.unpack_from(own) for own in data]
    counts = [head[0] for head in heads]
    _, dimensions, _, _, compact = heads[0]
    keys = _read_section(data, counts, 0, 4, np.int32).astype(np.int64)
    spans = _read_section(data, counts, 4, 8, np.int32).reshape(-1, 2)
    vectors = (
        _decode_compact(data, counts, dimensions)
        if compact
        else _decode_exact(data, counts, dimensions)
    )
    found = []
    stop = 0
    for text, own, (pieces, _, named, flags, _) in zip(texts, data, heads, strict=True):
        start, stop = stop, stop + pieces
        at = slice(start, stop)
        marks = _decode_special_tokens(bytes(own[len(own) - named :]))
        layers = {layer: vectors[at]}
        found.append(HiddenStates(text, keys[at], spans[at], marks, layers, _decode_flags(flags)))
    return found


def _read_section(
    data: Sequence[EntryBytes],
    counts: Sequence[int],
    first: int,
    width: int,
    kind: type[np.generic],
) -> Array:
    """A part of every entry; it lies `first` bytes a piece from its head and takes `width`."""
    parts = [
        own[_HEADER.size + first * n : _HEADER.size + (first + width) * n]
        for own, n in zip(data, counts, strict=True)
    ]
    return np.frombuffer(bytearray().join(parts), kind)


def _encode_vectors(vectors: Array, exact: bool) -> tuple[bytes, ...]:
    if exact:
        return (np.ascontiguousarray(vectors, dtype=np.float32).tobytes(),)
    scale = np.abs(vectors).max(1, initial=0.0).astype(np.float32) / np.float32(_INT16_MAX)
    steps = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    return scale.tobytes(), steps.tobytes()


def _decode_exact(data: Sequence[EntryBytes], counts: Sequence[int], dimensions: int) -> Array:
    return _read_section(data, counts, 12, 4 * dimensions, np.float32).reshape(-1, dimensions)


def _decode_compact(data: Sequence[EntryBytes], counts: Sequence[int], dimensions: int) -> Array:
    scale = _read_section(data, counts, 12, 4, np.float32)
    steps = _read_section(data, counts, 16, 2 * dimensions, np.int16).reshape(-1, dimensions)
    return steps * scale[:, None]


@lru_cache
def _decode_flags(bits: int) -> frozenset[str]:
    return frozenset(flag for bit, flag in enumerate(_FLAGS) if bits >> bit & 1)


@lru_cache(maxsize=4096)  # texts of one length have the same, and parsing them takes a while
def _decode_special_tokens(names: bytes) -> Mapping[int, str]:
    if not names:
        return {}
    pairs = (entry.split("\1", 1) for entry in names.decode().split("\0"))
    return {int(at): name for at, name in pairs}
