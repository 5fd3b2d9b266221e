"""Many metrics over one pass of the texts: equal parts run once, memory stays bounded.

Pairs are taken in windows. Within one, every distinct text goes through each model once, to the
deepest layer any metric wants; metrics with equal parts share units, vectors and similarities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeVar

from evenmatch.alignment.threads import on_threads
from evenmatch.registry import signature
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.shelf import Parts, Shelf, Stock
from evenmatch.scoring.threads import one_thread, threads_of
from evenmatch.scoring.windows import windows
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.vectors import cache
from evenmatch.vectors.checkpoints import each_found_once
from evenmatch.vectors.states import Counting, Padding, Sided, Viewing, needs_counting

P = TypeVar("P", bound=Parts)


@each_found_once()
def score_aligned(metrics: Sequence[Parts], pairs: Sequence[Pair], run: Run) -> list[Scores]:
    """The scores of every metric for every pair, in order."""
    check_pairs(pairs)
    ready = [with_counts(metric, pairs) for metric in metrics]
    results: list[list[Score | None]] = [[None] * len(pairs) for _ in ready]
    shelf = Shelf(ready, run)
    done = 0
    pad_to = max((m.vectors.pad_to for m in ready if isinstance(m.vectors, Padding)), default=0)
    for window, again in windows(pairs, pad_to, cached=run.cache is not None):
        # The stock is not given a name: it would outlive its window, and lie beside the next.
        found = _scored(shelf.stock([pairs[i] for i in window], again), ready, run)
        for row, scores in zip(results, found, strict=True):
            for index, score in zip(window, scores, strict=True):
                row[index] = score
        done += len(window)
        if run.progress:
            run.progress(done, len(pairs))
    return [
        Scores(tuple(score for score in row if score is not None), _signed(metric, run))
        for row, metric in zip(results, ready, strict=True)
    ]


def _scored(stock: Stock, metrics: Sequence[Parts], run: Run) -> list[list[Score]]:
    with one_thread(), on_threads(threads_of(run)):
        return [list(stock.scores(metric)) for metric in metrics]


def _signed(metric: Parts, run: Run) -> str:
    cached = isinstance(metric.vectors, Viewing | Sided)
    facts = cache.fact(run.cache) if cached else ()
    return signature(metric, *facts)


def with_counts(metric: P, pairs: Iterable[Pair]) -> P:
    """The metric with its idf tables counted from these pairs, where it asks for that."""
    encoder = metric.vectors
    if not needs_counting(encoder):
        return metric
    references = (reference for pair in pairs for reference in pair.references)
    if isinstance(encoder, Sided):
        encoder = encoder.counted_sides((pair.candidate for pair in pairs), references)
    elif isinstance(encoder, Counting):
        encoder = encoder.counted(references)
    counted: P = dataclasses.replace(metric, vectors=encoder)  # type: ignore[type-var]  # parts are dataclasses
    return counted
