"""Vectors of pieces into vectors of units."""

from __future__ import annotations

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
    members = _members(units, np.asarray(spans))
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    pooled = np.zeros((len(members), vectors.shape[1]), dtype=vectors.dtype)
    counts, masses = np.zeros(len(members)), np.zeros(len(members))
    full = np.flatnonzero(sizes)
    if full.size:
        at = np.concatenate([members[i] for i in full])
        starts = np.concatenate([[0], sizes[full].cumsum()[:-1]])
        reduced = np.maximum if how == "max" else np.add
        pooled[full] = reduced.reduceat(vectors[at], starts, axis=0)
        if how == "mean":
            pooled[full] /= sizes[full, None]
        # A unit of several pieces is as rare as they are on average.
        counts[full] = np.add.reduceat(weights(keys[at], vectors[at]), starts) / sizes[full]
        masses[full] = np.add.reduceat(mass(keys[at], vectors[at]), starts) / sizes[full]
    return Embedded(units, pooled, counts, masses, flags)


def _members(units: Units, spans: Array) -> list[Array]:
    """For each unit the positions of the pieces that overlap one of its words."""
    real = np.flatnonzero(spans[:, 0] < spans[:, 1]) if len(spans) else np.zeros(0, np.int64)
    words = _overlapping(units, spans[real], real)
    nothing = np.zeros(0, np.int64)
    return [
        words[group[0]]
        if len(group) == 1
        else np.unique(np.concatenate([nothing, *(words[i] for i in group)]))
        for group in units.groups
    ]


def _overlapping(units: Units, spans: Array, positions: Array) -> list[Array]:
    if not len(spans) or not units.spans:
        return [positions[:0]] * len(units.spans)
    starts, ends = spans.T
    begin, end = np.array(units.spans).T
    if (np.diff(starts) >= 0).all() and (np.diff(ends) >= 0).all():
        first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(starts, end, "left")
        return [positions[a:b] for a, b in zip(first, last, strict=True)]
    # A normalizer may move marks about; then every word is compared with every piece.
    return [positions[(starts < b) & (ends > a)] for a, b in units.spans]
