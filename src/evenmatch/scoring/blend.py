"""blend: a weighted sum of metrics, all of them over one pass of the texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register, signature
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.shared import with_counts
from evenmatch.scoring.together import score_together
from evenmatch.types import Metric, Pair, Run, Score, Scores

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
        return self.carry_out(pairs, Run())

    def carry_out(self, pairs: Sequence[Pair], run: Run) -> Scores:
        """The same, as `run` says."""
        check_pairs(pairs)
        single = [Pair(p.candidate, (r,), p.source) for p in pairs for r in p.references]
        ready = replace(self, parts=tuple(counted(part, single) for part in self.parts))
        found = score_together(ready.parts, single, run)
        summed = iter([self._sum(own) for own in zip(*(s.segments for s in found), strict=True)])
        segments = tuple(_best([next(summed) for _ in pair.references]) for pair in pairs)
        return Scores(segments, signature(ready, *new_facts(ready, found)))

    def _sum(self, scores: Sequence[Score]) -> Score:
        value = math.fsum(w * s.value for w, s in zip(self.weights, scores, strict=True))
        flags: frozenset[str] = reduce(frozenset.union, (s.flags for s in scores)) - _NO_MATCH
        unmatched = reduce(frozenset.intersection, (s.flags for s in scores)) & _NO_MATCH
        return Score(self.bias + value, flags=flags | unmatched)

    @property
    def signature(self) -> str:
        """The recipe: parts, weights and what they rest on."""
        return signature(self)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest sum that the bounds of the parts allow."""
        ends = [
            sorted(weight * end for end in part.bounds)
            for part, weight in zip(self.parts, self.weights, strict=True)
            if weight
        ]
        return self.bias + sum(low for low, _ in ends), self.bias + sum(high for _, high in ends)


def counted(metric: Metric, pairs: Sequence[Pair]) -> Metric:
    """A part with its idf tables counted from these pairs, where it asks for that."""
    return with_counts(metric, pairs) if isinstance(metric, AlignMetric) else metric


def new_facts(metric: Metric, found: Sequence[Scores]) -> list[str]:
    """What the signatures of scores say that the metric they came from does not know of itself."""
    known = metric.signature.split(" · ")
    facts = (fact for scores in found for fact in scores.signature.split(" · ")[1:])
    return [fact for fact in dict.fromkeys(facts) if fact not in known]


def _best(scores: Sequence[Score]) -> Score:
    return max(scores, key=lambda score: score.value)
