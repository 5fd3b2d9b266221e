"""Metrics made of other metrics: `Blend` (weighted sum) and `Monotone` (monotone calibration).

`evenmatch calibrate` fits the weights and the knots. Alignment metrics inside a blend share one
pass over the texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.scoring.engine import Chunk, ChunkScores, EngineMetric, ReadyMetric, open_metric
from evenmatch.scoring.reducers import NO_MATCH
from evenmatch.types import Score


@register("metric", "blend")
@dataclass(frozen=True)
class Blend(EngineMetric):
    """Weighted sum of other metrics, plus a constant.

    `parts` are the metrics and `weights` their weights, one each. `bias` is added to the sum. The
    sum is computed for each reference, and the best counts. A score has the flags of all parts, but
    `no_match` only if no part found a match. `evenmatch calibrate` fits the weights.
    """

    parts: tuple[Metric, ...]
    weights: tuple[float, ...]
    bias: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.parts or len(self.parts) != len(self.weights):
            raise InputError(
                f"a blend has one weight for each part and at least one part, "
                f"got {len(self.parts)} parts and {len(self.weights)} weights"
            )

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the parts, which share their work with the other metrics of the call."""
        # Weights may be far above 1 and so enlarge the rounding of compact vectors.
        exact = context.with_exact_vectors()
        ready = [open_metric(part, exact) for part in self.parts]

        def score_chunk(chunk: Chunk) -> ChunkScores:
            single = chunk.single_references()
            found = [metric.score_chunk(single)[0] for metric in ready]
            sums = [self._weighted_sum(row) for row in zip(*found, strict=True)]
            return chunk.best_scores(sums, lambda score: score.value), None

        facts = tuple(fact for metric in ready for fact in metric.facts)
        return ReadyMetric(score_chunk, pad_to=max(m.pad_to for m in ready), facts=facts)

    def _weighted_sum(self, scores: Sequence[Score]) -> Score:
        value = math.fsum(w * s.value for w, s in zip(self.weights, scores, strict=True))
        flags: frozenset[str] = reduce(frozenset.union, (s.flags for s in scores)) - NO_MATCH
        unmatched = reduce(frozenset.intersection, (s.flags for s in scores)) & NO_MATCH
        return Score(self.bias + value, flags=flags | unmatched)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest possible sum, given the bounds of the parts."""
        ends = [
            sorted(weight * end for end in part.bounds)
            for part, weight in zip(self.parts, self.weights, strict=True)
            if weight
        ]
        return self.bias + sum(low for low, _ in ends), self.bias + sum(high for _, high in ends)


@register("metric", "monotone")
@dataclass(frozen=True)
class Monotone(EngineMetric):
    """Monotone, piecewise linear function of another metric's score.

    `base` is the metric. `at` holds the knots on its scale, in ascending order. `to` holds the new
    values at these knots, ascending, or descending if a low score of the base metric is good: a
    high score is always good here. Values between knots are interpolated, and values outside them
    take the value of the nearest knot. `evenmatch calibrate` fits the knots.
    """

    base: Metric
    at: tuple[float, ...]
    to: tuple[float, ...]

    def __post_init__(self) -> None:
        check_settings(self)
        if len(self.at) != len(self.to) or len(self.at) < 2:
            raise InputError(
                f"monotone needs as many values in `at` as in `to`, at least 2, "
                f"got {len(self.at)} and {len(self.to)}"
            )
        steps = np.diff(self.to) if self.base.higher_is_better else -np.diff(self.to)
        if (np.diff(self.at) <= 0).any() or (steps < 0).any() or self.to[0] == self.to[-1]:
            raise InputError(
                "monotone's `at` must ascend and its `to` must not change direction: ascending, or "
                "descending if a low score of the base metric is good"
            )

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the base metric."""
        base = open_metric(self.base, context.with_exact_vectors())  # a slope may be steep

        def score_chunk(chunk: Chunk) -> ChunkScores:
            found = base.score_chunk(chunk)[0]
            values = np.interp([score.value for score in found], self.at, self.to)
            scores = [
                replace(score, value=float(value), precision=None, recall=None)
                for score, value in zip(found, values, strict=True)
            ]
            return scores, None

        return ReadyMetric(score_chunk, pad_to=base.pad_to, facts=base.facts)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value in `to`."""
        return min(self.to), max(self.to)
