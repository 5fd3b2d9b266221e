"""Chunks of pairs, so that memory use does not grow with the number of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from evenmatch.models.loading import torch_is_loaded, trim_memory
from evenmatch.types import Array, Pair

# The vectors of about 50,000 tokens are held at a time: enough that most text lengths fill a batch.
MAX_TEXTS = 2048
MAX_CHARACTERS = 200_000

# Cached texts fill no batches. Chunks of a quarter were read 10 % faster: memory is reused.
MAX_CACHED_CHARACTERS = 50_000

CHARACTERS_PER_TOKEN = 4

# Characters × characters, about 8 million similarities: few texts can form very many pairs.
MAX_AREA = 128_000_000


def chunk_pairs(
    pairs: Sequence[Pair], pad_to: int = 0, *, cached: bool = False
) -> Iterator[tuple[list[int], Collection[str]]]:
    """Yield chunks as the indexes of their pairs, each with the earlier texts to keep for reuse.

    Pairs with the same first reference come together. So when many systems are scored on one test
    set, each reference is embedded once, however large the set. Texts that are padded to `pad_to`
    tokens count as at least that long. With a cache, chunks are small until the first text is
    missing in it and the model is loaded.
    """
    min_size = pad_to * CHARACTERS_PER_TOKEN
    remaining = Counter(text for pair in pairs for text in texts_of_pair(pair))
    reused: list[str] = []
    for number, chunk in enumerate(_chunk_indexes(pairs, min_size, cached)):
        if number and torch_is_loaded():
            # A model leaves the heap fragmented; the next chunk's arrays would be added to that.
            trim_memory()
        yield chunk, set(reused)
        seen = [text for i in chunk for text in texts_of_pair(pairs[i])]
        remaining.subtract(seen)
        again = (text for text in dict.fromkeys([*reused, *seen]) if remaining[text] > 0)
        reused = _take_one_chunk(again, min_size)


def texts_of_pair(pair: Pair) -> tuple[str, ...]:
    """The candidate and the references of a pair."""
    return (pair.candidate, *pair.references)


def copy_if_view(vectors: Array) -> Array:
    """Copy vectors that are a view: a view would keep the whole array of its chunk in memory."""
    is_view = isinstance(vectors, np.ndarray) and vectors.base is not None
    return vectors.copy() if is_view else vectors


def _chunk_indexes(pairs: Sequence[Pair], min_size: int, cached: bool) -> Iterator[list[int]]:
    chunk: list[int] = []
    held: set[str] = set()
    size = area = 0
    max_size = _max_characters(cached)
    for index in _order_by_reference(pairs):
        own = set(texts_of_pair(pairs[index]))
        size += sum(_padded_size(text, min_size) for text in own - held)
        area += _similarity_area(pairs[index], min_size)
        count = len(held) + len(own - held)
        if chunk and (count > MAX_TEXTS or size > max_size or area > MAX_AREA):
            yield chunk
            max_size = _max_characters(cached)
            chunk, held = [], set()
            size = sum(_padded_size(text, min_size) for text in own)
            area = _similarity_area(pairs[index], min_size)
        chunk.append(index)
        held |= own
    if chunk:
        yield chunk


def _max_characters(cached: bool) -> int:
    return MAX_CACHED_CHARACTERS if cached and not torch_is_loaded() else MAX_CHARACTERS


def _padded_size(text: str, min_size: int) -> int:
    return max(len(text), min_size)


def _similarity_area(pair: Pair, min_size: int) -> int:
    return sum(
        _padded_size(pair.candidate, min_size) * _padded_size(r, min_size) for r in pair.references
    )


def _order_by_reference(pairs: Sequence[Pair]) -> list[int]:
    """Indexes of the pairs, those with the same first reference next to each other."""
    first: dict[str, int] = {}
    for index, pair in enumerate(pairs):
        first.setdefault(pair.references[0], index)
    return sorted(range(len(pairs)), key=lambda i: first[pairs[i].references[0]])


def _take_one_chunk(texts: Iterable[str], min_size: int) -> list[str]:
    """The first texts, as many as fit in one chunk."""
    fitting: list[str] = []
    size = 0
    for text in islice(texts, MAX_TEXTS):
        size += _padded_size(text, min_size)
        if size > MAX_CHARACTERS:
            break
        fitting.append(text)
    return fitting
