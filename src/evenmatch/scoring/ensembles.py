"""Metrics made of other metrics: `Blend` (weighted sum) and `Monotone` (monotone calibration).

`evenmatch calibrate` fits the weights and the knots. Alignment metrics inside a blend share one
pass over the texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.registry import check_settings, make_signature, register
from evenmatch.scoring.engine import with_idf_counts
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.metric import AlignMetric, score_metrics
from evenmatch.scoring.reducers import NO_MATCH
from evenmatch.types import Pair, Run, Score, Scores


@register("metric", "blend")
@dataclass(frozen=True)
class Blend:
    """Weighted sum of other metrics, plus a constant.

    `parts` are the metrics and `weights` their weights, one each. `bias` is added to the sum. The
    sum is computed for each reference, and the best counts. A score has the flags of all parts, but
    `no_match` only if no part found a match. `evenmatch calibrate` fits the weights.
    """

    parts: tuple[Metric, ...]
    weights: tuple[float, ...]
    bias: float = 0.0
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.parts or len(self.parts) != len(self.weights):
            raise InputError(
                f"a blend has one weight for each part and at least one part, "
                f"got {len(self.parts)} parts and {len(self.weights)} weights"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Score the pairs, in order."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """Score the pairs with the given run settings."""
        check_pairs(pairs)
        single = [Pair(p.candidate, (r,), p.source) for p in pairs for r in p.references]
        ready = replace(
            self, parts=tuple(with_part_idf_counts(part, single) for part in self.parts)
        )
        found = score_metrics(ready.parts, single, run)
        sums = iter(
            [self._weighted_sum(row) for row in zip(*(s.segments for s in found), strict=True)]
        )
        segments = tuple(
            max((next(sums) for _ in pair.references), key=lambda score: score.value)
            for pair in pairs
        )
        return Scores(segments, make_signature(ready, *new_signature_facts(ready, found)))

    def _weighted_sum(self, scores: Sequence[Score]) -> Score:
        value = math.fsum(w * s.value for w, s in zip(self.weights, scores, strict=True))
        flags: frozenset[str] = reduce(frozenset.union, (s.flags for s in scores)) - NO_MATCH
        unmatched = reduce(frozenset.intersection, (s.flags for s in scores)) & NO_MATCH
        return Score(self.bias + value, flags=flags | unmatched)

    @property
    def signature(self) -> str:
        """The spec with all parts and weights, and the models and tables the parts use."""
        return make_signature(self)

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
class Monotone:
    """Monotone, piecewise linear function of another metric's score.

    `base` is the metric. `at` holds the knots on its scale, in ascending order. `to` holds the new
    values at these knots, ascending, or descending if a low score of the base metric is good: a
    high score is always good here. Values between knots are interpolated, and values outside them
    take the value of the nearest knot. `evenmatch calibrate` fits the knots.
    """

    base: Metric
    at: tuple[float, ...]
    to: tuple[float, ...]
    higher_is_better: ClassVar[bool] = True

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

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Score the pairs, in order."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """Score the pairs with the given run settings."""
        ready = replace(self, base=with_part_idf_counts(self.base, pairs))
        found = score_metrics([ready.base], pairs, run)[0]
        values = np.interp([score.value for score in found.segments], self.at, self.to)
        segments = (
            replace(score, value=float(value), precision=None, recall=None)
            for score, value in zip(found.segments, values, strict=True)
        )
        return Scores(tuple(segments), make_signature(ready, *new_signature_facts(ready, [found])))

    @property
    def signature(self) -> str:
        """The spec with the base metric and the knots."""
        return make_signature(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value in `to`."""
        return min(self.to), max(self.to)


def with_part_idf_counts(metric: Metric, pairs: Sequence[Pair]) -> Metric:
    """Return the metric with its idf tables counted from these pairs, if it needs any."""
    return with_idf_counts(metric, pairs) if isinstance(metric, AlignMetric) else metric


def new_signature_facts(metric: Metric, found: Sequence[Scores]) -> list[str]:
    """Facts in the signatures of the scores (such as the cache form) that the metric's lacks."""
    known = metric.signature.split(" · ")
    facts = (fact for scores in found for fact in scores.signature.split(" · ")[1:])
    return [fact for fact in dict.fromkeys(facts) if fact not in known]
