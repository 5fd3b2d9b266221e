"""Scoring what does not fit in memory: pairs come one by one, scores leave window by window.

Running means of scores, for when the scores themselves are not kept.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evenmatch.errors import InputError
from evenmatch.models.hidden_states import needs_idf_counts
from evenmatch.protocols import Metric, RunAwareMetric
from evenmatch.scoring.chunking import texts_of_pair
from evenmatch.scoring.engine import with_idf_counts
from evenmatch.scoring.languages import warn_of_other_languages
from evenmatch.scoring.metric import AlignMetric, score_metrics
from evenmatch.types import Pair, Run, Score, Scores

# Texts alone are held here, not vectors, so a window can be large; the larger it is, the more often
# a text that comes again is embedded only once.
STREAM_CHUNK_PAIRS = 65_536


STREAM_CHUNK_CHARACTERS = 32_000_000


def score_stream(
    metrics: Sequence[Metric],
    pairs: Iterable[Pair],
    run: Run,
    *,
    window: int = STREAM_CHUNK_PAIRS,
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
    ready = [_count_stream_idf(metric, pairs) for metric in metrics]
    bounded = all(isinstance(metric, AlignMetric | RunAwareMetric) for metric in metrics)
    done = 0
    for chunk in _read_chunks(pairs, window) if bounded else [list(pairs)]:
        if not done:
            warn_of_other_languages(ready, chunk)
        if chunk:
            yield score_metrics(ready, chunk, _offset_stream_progress(run, done, total))
        done += len(chunk)


def _count_stream_idf(metric: Metric, pairs: Iterable[Pair]) -> Metric:
    if not isinstance(metric, AlignMetric):
        return metric
    if needs_idf_counts(metric.vectors) and iter(pairs) is pairs:
        raise InputError(
            "idf counts all texts before the first score, and this input can be read only "
            "once; save it to a file, or name a table: idf='FILE'"
        )
    return with_idf_counts(metric, pairs)


def _read_chunks(pairs: Iterable[Pair], window: int) -> Iterator[list[Pair]]:
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += sum(map(len, texts_of_pair(pair)))
        if len(chunk) == window or characters >= STREAM_CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    yield chunk


def _offset_stream_progress(run: Run, done: int, total: int) -> Run:
    """The run with its progress told in pairs of the whole stream."""
    tell = run.progress
    if tell is None:
        return run
    return dataclasses.replace(run, progress=lambda n, _: tell(done + n, total))


@dataclass(frozen=True, slots=True)
class RunningMean:
    """Sums over the scores seen so far; a sum is None once a score lacked that number."""

    count: int = 0
    value: float = 0.0
    precision: float | None = 0.0
    recall: float | None = 0.0
    signature: str = ""
    corpus: float | None = None

    def add(self, scores: Scores) -> RunningMean:
        """The tally with these scores added, in their order."""
        count, value = self.count, self.value
        precision, recall = self.precision, self.recall
        for score in scores.segments:
            count += 1
            value += score.value
            precision = _add_optional(precision, score.precision)
            recall = _add_optional(recall, score.recall)
        return RunningMean(count, value, precision, recall, scores.signature, scores.corpus)

    @property
    def mean(self) -> Score:
        """The mean of each number; zeros where nothing was added."""
        count = max(self.count, 1)
        return Score(
            self.value / count,
            None if self.precision is None else self.precision / count,
            None if self.recall is None else self.recall / count,
        )


def _add_optional(total: float | None, value: float | None) -> float | None:
    return None if total is None or value is None else total + value


def count_flags(found: Sequence[Scores]) -> Counter[str]:
    """How many rows carry each flag, whichever metric raised it."""
    counts: Counter[str] = Counter()
    for scores in zip(*(s.segments for s in found), strict=True):
        if any(score.flags for score in scores):
            counts.update(frozenset[str]().union(*(score.flags for score in scores)))
    return counts
