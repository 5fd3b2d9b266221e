"""Many metrics over one pass of the texts: equal parts run once, memory stays bounded.

Pairs are taken in windows. Within one, every distinct text goes through each model once, to the
deepest layer any metric wants; metrics with equal parts share units, vectors and similarities.
While one window is aligned, the texts of the next go through the models.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from evenmatch.registry import signature
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.shelf import Parts, Shelf, Stock
from evenmatch.scoring.threads import one_ahead, one_thread
from evenmatch.scoring.windows import windows
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.vectors import cache
from evenmatch.vectors.memory import model_has_run
from evenmatch.vectors.states import Counting, Padding, Sided, Viewing, needs_counting

P = TypeVar("P", bound=Parts)


def score_aligned(metrics: Sequence[Parts], pairs: Sequence[Pair], run: Run) -> list[Scores]:
    """The scores of every metric for every pair, in order."""
    check_pairs(pairs)
    ready = [with_counts(metric, pairs) for metric in metrics]
    results: list[list[Score | None]] = [[None] * len(pairs) for _ in ready]
    done = 0

    def aside() -> bool:
        # Reading a cache holds on to Python's lock, so it gains nothing from a thread of its own.
        return run.threads != 1 and model_has_run()

    for window, stock in one_ahead(_stocked(ready, pairs, run), aside):
        with one_thread():
            for row, metric in zip(results, ready, strict=True):
                for index, score in zip(window, stock.scores(metric), strict=True):
                    row[index] = score
        done += len(window)
        if run.progress:
            run.progress(done, len(pairs))
    return [
        Scores(tuple(score for score in row if score is not None), _signed(metric, run))
        for row, metric in zip(results, ready, strict=True)
    ]


def _stocked(
    metrics: Sequence[Parts], pairs: Sequence[Pair], run: Run
) -> Iterator[tuple[list[int], Stock]]:
    """The indexes of each window's pairs, and what was made of their texts."""
    shelf = Shelf(metrics, run)
    pad_to = max((m.vectors.pad_to for m in metrics if isinstance(m.vectors, Padding)), default=0)
    for window, again in windows(pairs, pad_to, cached=run.cache is not None):
        yield window, shelf.stock([pairs[i] for i in window], again)


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
