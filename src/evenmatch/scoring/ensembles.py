"""blend: a weighted sum of metrics, all of them over one pass of the texts.

monotone: another metric on another scale, in the same order.
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
from evenmatch.types import Pair, Run, Score, Scores

_NO_MATCH = frozenset({"no_match"})


@register("metric", "blend")
@dataclass(frozen=True)
class Blend:
    """`bias` plus the parts' values, each times its weight; `calibrate` finds the weights.

    Each reference is judged on its own and the best counts. Flags are those of any part, but
    `no_match` only where no part found a match.
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
        """The scores of the pairs, in order."""
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as `run` says."""
        check_pairs(pairs)
        single = [Pair(p.candidate, (r,), p.source) for p in pairs for r in p.references]
        ready = replace(
            self, parts=tuple(with_part_idf_counts(part, single) for part in self.parts)
        )
        found = score_metrics(ready.parts, single, run)
        summed = iter(
            [self._weighted_sum(own) for own in zip(*(s.segments for s in found), strict=True)]
        )
        segments = tuple(_best_score([next(summed) for _ in pair.references]) for pair in pairs)
        return Scores(segments, make_signature(ready, *new_signature_facts(ready, found)))

    def _weighted_sum(self, scores: Sequence[Score]) -> Score:
        value = math.fsum(w * s.value for w, s in zip(self.weights, scores, strict=True))
        flags: frozenset[str] = reduce(frozenset.union, (s.flags for s in scores)) - _NO_MATCH
        unmatched = reduce(frozenset.intersection, (s.flags for s in scores)) & _NO_MATCH
        return Score(self.bias + value, flags=flags | unmatched)

    @property
    def signature(self) -> str:
        """The recipe: parts, weights and what they rest on."""
        return make_signature(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest sum that the bounds of the parts allow."""
        ends = [
            sorted(weight * end for end in part.bounds)
            for part, weight in zip(self.parts, self.weights, strict=True)
            if weight
        ]
        return self.bias + sum(low for low, _ in ends), self.bias + sum(high for _, high in ends)


def with_part_idf_counts(metric: Metric, pairs: Sequence[Pair]) -> Metric:
    """A part with its idf tables counted from these pairs, where it asks for that."""
    return with_idf_counts(metric, pairs) if isinstance(metric, AlignMetric) else metric


def new_signature_facts(metric: Metric, found: Sequence[Scores]) -> list[str]:
    """What the signatures of scores say that the metric they came from does not know of itself."""
    known = metric.signature.split(" · ")
    facts = (fact for scores in found for fact in scores.signature.split(" · ")[1:])
    return [fact for fact in dict.fromkeys(facts) if fact not in known]


def _best_score(scores: Sequence[Score]) -> Score:
    return max(scores, key=lambda score: score.value)


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
        return self.score_pairs(pairs, Run())

    def score_pairs(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as `run` says."""
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
        """The recipe: the metric within and the knots."""
        return make_signature(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of the scale."""
        return min(self.to), max(self.to)
