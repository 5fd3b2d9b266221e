"""Running means of scores, for when the scores themselves are not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.types import Score, Scores


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the scores seen so far; a sum is None once a score lacked that number."""

    count: int = 0
    value: float = 0.0
    precision: float | None = 0.0
    recall: float | None = 0.0
    signature: str = ""
    corpus: float | None = None

    def plus(self, scores: Scores) -> Tally:
        """The tally with these scores added, in their order."""
        count, value = self.count, self.value
        precision, recall = self.precision, self.recall
        for score in scores.segments:
            count += 1
            value += score.value
            precision = _sum(precision, score.precision)
            recall = _sum(recall, score.recall)
        return Tally(count, value, precision, recall, scores.signature, scores.corpus)

    @property
    def mean(self) -> Score:
        """The mean of each number; zeros where nothing was added."""
        count = max(self.count, 1)
        return Score(
            self.value / count,
            None if self.precision is None else self.precision / count,
            None if self.recall is None else self.recall / count,
        )


def _sum(total: float | None, value: float | None) -> float | None:
    return None if total is None or value is None else total + value


def count_flags(found: Sequence[Scores]) -> Counter[str]:
    """How many rows carry each flag, whichever metric raised it."""
    counts: Counter[str] = Counter()
    for scores in zip(*(s.segments for s in found), strict=True):
        if any(score.flags for score in scores):
            counts.update(frozenset[str]().union(*(score.flags for score in scores)))
    return counts
