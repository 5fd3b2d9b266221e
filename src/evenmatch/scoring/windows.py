"""Pairs in windows, so that memory stays the same however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from evenmatch.types import Array, Pair
from evenmatch.vectors.memory import give_back_memory, model_has_run

# About 50,000 pieces are held as vectors at a time: large enough that most lengths fill a batch.
MOST_TEXTS = 2048
MOST_CHARACTERS = 200_000
# What a cache holds fills no batches. A quarter was read a tenth faster: its room is used again.
MOST_CHARACTERS_READ = 50_000
CHARACTERS_PER_PIECE = 4
# Characters times characters: about 8 million similarities. Few texts can make very many pairs.
MOST_AREA = 128_000_000


def windows(
    pairs: Sequence[Pair], pad_to: int = 0, *, cached: bool = False
) -> Iterator[tuple[list[int], Collection[str]]]:
    """Indexes of pairs in windows, each with texts of earlier windows worth keeping.

    Pairs with the same first reference are brought together, as when many systems are scored on
    one test set: then that reference is embedded once, however large the set. Where texts are
    padded to `pad_to` pieces, none counts as shorter than that. With a cache windows are small
    until the first text is missing in it and the model is called for.
    """
    least = pad_to * CHARACTERS_PER_PIECE
    later = Counter(text for pair in pairs for text in texts(pair))
    kept: list[str] = []
    for number, window in enumerate(_cut(pairs, least, cached)):
        if number and model_has_run():
            # A model leaves holes, and the next window's arrays would come on top of them.
            give_back_memory()
        yield window, set(kept)
        seen = [text for i in window for text in texts(pairs[i])]
        later.subtract(seen)
        kept = _fitting((t for t in dict.fromkeys([*kept, *seen]) if later[t] > 0), least)


def alone(vectors: Array) -> Array:
    """Vectors to keep: a part of a window's array would keep the whole of it in memory."""
    part = isinstance(vectors, np.ndarray) and vectors.base is not None
    return vectors.copy() if part else vectors


def _cut(pairs: Sequence[Pair], least: int, cached: bool) -> Iterator[list[int]]:
    window: list[int] = []
    held: set[str] = set()
    size = area = 0
    most = _most(cached)
    for index in _by_reference(pairs):
        own = set(texts(pairs[index]))
        size += sum(_size(text, least) for text in own - held)
        area += _area(pairs[index], least)
        count = len(held) + len(own - held)
        if window and (count > MOST_TEXTS or size > most or area > MOST_AREA):
            yield window
            most = _most(cached)
            window, held = [], set()
            size = sum(_size(text, least) for text in own)
            area = _area(pairs[index], least)
        window.append(index)
        held |= own
    if window:
        yield window


def _most(cached: bool) -> int:
    return MOST_CHARACTERS_READ if cached and not model_has_run() else MOST_CHARACTERS


def texts(pair: Pair) -> tuple[str, ...]:
    """Every text of a pair that an alignment looks at."""
    return (pair.candidate, *pair.references)


def _size(text: str, least: int) -> int:
    return max(len(text), least)


def _area(pair: Pair, least: int) -> int:
    return sum(_size(pair.candidate, least) * _size(r, least) for r in pair.references)


def _by_reference(pairs: Sequence[Pair]) -> list[int]:
    first: dict[str, int] = {}
    for index, pair in enumerate(pairs):
        first.setdefault(pair.references[0], index)
    return sorted(range(len(pairs)), key=lambda i: first[pairs[i].references[0]])


def _fitting(some: Iterable[str], least: int) -> list[str]:
    """The first of these texts, as many as one window holds."""
    fitting: list[str] = []
    size = 0
    for text in islice(some, MOST_TEXTS):
        size += _size(text, least)
        if size > MOST_CHARACTERS:
            break
        fitting.append(text)
    return fitting
