"""Which examples a step learns from: a function of the seed and the step's number alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from evenmatch.data.graphs import GraphText
from evenmatch.uses.train.tune_loss import Batch
from evenmatch.uses.train.tune_settings import Tuning

# Batches among which examples are sorted by length, so that little is padded.
_SORTED_TOGETHER = 20


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with their references, and how they come in batches."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    batch: int
    every_text: bool
    seed: int

    @cached_property
    def count(self) -> int:
        """How many examples one pass has."""
        return sum(map(len, self.references)) if self.every_text else len(self.sources)

    @property
    def steps(self) -> int:
        """How many steps one pass takes."""
        return -(-self.count // self.batch)

    def __call__(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all passes."""
        epoch, within = divmod(step, self.steps)
        chosen = _pass(self, epoch)[within]
        return Batch(
            tuple(self.sources[i] for i, _ in chosen),
            tuple(self.references[i][k] for i, k in chosen),
            tuple(self.references[i] for i, _ in chosen),
        )

    def drawn(self, epoch: int) -> list[list[tuple[int, int]]]:
        """One pass in batches: shuffled, then sorted by length within portions of it."""
        draw = np.random.default_rng([self.seed, epoch])
        texts = [len(references) for references in self.references]
        if self.every_text:
            pairs = [(i, k) for i, count in enumerate(texts) for k in range(count)]
        else:
            pairs = [(i, int(draw.integers(count))) for i, count in enumerate(texts)]
        mixed = [pairs[i] for i in draw.permutation(len(pairs))]
        portion = self.batch * _SORTED_TOGETHER
        batches: list[list[tuple[int, int]]] = []
        for start in range(0, len(mixed), portion):
            near = sorted(mixed[start : start + portion], key=self._length)
            cut = [near[at : at + self.batch] for at in range(0, len(near), self.batch)]
            batches += [cut[i] for i in draw.permutation(len(cut))]
        return batches

    def _length(self, pair: tuple[int, int]) -> int:
        return len(self.references[pair[0]][pair[1]])


@lru_cache(maxsize=1)
def _pass(examples: Examples, epoch: int) -> list[list[tuple[int, int]]]:
    return examples.drawn(epoch)


def examples_of(graphs: Sequence[GraphText], settings: Tuning) -> Examples:
    """Graphs as the lines a model reads."""
    return Examples(
        tuple(settings.prefix + each.graph.line for each in graphs),
        tuple(each.references for each in graphs),
        settings.batch,
        settings.every_text,
        settings.seed,
    )
