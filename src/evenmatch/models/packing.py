"""Texts into batches without padding, and long ones into pieces a model can take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


_CHUNK_SIZE = 4096


def equal_length_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indexes in batches of one length each, at most `batch_tokens` tokens a batch.

    No batch has padding, so no token is computed for nothing and no text is touched by its
    neighbours. Longest first: if memory runs out, it does so at once.

    >>> list(equal_length_batches([3, 5, 3, 3], 6))
    [[1], [0, 2], [3]]
    """
    return equal_size_batches([(length,) for length in lengths], batch_tokens)


def equal_size_batches(sizes: Sequence[tuple[int, ...]], batch_tokens: int) -> Iterator[list[int]]:
    """The same for what a model reads in several parts: equal in the length of each.

    >>> list(equal_size_batches([(3, 2), (9, 1), (3, 2), (2, 3)], 12))
    [[1], [0, 2], [3]]
    """
    by_size: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, size in enumerate(sizes):
        by_size[size].append(index)
    for size in sorted(by_size, reverse=True):
        most = max(1, batch_tokens // max(sum(size), 1))
        indexes = by_size[size]
        for start in range(0, len(indexes), most):
            yield indexes[start : start + most]


def packed_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indexes in batches of at most `batch_tokens` tokens, for texts that lie end to end in a row.

    Nothing is padded here either, and every batch but the last is nearly full. Longest first, so
    that those of one length lie side by side.

    >>> list(packed_batches([3, 5, 3, 4], 8))
    [[1], [3, 0], [2]]
    """
    batch: list[int] = []
    filled = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and filled + lengths[index] > batch_tokens:
            yield batch
            batch, filled = [], 0
        batch.append(index)
        filled += lengths[index]
    if batch:
        yield batch


def iter_chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Texts or pairs some thousands at a time, for work that needs a list and must not need all."""
    left = iter(items)
    while some := list(islice(left, _CHUNK_SIZE)):
        yield some


def sliding_windows(count: int, width: int) -> list[tuple[int, int]]:
    """Half-overlapping stretches of `width` that cover `count` items.

    >>> sliding_windows(10, 4)
    [(0, 4), (2, 6), (4, 8), (6, 10)]
    """
    if count <= width:
        return [(0, count)]
    step = max(1, width // 2)
    starts = [*range(0, count - width, step), count - width]
    return [(start, start + width) for start in starts]


def owning_windows(count: int, width: int) -> list[int]:
    """For each item the window in which it stands farthest from a cut edge.

    >>> owning_windows(6, 4)
    [0, 0, 0, 1, 1, 1]
    """
    owner, most = [0] * count, [-1] * count
    for number, (start, stop) in enumerate(sliding_windows(count, width)):
        for item in range(start, stop):
            before = item - start if start > 0 else count
            after = stop - 1 - item if stop < count else count
            if min(before, after) > most[item]:
                owner[item], most[item] = number, min(before, after)
    return owner
