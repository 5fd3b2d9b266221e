"""Many keyphrase metrics over the same pairs: lists, similarities and alignments made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from evenmatch.registry import signature
from evenmatch.scoring.keyphrase_lists import Cleaning, Lists, Which, chosen, cut
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.shelf import MatchingParts
from evenmatch.types import (
    Alignment,
    Array,
    Embedded,
    Encoder,
    Pair,
    Problem,
    Run,
    Score,
    Scores,
    Similarity,
    Solver,
)

Sides: TypeAlias = tuple[Embedded, Embedded]
Counts: TypeAlias = tuple[float, ...]
T = TypeVar("T")

_PORTION = 512  # documents whose lists and matrices are held at a time


@runtime_checkable
class Tallying(Protocol):
    """A reducer whose score of many documents comes from sums of numbers of each."""

    def tally(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Counts: ...
    def of_tally(self, tally: Counts, x: Embedded, y: Embedded, /) -> Score: ...
    def of_totals(self, totals: Array, /) -> Array: ...


@runtime_checkable
class Preparing(Protocol):
    """A similarity that had better see many pairs of texts before it is asked for each."""

    def prepared(self, sides: Sequence[Sides], /) -> Similarity: ...


class KeyphraseParts(MatchingParts, Protocol):
    """What a keyphrase metric is made of."""

    @property
    def cleaning(self) -> Cleaning: ...
    @property
    def which(self) -> Which: ...
    @property
    def no_reference(self) -> str: ...
    def of_totals(self, totals: Array, /) -> Array: ...


def judge_keyphrases(
    metrics: Sequence[KeyphraseParts], pairs: Sequence[Pair], run: Run = Run()
) -> list[tuple[Scores, Array]]:
    """Each metric's scores of the pairs, and a row of counts per pair for `of_totals`."""
    check_pairs(pairs)
    found: list[list[tuple[Score, Counts]]] = [[] for _ in metrics]
    for start in range(0, len(pairs), _PORTION):
        portion = _Portion(pairs[start : start + _PORTION], start)
        for own, metric in zip(found, metrics, strict=True):
            own += portion.judged(metric)
        if run.progress:
            run.progress(min(start + _PORTION, len(pairs)), len(pairs))
    return [_gathered(metric, own) for metric, own in zip(metrics, found, strict=True)]


def _gathered(
    metric: KeyphraseParts, found: Sequence[tuple[Score, Counts]]
) -> tuple[Scores, Array]:
    counts = np.array([row for _, row in found], dtype=np.float64)
    is_mean = not isinstance(metric.scoring, Tallying) and metric.no_reference == "count"
    corpus = None if is_mean or not found else float(metric.of_totals(counts.sum(0)))
    return Scores(tuple(score for score, _ in found), signature(metric), corpus), counts


def mean_of(totals: Array) -> Array:
    """The mean of scores, from their sum and number."""
    return totals[..., 0] / np.maximum(totals[..., 1], 1.0)


class _Portion:
    """Some pairs, and what metrics have in common on them, each made when first asked for."""

    def __init__(self, pairs: Sequence[Pair], first_row: int) -> None:
        self._pairs = pairs
        self._first = first_row
        self._made: dict[Hashable, Any] = {}

    def judged(self, metric: KeyphraseParts) -> Iterator[tuple[Score, Counts]]:
        """The metric's score of each pair with its counts: the best over the references."""
        wanted = (metric.cleaning, metric.which)
        view = (*wanted, metric.vectors)
        lists = self._once(wanted, lambda: self._lists(*wanted))
        sides = self._once(view, lambda: _embedded(lists, metric.vectors))
        alike = (*view, metric.similarity)
        similarity = self._similarity(metric)
        similarities = self._once(alike, lambda: [similarity(x, y) for x, y in sides])
        alignments = self._once(
            (*alike, metric.alignment), lambda: _aligned(sides, similarities, metric.alignment)
        )
        reduced = _reduces(metric)
        found = (
            reduced(s, a, x, y)
            for s, a, (x, y) in zip(similarities, alignments, sides, strict=True)
        )
        for each in lists:
            own = [next(found) for _ in each.references]
            yield max(own, key=lambda scored: scored[0].value)

    def _similarity(self, metric: KeyphraseParts) -> Similarity:
        """The metric's similarity, prepared for all phrases, whichever of them are chosen."""
        similarity = metric.similarity
        if not isinstance(similarity, Preparing):
            return similarity
        preparing, cleaning = similarity, metric.cleaning
        return self._once(
            (cleaning, metric.vectors, similarity),
            lambda: preparing.prepared(_embedded(self._cut(cleaning), metric.vectors)),
        )

    def _cut(self, cleaning: Cleaning) -> list[Lists]:
        return self._once(cleaning, lambda: [cut(pair, cleaning) for pair in self._pairs])

    def _lists(self, cleaning: Cleaning, which: Which) -> list[Lists]:
        rows = enumerate(self._cut(cleaning), self._first)
        return [chosen(each, which, cleaning, row) for row, each in rows]

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]
        return found


def _embedded(lists: Sequence[Lists], encoder: Encoder) -> list[Sides]:
    """Both sides of every comparison with vectors; the flags of a pair go with its candidate."""
    flat = [side.units for each in lists for side in (each.candidate, *each.references)]
    found = iter(encoder(flat))
    sides = []
    for each in lists:
        candidate = next(found)
        if each.flags:
            candidate = replace(candidate, flags=candidate.flags | each.flags)
        sides += [(candidate, next(found)) for _ in each.references]
    return sides


def _aligned(
    sides: Sequence[Sides], similarities: Sequence[Array], solver: Solver
) -> list[Alignment]:
    return solver(
        [Problem(s, x.mass, y.mass) for s, (x, y) in zip(similarities, sides, strict=True)]
    )


def _reduces(metric: KeyphraseParts) -> Callable[..., tuple[Score, Counts]]:
    """What gives a document's score and counts, once its phrases are aligned."""
    reducer, skip = metric.scoring, metric.no_reference == "skip"
    tallying = reducer if isinstance(reducer, Tallying) else None

    def reduced(
        similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> tuple[Score, Counts]:
        if tallying:
            counts = tallying.tally(similarity, alignment, x, y)
            score = tallying.of_tally(counts, x, y)
        else:
            score = reducer(similarity, alignment, x, y)
            counts = (score.value, 1.0)
        if skip and not len(y.weights):
            counts = (0.0,) * len(counts)
        return score, counts

    return reduced
