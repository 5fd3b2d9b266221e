"""Group texts into batches without padding, and split long ones into overlapping windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_CHUNK_SIZE = 4096


def equal_length_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield batches of indexes of one length each, with at most `batch_tokens` tokens per batch.

    A batch has no padding, so no computation is wasted and no text is affected by its neighbours.
    The longest come first: if memory runs out, it does so at once.

    >>> list(equal_length_batches([3, 5, 3, 3], 6))
    [[1], [0, 2], [3]]
    """
    return equal_size_batches([(length,) for length in lengths], batch_tokens)


def equal_size_batches(sizes: Sequence[tuple[int, ...]], batch_tokens: int) -> Iterator[list[int]]:
    """The same for inputs of several parts: each part has one length throughout a batch.

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
    """Yield batches of indexes with at most `batch_tokens` tokens, for texts packed into one array.

    Nothing is padded here either, and every batch but the last is nearly full. The longest come
    first, so that texts of one length are adjacent.

    >>> list(packed_batches([3, 5, 3, 4], 8))
    [[1], [3, 0], [2]]
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and tokens + lengths[index] > batch_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def iter_chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield lists of a few thousand items, for work that needs lists but not all items at once."""
    remaining = iter(items)
    while chunk := list(islice(remaining, _CHUNK_SIZE)):
        yield chunk


def sliding_windows(count: int, width: int) -> list[tuple[int, int]]:
    """Return windows of `width` items that cover `count` items and overlap by half.

    >>> sliding_windows(10, 4)
    [(0, 4), (2, 6), (4, 8), (6, 10)]
    """
    if count <= width:
        return [(0, count)]
    step = max(1, width // 2)
    starts = [*range(0, count - width, step), count - width]
    return [(start, start + width) for start in starts]


def owning_windows(count: int, width: int) -> list[int]:
    """Return for each item the window in which it is farthest from a cut edge.

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
