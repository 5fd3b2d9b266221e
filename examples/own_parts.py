"""Define an alignment solver and an encoder, check their contracts and use them in a metric.

Run it: python examples/own_parts.py
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import evenmatch as em


@em.register("alignment", "nearest")
@dataclass(frozen=True)
class Nearest:
    """Align only units that are each other's most similar partner."""

    def __call__(self, problems: Sequence[em.Problem]) -> list[em.Alignment]:
        """Return one alignment per problem."""
        return [self._one(np.asarray(problem.similarity)) for problem in problems]

    def _one(self, similarity: np.ndarray) -> em.Alignment:
        plan = np.zeros(similarity.shape)
        if similarity.size:
            best = similarity.argmax(1)
            agreed = similarity.argmax(0)[best] == np.arange(len(best))
            plan[np.flatnonzero(agreed), best[agreed]] = 1.0
        return em.Alignment(plan, plan, exact=False)


@em.register("vectors", "trigrams")
@dataclass(frozen=True)
class Trigrams:
    """Represent a word by its letter trigrams, hashed into a fixed number of slots."""

    slots: int = 512

    def __call__(self, batch: Sequence[em.Units]) -> list[em.Embedded]:
        """Embed each text separately."""
        return [self._embed(em.Words()(u.text) if u.by_model else u) for u in batch]

    def _embed(self, units: em.Units) -> em.Embedded:
        vectors = np.zeros((len(units.items), self.slots), dtype=np.float32)
        for row, item in enumerate(units.items):
            word = f"<{item.lower()}>"
            for start in range(len(word) - 2):
                # Not hash(): it differs between processes.
                key = sum(ord(c) * 31**i for i, c in enumerate(word[start : start + 3]))
                vectors[row, key % self.slots] += 1
        ones = np.ones(len(vectors))
        return em.Embedded(units, vectors, ones, ones.copy())


em.check_solver(Nearest())
em.check_encoder(Trigrams())

metric = "align(units=words, vectors=trigrams, alignment=nearest)"
print(em.align("unbelievable performances", "an unbelievably good performance", metric))
