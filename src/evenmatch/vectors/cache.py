"""Vectors kept between runs: a text that has been through a model never goes again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from evenmatch.storage.folders import cache_dir
from evenmatch.storage.store import Store
from evenmatch.types import Cache, Run
from evenmatch.vectors.entries import from_bytes, to_bytes
from evenmatch.vectors.states import Body, States


def store_of(cache: Cache) -> Store:
    """The store behind a cache."""
    base = Path(cache.folder).expanduser() if cache.folder else cache_dir()
    return Store(base / "states", cache.most_bytes)


def fact(cache: Cache | None) -> tuple[str, ...]:
    """What a signature says about a cache: nothing where it changes nothing."""
    return () if cache is None or cache.exact else ("vectors compact",)


def encode(
    body: Body, texts: Sequence[str], layers: Sequence[int], run: Run, identity: str = ""
) -> list[States]:
    """Each text's states at `layers`, from the cache where it has them all.

    `identity` is the body's, where somebody who calls often has it: finding it reads the disk.
    """
    if run.cache is None or not texts:
        return body.encode(texts, layers, run)
    cache = run.cache
    store = store_of(cache)
    origin = f"{identity or body.identity()} {'exact' if cache.exact else 'compact'}"
    keys = [[_key(origin, layer, text) for layer in layers] for text in texts]
    found = _read(store, texts, layers, keys)
    missing = [i for i, states in enumerate(found) if states is None]
    new: dict[bytes, bytes] = {}
    if missing:
        lacking = [texts[i] for i in missing]
        fresh = body.encode(lacking, layers, run)
        packed = [[to_bytes(s, layer, exact=cache.exact) for s in fresh] for layer in layers]
        # Read back what was written, so that a miss gives what a later hit will give.
        back = [from_bytes(lacking, n, data) for n, data in zip(layers, packed, strict=True)]
        for k, i in enumerate(missing):
            found[i] = _joined([states[k] for states in back])
            new.update(zip(keys[i], (data[k] for data in packed), strict=True))
    known = set(missing)
    used = [key for i, own in enumerate(keys) if i not in known for key in own]
    store.write(new, used)
    return [states for states in found if states is not None]


def _read(
    store: Store, texts: Sequence[str], layers: Sequence[int], keys: Sequence[Sequence[bytes]]
) -> list[States | None]:
    found: list[list[States]] = [[] for _ in texts]
    for number, layer in enumerate(layers):
        with store.reading([own[number] for own in keys]) as entries:
            there = [(i, data) for i, data in enumerate(entries) if data is not None]
            states = from_bytes([texts[i] for i, _ in there], layer, [data for _, data in there])
            for (i, _), own in zip(there, states, strict=True):
                found[i].append(own)
    return [_joined(own) if len(own) == len(layers) else None for own in found]


def _joined(per_layer: Sequence[States]) -> States:
    """The states of several layers of one text as one."""
    first = per_layer[0]
    if len(per_layer) == 1:
        return first
    layers = {n: v for states in per_layer for n, v in states.layers.items()}
    return States(first.text, first.keys, first.spans, first.marks, layers, first.flags)


def _key(origin: str, layer: int, text: str) -> bytes:
    content = f"{origin}\0{layer}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=20).digest()
