"""AlignMetric: five parts in a row, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.alignment.assign import Greedy
from evenmatch.registry import register, signature
from evenmatch.scoring.reduce import Prf
from evenmatch.scoring.shared import score_aligned
from evenmatch.similarity.cosine import Cosine, bounds_of
from evenmatch.types import (
    Bounding,
    Encoder,
    Pair,
    Reducer,
    Run,
    Scores,
    Similarity,
    Solver,
    Splitter,
)
from evenmatch.units.pieces import Pieces
from evenmatch.vectors.transformer import Transformer


@register("metric", "align")
@dataclass(frozen=True)
class AlignMetric:
    """Cut into units, give them vectors, compare, align, reduce to a score."""

    units: Splitter = Pieces()
    vectors: Encoder = Transformer()
    similarity: Similarity = Cosine()
    alignment: Solver = Greedy()
    scoring: Reducer = Prf()

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores of the pairs, in order; the best reference counts where there are several."""
        return score_aligned([self], pairs, Run())[0]

    @property
    def signature(self) -> str:
        """The recipe, with 'auto' settings resolved and files named by content."""
        return signature(self)

    @property
    def higher_is_better(self) -> bool:
        """Similar texts score higher."""
        return True

    @property
    def bounds(self) -> tuple[float, float]:
        """The range a score lies in, as far as the similarity and the reducer know theirs."""
        low, high = bounds_of(self.similarity)
        if isinstance(self.scoring, Bounding):
            return self.scoring.bounds_within(low, high)
        return (-math.inf, math.inf)
