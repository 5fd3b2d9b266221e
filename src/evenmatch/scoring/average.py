"""average: precision and recall added and halved, where an F would hide what is below 0."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.scoring.reduce import Prf
from evenmatch.types import Alignment, Array, Embedded, Score


@register("reducer", "average")
@dataclass(frozen=True)
class Average:
    """The mean of precision and recall; of two texts of one unit it is their similarity.

    Unlike an F it may be negative. Empty sides score as under `prf`.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        score = Prf()(similarity, alignment, x, y)
        assert score.precision is not None
        assert score.recall is not None
        return dataclasses.replace(score, value=(score.precision + score.recall) / 2)

    def bounds_within(self, low: float, high: float) -> tuple[float, float]:
        """Those of the similarity, and 0 and 1 for empty sides."""
        return (min(low, 0.0), max(high, 1.0))
