"""Scoring what does not fit in memory: pairs come one by one, scores leave window by window."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from evenmatch.errors import InputError
from evenmatch.scoring.languages import warn_of_other_languages
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.shared import with_counts
from evenmatch.scoring.together import score_together
from evenmatch.scoring.windows import texts
from evenmatch.types import Carried, Metric, Pair, Run, Scores
from evenmatch.vectors.states import needs_counting

# Texts alone are held here, not vectors, so a window can be large; the larger it is, the more often
# a text that comes again is embedded only once.
WINDOW = 65_536
MOST_CHARACTERS = 32_000_000


def score_stream(
    metrics: Sequence[Metric],
    pairs: Iterable[Pair],
    run: Run,
    *,
    window: int = WINDOW,
    total: int = 0,
) -> Iterator[list[Scores]]:
    """Each window's scores, metric by metric; together they are what `score` would give.

    A metric that counts idf goes over `pairs` once before, so they must be iterable twice. Metrics
    that may define a corpus score, those neither made of parts nor carried out by a run, get all
    pairs in one window.
    `total` is how many pairs there will be, for the progress that `run` reports; 0 is unknown.
    """
    if window < 1:
        raise InputError(f"a window holds at least 1 pair, got {window}")
    ready = [_counted(metric, pairs) for metric in metrics]
    bounded = all(isinstance(metric, AlignMetric | Carried) for metric in metrics)
    done = 0
    for chunk in _chunks(pairs, window) if bounded else [list(pairs)]:
        if not done:
            warn_of_other_languages(ready, chunk)
        if chunk:
            yield score_together(ready, chunk, _shifted(run, done, total))
        done += len(chunk)


def _counted(metric: Metric, pairs: Iterable[Pair]) -> Metric:
    if not isinstance(metric, AlignMetric):
        return metric
    if needs_counting(metric.vectors) and iter(pairs) is pairs:
        raise InputError(
            "idf counts all texts before the first score, and this input can be read only "
            "once; save it to a file, or name a table: idf='FILE'"
        )
    return with_counts(metric, pairs)


def _chunks(pairs: Iterable[Pair], window: int) -> Iterator[list[Pair]]:
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += sum(map(len, texts(pair)))
        if len(chunk) == window or characters >= MOST_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    yield chunk


def _shifted(run: Run, done: int, total: int) -> Run:
    """The run with its progress told in pairs of the whole stream."""
    tell = run.progress
    if tell is None:
        return run
    return dataclasses.replace(run, progress=lambda n, _: tell(done + n, total))
