"""monotone: another metric on another scale, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register, signature
from evenmatch.scoring.blend import counted, new_facts
from evenmatch.scoring.together import score_together
from evenmatch.types import Metric, Pair, Run, Scores


@register("metric", "monotone")
@dataclass(frozen=True)
class Monotone:
    """A metric's value where it is `at` one of the knots becomes `to`, and in between lies between.

    Outside the knots the ends go on. `to` rises with `at`, or falls where the metric is one of
    those that are better low: a high score is always good. `calibrate` finds the knots.
    """

    base: Metric
    at: tuple[float, ...]
    to: tuple[float, ...]
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)
        if len(self.at) != len(self.to) or len(self.at) < 2:
            raise InputError(
                f"monotone takes as many knots `at` as `to`, at least 2, "
                f"got {len(self.at)} and {len(self.to)}"
            )
        steps = np.diff(self.to) if self.base.higher_is_better else -np.diff(self.to)
        if (np.diff(self.at) <= 0).any() or (steps < 0).any() or self.to[0] == self.to[-1]:
            raise InputError(
                "monotone's `at` must rise and its `to` go one way: up, or down where the metric "
                "is better low"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores of the pairs, in order."""
        return self.carry_out(pairs, Run())

    def carry_out(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as `run` says."""
        ready = replace(self, base=counted(self.base, pairs))
        found = score_together([ready.base], pairs, run)[0]
        values = np.interp([score.value for score in found.segments], self.at, self.to)
        segments = (
            replace(score, value=float(value), precision=None, recall=None)
            for score, value in zip(found.segments, values, strict=True)
        )
        return Scores(tuple(segments), signature(ready, *new_facts(ready, [found])))

    @property
    def signature(self) -> str:
        """The recipe: the metric within and the knots."""
        return signature(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the scale."""
        return min(self.to), max(self.to)
