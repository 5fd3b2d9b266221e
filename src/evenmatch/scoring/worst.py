"""worst: how well the worst-matched units of each side are matched."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.scoring.reduce import Prf, harmonic
from evenmatch.types import Alignment, Array, Embedded, Score


@register("reducer", "worst")
@dataclass(frozen=True)
class Worst:
    """Precision and recall over the `share` of units that gain least, and their F as value.

    A mean forgives one wrong name in a long sentence; this does not. At least one unit counts on
    each side, units without weight do not, and the others count the same. Empty sides score as
    under `prf`.
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 < self.share <= 1:
            raise InputError(f"worst's share must be above 0 and at most 1, got {self.share}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        whole = Prf()(similarity, alignment, x, y)
        weighed = np.asarray(x.weights) > 0, np.asarray(y.weights) > 0
        if not (weighed[0].any() and weighed[1].any()):
            return whole
        gained = (alignment.rows * similarity).sum(-1)[weighed[0]]
        covered = (alignment.cols * similarity).sum(-2)[weighed[1]]
        precision, recall = self._least(gained), self._least(covered)
        return Score(harmonic(precision, recall), precision, recall, whole.flags)

    def _least(self, gains: Array) -> float:
        # 0.2 × 15 is 3.0000000000000004, which is not to become 4
        count = max(1, math.ceil(self.share * len(gains) - 1e-9))
        return float(np.sort(gains)[:count].mean())

    def bounds_within(self, low: float, high: float) -> tuple[float, float]:
        """As under `prf`."""
        return Prf().bounds_within(low, high)
