"""Cache hidden states on disk, so that a text goes through a model only once.

`encode_cached` is the entry point. An entry of the cache holds one text's hidden states at one
layer, in one of two formats:

- Compact: each vector as 16-bit integers with one scale. Half-precision floats take the same space
  but change a BERTScore by up to 1.2e-5; this changes it by about 3e-6 at most, because the step is
  the same for all components of a vector. It also keeps the vector's length, which F_CONT needs.
- Exact: single-precision floats.

After a header an entry has, for all tokens in turn: ids (4 bytes per token), spans (8), and in the
compact format scales (4) and integers (2 per dimension), in the exact format floats (4 per
dimension). The names of the special tokens come last.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from evenmatch.files import cache_dir
from evenmatch.models.backbone import HiddenStates
from evenmatch.store import Store, entry_keys
from evenmatch.types import Array, Cache

EntryBytes: TypeAlias = bytes | memoryview

_HEADER = struct.Struct("<IIHB?")  # tokens, dimensions, bytes of names, flags, compact
_FLAGS = ("truncated", "unknown_only")
_INT16_MAX = 32767

# Texts decoded at once: few enough to stay in the CPU's cache, and to reuse freed memory instead of
# asking the system for new pages.
_BATCH_SIZE = 16


def embedding_store(cache: Cache) -> Store:
    """Return the store of a cache."""
    base = Path(cache.folder).expanduser() if cache.folder else cache_dir()
    return Store(base / "states", cache.max_bytes)


def encode_cached(
    identity: str,
    texts: Sequence[str],
    layers: Sequence[int],
    cache: Cache,
    encode: Callable[[Sequence[str], Sequence[int]], list[HiddenStates]],
) -> list[HiddenStates]:
    """Return each text's hidden states at `layers`, from the cache if it has all of them.

    `identity` names everything the hidden states depend on besides the text and the layer.
    `encode` computes the hidden states of the texts that are missing.
    """
    store = embedding_store(cache)
    origin = f"{identity} {'exact' if cache.exact else 'compact'}"
    keys = [entry_keys((origin, layer), texts) for layer in layers]
    found: list[dict[str, HiddenStates]] = []  # by layer
    for own, layer in zip(keys, layers, strict=True):
        with store.read_entries(own) as entries:
            present = {text: data for text, data in zip(texts, entries, strict=True) if data}
            states = states_from_bytes(list(present), layer, list(present.values()))
            found.append(dict(zip(present, states, strict=True)))
    missing = [text for text in dict.fromkeys(texts) if any(text not in f for f in found)]
    absent = set(missing)
    hits = [k for own in keys for k, text in zip(own, texts, strict=True) if text not in absent]
    fresh = encode(missing, layers) if missing else []
    new: dict[bytes, bytes] = {}
    for own, layer, states_by_text in zip(keys, layers, found, strict=True):
        packed = [states_to_bytes(states, layer, exact=cache.exact) for states in fresh]
        key_of = dict(zip(texts, own, strict=True)) if missing else {}
        new.update(zip((key_of[text] for text in missing), packed, strict=True))
        # Decode what was just encoded, so that a miss gives the same as a later hit.
        decoded = states_from_bytes(missing, layer, packed)
        states_by_text.update(zip(missing, decoded, strict=True))
    store.write(new, hits)
    return [_merge_layers([states[text] for states in found]) for text in texts]


def _merge_layers(per_layer: Sequence[HiddenStates]) -> HiddenStates:
    """Merge the hidden states of one text at several layers into one object."""
    if len(per_layer) == 1:
        return per_layer[0]
    layers = {n: vectors for states in per_layer for n, vectors in states.layers.items()}
    return dataclasses.replace(per_layer[0], layers=layers)


def states_to_bytes(states: HiddenStates, layer: int, *, exact: bool) -> bytes:
    """Encode a text's tokens and its vectors at `layer`."""
    vectors = states.layers[layer]
    names = "\0".join(f"{at}\1{name}" for at, name in states.special_tokens.items()).encode()
    flags = sum(1 << bit for bit, flag in enumerate(_FLAGS) if flag in states.flags)
    head = _HEADER.pack(*vectors.shape, len(names), flags, not exact)
    tokens = states.token_ids.astype(np.int32).tobytes() + states.spans.astype(np.int32).tobytes()
    if exact:
        numbers = np.asarray(vectors, dtype=np.float32).tobytes()
    else:
        scale = np.abs(vectors).max(1, initial=0.0).astype(np.float32) / np.float32(_INT16_MAX)
        steps = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
        numbers = scale.tobytes() + steps.tobytes()
    # Arrays come first and names last, so that all numbers stay aligned to 4 bytes.
    return b"".join((head, tokens, numbers, names))


def states_from_bytes(
    texts: Sequence[str], layer: int, data: Sequence[EntryBytes]
) -> list[HiddenStates]:
    """Decode the entries of several texts from `states_to_bytes`, all compact or all exact.

    The result holds copies, so `data` may be released.
    """
    decoded: list[HiddenStates] = []
    for start in range(0, len(texts), _BATCH_SIZE):
        batch = slice(start, start + _BATCH_SIZE)
        decoded += _decode_batch(texts[batch], layer, data[batch])
    return decoded


def _decode_batch(
    texts: Sequence[str], layer: int, data: Sequence[EntryBytes]
) -> list[HiddenStates]:
    """Decode several entries; the same section of all of them is read at once."""
    heads = [_HEADER.unpack_from(entry) for entry in data]
    counts = [head[0] for head in heads]
    _, dimensions, _, _, compact = heads[0]
    ids = _read_section(data, counts, 0, 4, np.int32).astype(np.int64)
    spans = _read_section(data, counts, 4, 12, np.int32).reshape(-1, 2)
    if compact:
        scale = _read_section(data, counts, 12, 16, np.float32)
        steps = _read_section(data, counts, 16, 16 + 2 * dimensions, np.int16)
        vectors = steps.reshape(-1, dimensions) * scale[:, None]
    else:
        vectors = _read_section(data, counts, 12, 12 + 4 * dimensions, np.float32)
        vectors = vectors.reshape(-1, dimensions)
    decoded = []
    stop = 0
    for text, entry, (tokens, _, name_bytes, bits, _) in zip(texts, data, heads, strict=True):
        start, stop = stop, stop + tokens
        special = _decode_special_tokens(bytes(entry[len(entry) - name_bytes :]))
        layers = {layer: vectors[start:stop]}
        flags = _decode_flags(bits)
        decoded.append(
            HiddenStates(text, ids[start:stop], spans[start:stop], special, layers, flags)
        )
    return decoded


def _read_section(
    data: Sequence[EntryBytes],
    counts: Sequence[int],
    first: int,
    stop: int,
    dtype: type[np.generic],
) -> Array:
    """Read bytes `first` to `stop` per token of every entry, counted from the end of its header."""
    size = _HEADER.size
    parts = [
        entry[size + first * n : size + stop * n] for entry, n in zip(data, counts, strict=True)
    ]
    return np.frombuffer(bytearray().join(parts), dtype)


@lru_cache
def _decode_flags(bits: int) -> frozenset[str]:
    return frozenset(flag for bit, flag in enumerate(_FLAGS) if bits >> bit & 1)


@lru_cache(maxsize=4096)  # texts of one length have the same ones, and parsing takes a while
def _decode_special_tokens(names: bytes) -> Mapping[int, str]:
    if not names:
        return {}
    pairs = (entry.split("\1", 1) for entry in names.decode().split("\0"))
    return {int(at): name for at, name in pairs}
