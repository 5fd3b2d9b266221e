"""One side of a MoverScore: a text's states into weighed runs of pieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from evenmatch.types import Array, Embedded, Run, Units, Weighting
from evenmatch.vectors import states
from evenmatch.vectors.pretrained import Pretrained
from evenmatch.vectors.states import States


@dataclass(frozen=True)
class MoverSide:
    """How texts of one side are looked at; `read` are the layers, lowest first."""

    body: Pretrained
    read: tuple[int, ...]
    n_gram: int
    weighting: Weighting
    stop_words: tuple[str, ...]
    dropped: Array = field(compare=False)  # by piece; follows from the model and the stop words

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        """Encode each text once and look at it, with its runs as units that can be read."""
        found = self.body.encode([units.text for units in batch], self.read, Run())
        looks = [self.look(u, s, self.depth()) for u, s in zip(batch, found, strict=True)]
        return [
            dataclasses.replace(seen, units=_shown(s, self._runs(s, self._joined(s))[0]))
            if seen.units.by_model
            else seen
            for seen, s in zip(looks, found, strict=True)
        ]

    def depth(self) -> int:
        """The highest layer read."""
        return self.read[-1]

    def depths(self) -> tuple[int, ...]:
        """All layers read."""
        return self.read

    def look(self, units: Units, found: States, depth: int) -> Embedded:
        """The weighed runs of one text."""
        vectors = self._joined(found)
        if not units.by_model:
            weigh = self.weighting
            return states.view(units, found, vectors, how="mean", weights=weigh, mass=weigh)
        runs, counts, weights = self._runs(found, vectors)
        return Embedded(units, _pooled(vectors, weights, runs, counts), counts, counts, found.flags)

    def _joined(self, found: States) -> Array:
        if len(self.read) == 1:
            return found.layers[self.read[0]]
        stack = np.stack([found.layers[layer] for layer in self.read]).astype(np.float64)
        stack /= np.linalg.norm(stack, axis=-1, keepdims=True).clip(min=1e-30)
        return np.concatenate([stack.min(0), stack.mean(0), stack.max(0)], axis=-1)

    def _runs(self, found: States, vectors: Array) -> tuple[Array, Array, Array]:
        """The positions of each run's pieces, the weight of each run, and that of every piece."""
        kept, weights = self._weighed(found, vectors)
        if self.n_gram == 1 and weights.any():  # a piece is a run, and what weighs nothing is none
            heavy = np.flatnonzero(weights > 0)
            return heavy[:, None], weights[heavy], weights
        width = min(self.n_gram, len(kept))
        count = len(kept) - width + 1 if width else 0
        runs = kept[np.arange(count)[:, None] + np.arange(width)]
        # Marks are without weight, but a run may begin or end with one.
        counts = weights[runs].sum(1)
        heavy = counts > 0
        return (runs[heavy], counts[heavy], weights) if heavy.any() else (runs, counts, weights)

    def _weighed(self, found: States, vectors: Array) -> tuple[Array, Array]:
        """The positions of the pieces that are kept, and the weight of every piece."""
        marks = list(found.marks)
        kept = ~self.dropped[found.keys]
        kept[marks] = False
        if not kept.any():  # nothing but punctuation and the like: there, and worth nothing
            text = np.ones(len(kept), dtype=bool)
            text[marks] = False
            return np.flatnonzero(text), np.zeros(len(kept))
        weights = np.where(kept, self.weighting(found.keys, vectors), 0.0)
        # In a call of one pair every piece is in every document, and so has an idf of 0.
        weights = weights if weights.any() else kept.astype(np.float64)
        kept[marks] = True
        return np.flatnonzero(kept), weights


def _pooled(vectors: Array, weights: Array, runs: Array, counts: Array) -> Array:
    """The weighted mean of each run's vectors; nothing at all where no piece has weight."""
    if runs.shape[1] == 1 and counts.any():
        return vectors[runs[:, 0]]  # a run of one piece is that piece
    shares = weights[runs] / np.maximum(counts, 1e-300)[:, None]
    pooled: Array = (shares[:, :, None] * vectors[runs]).sum(1)
    return pooled


def _shown(found: States, runs: Array) -> Units:
    """The runs as units that can be read."""
    spans = tuple(map(tuple, found.spans.tolist()))
    words = [found.text[start:stop] for start, stop in spans]
    for at, mark in found.marks.items():
        words[at] = mark
    return Units(found.text, tuple(words), spans, tuple(map(tuple, runs.tolist())))
