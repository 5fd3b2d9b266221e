"""Pairs in windows, so that memory stays the same however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from evenmatch.models.loading import torch_is_loaded, trim_memory
from evenmatch.types import Array, Pair

# About 50,000 pieces are held as vectors at a time: large enough that most lengths fill a batch.
MAX_TEXTS = 2048


MAX_CHARACTERS = 200_000


# What a cache holds fills no batches. A quarter was read a tenth faster: its room is used again.
MAX_CACHED_CHARACTERS = 50_000


CHARACTERS_PER_PIECE = 4


# Characters times characters: about 8 million similarities. Few texts can make very many pairs.
MAX_AREA = 128_000_000


def chunk_pairs(
    pairs: Sequence[Pair], pad_to: int = 0, *, cached: bool = False
) -> Iterator[tuple[list[int], Collection[str]]]:
    """Indexes of pairs in windows, each with texts of earlier windows worth keeping.

    Pairs with the same first reference are brought together, as when many systems are scored on
    one test set: then that reference is embedded once, however large the set. Where texts are
    padded to `pad_to` pieces, none counts as shorter than that. With a cache windows are small
    until the first text is missing in it and the model is called for.
    """
    least = pad_to * CHARACTERS_PER_PIECE
    later = Counter(text for pair in pairs for text in texts_of_pair(pair))
    kept: list[str] = []
    for number, window in enumerate(_chunk_indexes(pairs, least, cached)):
        if number and torch_is_loaded():
            # A model leaves holes, and the next window's arrays would come on top of them.
            trim_memory()
        yield window, set(kept)
        seen = [text for i in window for text in texts_of_pair(pairs[i])]
        later.subtract(seen)
        kept = _take_one_chunk((t for t in dict.fromkeys([*kept, *seen]) if later[t] > 0), least)


def copy_if_view(vectors: Array) -> Array:
    """Vectors to keep: a part of a window's array would keep the whole of it in memory."""
    part = isinstance(vectors, np.ndarray) and vectors.base is not None
    return vectors.copy() if part else vectors


def _chunk_indexes(pairs: Sequence[Pair], least: int, cached: bool) -> Iterator[list[int]]:
    window: list[int] = []
    held: set[str] = set()
    size = area = 0
    most = _max_characters(cached)
    for index in _order_by_reference(pairs):
        own = set(texts_of_pair(pairs[index]))
        size += sum(_padded_size(text, least) for text in own - held)
        area += _similarity_area(pairs[index], least)
        count = len(held) + len(own - held)
        if window and (count > MAX_TEXTS or size > most or area > MAX_AREA):
            yield window
            most = _max_characters(cached)
            window, held = [], set()
            size = sum(_padded_size(text, least) for text in own)
            area = _similarity_area(pairs[index], least)
        window.append(index)
        held |= own
    if window:
        yield window


def _max_characters(cached: bool) -> int:
    return MAX_CACHED_CHARACTERS if cached and not torch_is_loaded() else MAX_CHARACTERS


def texts_of_pair(pair: Pair) -> tuple[str, ...]:
    """Every text of a pair that an alignment looks at."""
    return (pair.candidate, *pair.references)


def _padded_size(text: str, least: int) -> int:
    return max(len(text), least)


def _similarity_area(pair: Pair, least: int) -> int:
    return sum(
        _padded_size(pair.candidate, least) * _padded_size(r, least) for r in pair.references
    )


def _order_by_reference(pairs: Sequence[Pair]) -> list[int]:
    first: dict[str, int] = {}
    for index, pair in enumerate(pairs):
        first.setdefault(pair.references[0], index)
    return sorted(range(len(pairs)), key=lambda i: first[pairs[i].references[0]])


def _take_one_chunk(some: Iterable[str], least: int) -> list[str]:
    """The first of these texts, as many as one window holds."""
    fitting: list[str] = []
    size = 0
    for text in islice(some, MAX_TEXTS):
        size += _padded_size(text, least)
        if size > MAX_CHARACTERS:
            break
        fitting.append(text)
    return fitting
