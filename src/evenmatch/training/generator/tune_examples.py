"""Examples of a tuning run, and the batches of its steps.

The batch of a step depends on the seed and the step's number alone, so a run that is stopped and
resumed takes the same steps as one that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evenmatch.data.graphs import GraphText
from evenmatch.training.generator.loss import TuneBatch
from evenmatch.training.generator.tune_settings import TuneSettings
from evenmatch.training.loop import EpochBatches, length_grouped_batches

# Batches whose examples are sorted by length together, to limit padding.
_SORTED_BATCHES = 20


@dataclass(frozen=True, eq=False)
class TuneExamples:
    """Inputs with their references, and their division into batches."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    batch: int
    every_text: bool
    seed: int

    @cached_property
    def _batches(self) -> EpochBatches[list[tuple[int, int]]]:
        return EpochBatches(self.epoch_batches)

    @cached_property
    def count(self) -> int:
        """The number of examples per epoch."""
        return sum(map(len, self.references)) if self.every_text else len(self.sources)

    @property
    def steps(self) -> int:
        """The number of steps per epoch."""
        return -(-self.count // self.batch)

    def __call__(self, step: int) -> TuneBatch:
        """Return the batch of a step, counted from 0 over all epochs."""
        chosen = self._batches[step]
        return TuneBatch(
            tuple(self.sources[i] for i, _ in chosen),
            tuple(self.references[i][k] for i, k in chosen),
            tuple(self.references[i] for i, _ in chosen),
        )

    def epoch_batches(self, epoch: int) -> list[list[tuple[int, int]]]:
        """Return the batches of one epoch as (input, reference) indices."""
        draw = np.random.default_rng([self.seed, epoch])
        texts = [len(references) for references in self.references]
        if self.every_text:
            pairs = [(i, k) for i, count in enumerate(texts) for k in range(count)]
        else:
            pairs = [(i, int(draw.integers(count))) for i, count in enumerate(texts)]
        lengths = [len(self.references[i][k]) for i, k in pairs]
        batches = length_grouped_batches(lengths, self.batch, draw, _SORTED_BATCHES)
        return [[pairs[n] for n in batch] for batch in batches]


def make_tune_examples(graphs: Sequence[GraphText], settings: TuneSettings) -> TuneExamples:
    """Convert graphs to the lines of text that a model reads."""
    return TuneExamples(
        tuple(settings.prefix + each.graph.line for each in graphs),
        tuple(each.references for each in graphs),
        settings.batch,
        settings.every_text,
        settings.seed,
    )
