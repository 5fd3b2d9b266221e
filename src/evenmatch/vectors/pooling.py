"""Vectors of pieces into vectors of units."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.hidden_states import HiddenStates
from evenmatch.protocols import Weighting
from evenmatch.types import Array, Embedded, Units


def pool_tokens(
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
    at, sizes = _token_positions(units, np.asarray(spans))
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


def _token_positions(units: Units, spans: Array) -> tuple[Array, Array]:
    """The positions of the pieces that overlap a word of each unit, in a row, and their counts."""
    real = np.flatnonzero(spans[:, 0] < spans[:, 1]) if len(spans) else np.zeros(0, np.int64)
    first, last = _word_ranges(units, spans[real])
    if first is not None and (first[1:] >= last[:-1]).all():
        return _contiguous_positions(units, first, last, real)
    words = [np.flatnonzero(_overlaps_word(units, spans[real], i)) for i in range(len(units.spans))]
    nothing = np.zeros(0, np.int64)
    # A piece may lie in two words of one unit, and counts once.
    members = [np.unique(np.concatenate([nothing, *(words[i] for i in g)])) for g in units.groups]
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    return real[np.concatenate([nothing, *members])], sizes


def _contiguous_positions(
    units: Units, first: Array, last: Array, real: Array
) -> tuple[Array, Array]:
    """The same where no piece lies in two words: every word is a range of pieces of its own."""
    words = np.fromiter(chain.from_iterable(units.groups), dtype=np.int64)
    lengths = np.fromiter(map(len, units.groups), dtype=np.int64, count=len(units.groups))
    counts = (last - first)[words]
    ends = counts.cumsum()
    at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first[words] - ends + counts, counts)
    sums = np.concatenate([[0], ends])[lengths.cumsum()]
    return real[at], np.diff(sums, prepend=0)


def _word_ranges(units: Units, spans: Array) -> tuple[Array | None, Array]:
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


def _overlaps_word(units: Units, spans: Array, word: int) -> Array:
    begin, end = units.spans[word]
    return (spans[:, 0] < end) & (spans[:, 1] > begin)


def embed_units(
    units: Units,
    states: HiddenStates,
    vectors: Array,
    *,
    how: str,
    weights: Weighting,
    mass: Weighting,
) -> Embedded:
    """Units with vectors, from the pieces of the model that saw their text."""
    if not units.by_model:
        return pool_tokens(
            units, states.spans, states.token_ids, vectors, how, weights, mass, states.flags
        )
    keys = states.token_ids
    marked = units.special_tokens and not _is_empty(states)
    alone = units.closing or units.opening
    if alone or (states.special_tokens and not marked):
        keep = _special_token_slice(units, states) if alone else _text_positions(states)
        keys, vectors = keys[keep], vectors[keep]
    counts = weights(keys, vectors)
    if marked and states.special_tokens:
        # By name, not by place: someone who writes "[SEP]" in a text gains no weight by it either.
        for mark in {int(keys[at]) for at in states.special_tokens}:
            counts = counts * (keys != mark)
    return Embedded(units, vectors, counts, mass(keys, vectors), states.flags)


def readable_units(units: Units, states: HiddenStates) -> Units:
    """The units themselves, readable, where the cutting was left to the model."""
    if not units.by_model:
        return units
    at = _unit_positions(units, states)
    spans = tuple((int(states.spans[i][0]), int(states.spans[i][1])) for i in at)
    words = tuple(
        states.special_tokens.get(i) or units.text[a:b] for i, (a, b) in zip(at, spans, strict=True)
    )
    return Units(units.text, words, spans, tuple((i,) for i in range(len(words))))


def _unit_positions(units: Units, states: HiddenStates) -> Sequence[int]:
    """The positions of the pieces that are units."""
    every = range(len(states.token_ids))
    if units.closing or units.opening:
        return every[_special_token_slice(units, states)]
    if units.special_tokens and not _is_empty(states):
        return every
    return [i for i in every if i not in states.special_tokens]


def _special_token_slice(units: Units, states: HiddenStates) -> slice:
    """Where the mark that is the only unit stands; nowhere if there is no text.

    The opening token is the first of all, the closing token the first after the text.
    """
    if _is_empty(states):
        return slice(0)
    pieces = (i for i in range(len(states.token_ids)) if i not in states.special_tokens)
    at = 0 if units.opening else 1 + max(pieces)
    if at not in states.special_tokens:
        where = "opening token before" if units.opening else "closing token after"
        raise InputError(f"this model puts no {where} a text; name one that does, such as 'minilm'")
    return slice(at, at + 1)


def _is_empty(states: HiddenStates) -> bool:
    """Whether a text has no piece but the marks around it; then it has no units at all."""
    return len(states.special_tokens) == len(states.token_ids)


def _text_positions(states: HiddenStates) -> Array | slice:
    """The positions that are not marks; a slice, which copies nothing, where they are in a row."""
    n, marks = len(states.token_ids), states.special_tokens
    start = 0
    while start < n and start in marks:
        start += 1
    stop = n
    while stop > start and stop - 1 in marks:
        stop -= 1
    if stop - start + len(marks) == n:
        return slice(start, stop)
    return np.array([i for i in range(n) if i not in marks], dtype=np.int64)
