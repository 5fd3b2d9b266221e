"""Pairs in windows, so that memory stays the same however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from evenmatch.types import Pair

# About 100,000 pieces are held as vectors at a time: large enough that most lengths fill a batch.
MOST_TEXTS = 4096
MOST_CHARACTERS = 400_000


def windows(pairs: Sequence[Pair]) -> Iterator[tuple[list[int], Collection[str]]]:
    """Indexes of pairs in windows, each with texts of earlier windows worth keeping.

    Pairs with the same first reference are brought together, as when many systems are scored on
    one test set: then that reference is embedded once, however large the set.
    """
    later = Counter(text for pair in pairs for text in texts(pair))
    window: list[int] = []
    held: set[str] = set()
    size = 0
    for index in _by_reference(pairs):
        new = set(texts(pairs[index])) - held
        if window and (
            len(held) + len(new) > MOST_TEXTS or size + sum(map(len, new)) > MOST_CHARACTERS
        ):
            yield window, _again(later)
            later.subtract(text for i in window for text in texts(pairs[i]))
            window, held, size = [], set(), 0
            new = set(texts(pairs[index]))
        window.append(index)
        held |= new
        size += sum(map(len, new))
    if window:
        yield window, _again(later)


def texts(pair: Pair) -> tuple[str, ...]:
    """Every text of a pair that an alignment looks at."""
    return (pair.candidate, *pair.references)


def _by_reference(pairs: Sequence[Pair]) -> list[int]:
    first: dict[str, int] = {}
    for index, pair in enumerate(pairs):
        first.setdefault(pair.references[0], index)
    return sorted(range(len(pairs)), key=lambda i: first[pairs[i].references[0]])


def _again(later: Counter[str]) -> Collection[str]:
    """Texts still to come more than once, as many as one window holds."""
    return set(islice((text for text, count in later.items() if count > 1), MOST_TEXTS))
