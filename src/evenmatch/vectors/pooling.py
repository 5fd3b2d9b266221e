"""Pool the vectors of a model's tokens into vectors of units.

`embed_units` is the entry point. If the units are the model's own tokens, it selects their vectors.
For any other units, `pool_tokens` finds the tokens under each unit by character offsets and pools
them.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import numpy as np

from evenmatch.errors import InputError
from evenmatch.models.backbone import HiddenStates
from evenmatch.protocols import Weighting
from evenmatch.types import Array, Embedded, Units


def embed_units(
    units: Units,
    states: HiddenStates,
    vectors: Array,
    *,
    how: str,
    weights: Weighting,
    mass: Weighting,
) -> Embedded:
    """Embed units from the tokens of a model that encoded their text."""
    if not units.by_model:
        return pool_tokens(units, states, vectors, how, weights, mass)
    kept = _unit_positions(units, states)
    ids, vectors = states.token_ids[kept], vectors[kept]
    counts = weights(ids, vectors)
    if units.special_tokens and not _is_empty(states):
        # By id, not by position: "[SEP]" written in a text gets no weight either.
        special_ids = frozenset(map(ids.item, states.special_tokens))
        counts = counts * _text_token_table(special_ids).take(ids, mode="clip")
    return Embedded(units, vectors, counts, mass(ids, vectors), states.flags)


@lru_cache
def _text_token_table(special_ids: frozenset[int]) -> Array:
    """Return 0 at special token ids, and 1 at all other ids up to one above them."""
    table = np.ones(max(special_ids, default=0) + 2)
    table[list(special_ids)] = 0.0
    return table


def readable_units(units: Units, states: HiddenStates) -> Units:
    """Return the units as readable text, if splitting was left to the model."""
    if not units.by_model:
        return units
    at = np.arange(len(states.token_ids))[_unit_positions(units, states)].tolist()
    spans = tuple((int(states.spans[i][0]), int(states.spans[i][1])) for i in at)
    words = tuple(
        states.special_tokens.get(i) or units.text[a:b] for i, (a, b) in zip(at, spans, strict=True)
    )
    return Units(units.text, words, spans, tuple((i,) for i in range(len(words))))


def pool_tokens(
    units: Units,
    states: HiddenStates,
    vectors: Array,
    how: str,
    weights: Weighting,
    mass: Weighting,
) -> Embedded:
    """Pool the tokens under each unit, found by character offsets.

    A unit without encoded tokens (it is beyond the model's limit) keeps its place, with a zero
    vector, no weight and no mass.
    """
    at, sizes = _token_positions(units, np.asarray(states.spans))
    pooled = np.zeros((len(sizes), vectors.shape[1]), dtype=vectors.dtype)
    counts, masses = np.zeros(len(sizes)), np.zeros(len(sizes))
    full = np.flatnonzero(sizes)
    if full.size:
        starts = np.concatenate([[0], sizes[full].cumsum()[:-1]])
        reduced = np.maximum if how == "max" else np.add
        pooled[full] = reduced.reduceat(vectors[at], starts, axis=0)
        if how == "mean":
            pooled[full] /= sizes[full, None]
        # The weight of a unit is the mean weight of its tokens.
        for weighting, into in ((weights, counts), (mass, masses)):
            each = weighting(states.token_ids, vectors)[at]
            into[full] = np.add.reduceat(each, starts) / sizes[full]
    if units.weights:
        counts *= np.asarray(units.weights)
    return Embedded(units, pooled, counts, masses, states.flags | units.flags)


def _token_positions(units: Units, spans: Array) -> tuple[Array, Array]:
    """Return the positions of the tokens that overlap each unit, concatenated, and their counts."""
    real = np.flatnonzero(spans[:, 0] < spans[:, 1]) if len(spans) else np.zeros(0, np.int64)
    first, last = _word_ranges(units, spans[real])
    if first is not None and (first[1:] >= last[:-1]).all():
        return _contiguous_positions(units, first, last, real)
    starts, ends = spans[real].T
    words = [np.flatnonzero((starts < end) & (ends > begin)) for begin, end in units.spans]
    nothing = np.zeros(0, np.int64)
    # A token may overlap two words of one unit, and counts once.
    members = [np.unique(np.concatenate([nothing, *(words[i] for i in g)])) for g in units.groups]
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    return real[np.concatenate([nothing, *members])], sizes


def _contiguous_positions(
    units: Units, first: Array, last: Array, real: Array
) -> tuple[Array, Array]:
    """The same if no token overlaps two words: then every word is a range of tokens."""
    words = np.fromiter(chain.from_iterable(units.groups), dtype=np.int64)
    lengths = np.fromiter(map(len, units.groups), dtype=np.int64, count=len(units.groups))
    counts = (last - first)[words]
    ends = counts.cumsum()
    at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first[words] - ends + counts, counts)
    sums = np.concatenate([[0], ends])[lengths.cumsum()]
    return real[at], np.diff(sums, prepend=0)


def _word_ranges(units: Units, spans: Array) -> tuple[Array | None, Array]:
    """Return the first token of each word and the one after its last; None if not in order."""
    if not len(spans) or not units.spans:
        return np.zeros(len(units.spans), np.int64), np.zeros(len(units.spans), np.int64)
    starts, ends = spans.T
    begin, end = np.array(units.spans).T
    # A normalizer may reorder combining marks; then every word is compared with every token.
    if not ((np.diff(starts) >= 0).all() and (np.diff(ends) >= 0).all()):
        return None, ends
    first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(starts, end, "left")
    return first, np.maximum(first, last)


def _unit_positions(units: Units, states: HiddenStates) -> Array | slice:
    """Return the positions of the tokens that are units; a slice, if possible, copies nothing."""
    if units.closing or units.opening:
        return _special_token_slice(units, states)
    if units.special_tokens and not _is_empty(states):
        return slice(None)
    return _text_positions(states)


def _special_token_slice(units: Units, states: HiddenStates) -> slice:
    """Return the position of the special token that is the only unit; none if the text is empty.

    The opening token is the first token, the closing token the first after the text. Models that
    put no closing token after a text, such as most language models, have its last token instead.
    """
    if _is_empty(states):
        return slice(0)
    text_positions = (i for i in range(len(states.token_ids)) if i not in states.special_tokens)
    if units.closing:
        last = max(text_positions)
        return (
            slice(last + 1, last + 2)
            if last + 1 in states.special_tokens
            else slice(last, last + 1)
        )
    if 0 not in states.special_tokens:
        raise InputError(
            "this model puts no opening token before a text; name one that does, such as 'minilm'"
        )
    return slice(0, 1)


def _is_empty(states: HiddenStates) -> bool:
    """Whether a text has only special tokens; then it has no units."""
    return len(states.special_tokens) == len(states.token_ids)


def _text_positions(states: HiddenStates) -> Array | slice:
    """Return the positions of text tokens; as a slice, which copies nothing, if contiguous."""
    special, count = states.special_tokens, len(states.token_ids)
    start, stop = 0, count
    while start in special:
        start += 1
    while stop > start and stop - 1 in special:
        stop -= 1
    if stop - start + len(special) == count:
        return slice(start, stop)
    return np.array([i for i in range(count) if i not in special], dtype=np.int64)
