"""Vectors of pieces into vectors of units."""

from __future__ import annotations

from itertools import chain

import numpy as np

from evenmatch.types import Array, Embedded, Units, Weighting


def pool(
    units: Units,
    spans: Array,
    keys: Array,
    vectors: Array,
    how: str,
    weights: Weighting,
    mass: Weighting,
    flags: frozenset[str],
) -> Embedded:
    """Pool the pieces under each unit, found by character offsets.

    A unit none of whose pieces were encoded (it lies beyond the model's limit) keeps its place
    with a zero vector, no weight and no mass.
    """
    at, sizes = _members(units, np.asarray(spans))
    pooled = np.zeros((len(sizes), vectors.shape[1]), dtype=vectors.dtype)
    counts, masses = np.zeros(len(sizes)), np.zeros(len(sizes))
    full = np.flatnonzero(sizes)
    if full.size:
        starts = np.concatenate([[0], sizes[full].cumsum()[:-1]])
        reduced = np.maximum if how == "max" else np.add
        pooled[full] = reduced.reduceat(vectors[at], starts, axis=0)
        if how == "mean":
            pooled[full] /= sizes[full, None]
        # A unit of several pieces is as rare as they are on average.
        for weighting, into in ((weights, counts), (mass, masses)):
            each = weighting(keys, vectors)[at]
            into[full] = np.add.reduceat(each, starts) / sizes[full]
    if units.weights:
        counts *= np.asarray(units.weights)
    return Embedded(units, pooled, counts, masses, flags | units.flags)


def _members(units: Units, spans: Array) -> tuple[Array, Array]:
    """The positions of the pieces that overlap a word of each unit, in a row, and their counts."""
    real = np.flatnonzero(spans[:, 0] < spans[:, 1]) if len(spans) else np.zeros(0, np.int64)
    first, last = _overlapping(units, spans[real])
    if first is not None and (first[1:] >= last[:-1]).all():
        return _ranges(units, first, last, real)
    words = [np.flatnonzero(_touched(units, spans[real], i)) for i in range(len(units.spans))]
    nothing = np.zeros(0, np.int64)
    # A piece may lie in two words of one unit, and counts once.
    members = [np.unique(np.concatenate([nothing, *(words[i] for i in g)])) for g in units.groups]
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    return real[np.concatenate([nothing, *members])], sizes


def _ranges(units: Units, first: Array, last: Array, real: Array) -> tuple[Array, Array]:
    """The same where no piece lies in two words: every word is a range of pieces of its own."""
    words = np.fromiter(chain.from_iterable(units.groups), dtype=np.int64)
    lengths = np.fromiter(map(len, units.groups), dtype=np.int64, count=len(units.groups))
    counts = (last - first)[words]
    ends = counts.cumsum()
    at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first[words] - ends + counts, counts)
    sums = np.concatenate([[0], ends])[lengths.cumsum()]
    return real[at], np.diff(sums, prepend=0)


def _overlapping(units: Units, spans: Array) -> tuple[Array | None, Array]:
    """The first piece of each word and the one after its last, where pieces are in order."""
    if not len(spans) or not units.spans:
        return np.zeros(len(units.spans), np.int64), np.zeros(len(units.spans), np.int64)
    starts, ends = spans.T
    begin, end = np.array(units.spans).T
    # A normalizer may move marks about; then every word is compared with every piece.
    if not ((np.diff(starts) >= 0).all() and (np.diff(ends) >= 0).all()):
        return None, ends
    first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(starts, end, "left")
    return first, np.maximum(first, last)


def _touched(units: Units, spans: Array, word: int) -> Array:
    begin, end = units.spans[word]
    return (spans[:, 0] < end) & (spans[:, 1] > begin)
