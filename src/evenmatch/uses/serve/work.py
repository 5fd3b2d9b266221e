"""What requests ask for; several that ask for the same are carried out in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from evenmatch.scoring.aligned import align_texts
from evenmatch.scoring.together import score_together
from evenmatch.types import Metric, Pair, Run, Scores
from evenmatch.uses.serve.menu import joins
from evenmatch.uses.train.rewards_judging import Rated, judge
from evenmatch.uses.train.rewards_terms import Judged
from evenmatch.viewer.shown import Shown, shown

Pairs = Sequence[Pair]
T = TypeVar("T")


class Work(Protocol):
    """Answers requests, one answer each, in order; equal works may be joined."""

    def __call__(self, requests: Sequence[Pairs], /) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Scoring:
    """The scores of several metrics over the same texts."""

    metrics: tuple[Metric, ...]
    run: Run

    def __call__(self, requests: Sequence[Pairs]) -> list[list[Scores]]:
        shared = [metric for metric in self.metrics if joins(metric)]
        every = [pair for pairs in requests for pair in pairs]
        found = dict(zip(shared, score_together(shared, every, self.run), strict=True))
        parts = {
            metric: [Scores(own, scores.signature) for own in _dealt(scores.segments, requests)]
            for metric, scores in found.items()
        }
        return [
            [
                parts[metric][at]
                if metric in parts
                else score_together([metric], pairs, self.run)[0]
                for metric in self.metrics
            ]
            for at, pairs in enumerate(requests)
        ]


@dataclass(frozen=True)
class Rewarding:
    """The rewards of one metric."""

    metric: Metric
    run: Run

    def __call__(self, requests: Sequence[Pairs]) -> list[Rated]:
        if not joins(self.metric):
            return [self._rated(pairs) for pairs in requests]
        every = self._rated([pair for pairs in requests for pair in pairs])
        values, start = _dealt(every.values, requests), 0
        found = []
        for own in values:
            odd = (row - start for row in every.odd if start <= row < start + len(own))
            found.append(Rated(own, tuple(odd)))
            start += len(own)
        return found

    def _rated(self, pairs: Pairs) -> Rated:
        judged = Judged(self.metric, self.run)
        return judge([judged], pairs)[judged]


@dataclass(frozen=True)
class Aligning:
    """One alignment to look at per request."""

    name: str
    metric: Metric

    def __call__(self, requests: Sequence[Pairs]) -> list[Shown]:
        return [self._one(pairs[0].candidate, pairs[0].references[0]) for pairs in requests]

    def _one(self, candidate: str, reference: str) -> Shown:
        aligned = align_texts(candidate, reference, self.metric)
        return shown(aligned, self.metric, candidate, reference, name=self.name)


def _dealt(values: Sequence[T], requests: Sequence[Pairs]) -> Iterator[tuple[T, ...]]:
    """The values in portions, one for each request."""
    left = iter(values)
    for pairs in requests:
        yield tuple(islice(left, len(pairs)))
