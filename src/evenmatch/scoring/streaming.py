"""Scoring of streams: score more pairs than fit in memory, chunk by chunk.

`score_stream` yields the scores of each chunk; `RunningMean` and `count_flags` summarise them, so
that the scores themselves need not be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.scoring.engine import OpenMetrics, merge_signatures, texts_of_pair
from evenmatch.scoring.inputs import warn_of_other_languages
from evenmatch.types import Pair, Run, Score, Scores

# A chunk of a stream holds texts but no vectors, so it can be large. The larger it is, the more
# repeated texts are embedded only once.
STREAM_CHUNK_PAIRS = 65_536
STREAM_CHUNK_CHARACTERS = 32_000_000


def score_stream(
    metrics: Sequence[Metric],
    pairs: Iterable[Pair],
    run: Run,
    *,
    chunk_size: int = STREAM_CHUNK_PAIRS,
    total: int = 0,
) -> Iterator[list[Scores]]:
    """Yield the scores of each chunk, one `Scores` per metric; together they equal `score`'s.

    A metric that counts idf reads `pairs` once beforehand, so they must be iterable twice. A metric
    that the engine cannot open, such as a plug-in, needs all pairs in one chunk. `total` is the
    number of pairs, for progress reports; 0 if unknown.
    """
    if chunk_size < 1:
        raise InputError(f"a chunk holds at least 1 pair, got chunk_size={chunk_size}")
    opened, done = OpenMetrics(metrics, pairs, run), 0
    for chunk in _read_chunks(pairs, chunk_size) if opened.scores_any_block else [list(pairs)]:
        if not done:
            warn_of_other_languages(metrics, chunk)
        if chunk:
            yield opened.score(chunk, done=done, total=total)
        done += len(chunk)


def _read_chunks(pairs: Iterable[Pair], chunk_size: int) -> Iterator[list[Pair]]:
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += sum(map(len, texts_of_pair(pair)))
        if len(chunk) == chunk_size or characters >= STREAM_CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    yield chunk


@dataclass(frozen=True, slots=True)
class RunningMean:
    """Sums over the scores so far; a sum becomes None when a score lacks that number."""

    count: int = 0
    value: float = 0.0
    precision: float | None = 0.0
    recall: float | None = 0.0
    signature: str = ""
    corpus: float | None = None

    def add(self, scores: Scores) -> RunningMean:
        """Return the sums with these scores added."""
        count, value = self.count, self.value
        precision, recall = self.precision, self.recall
        for score in scores.segments:
            count += 1
            value += score.value
            precision = _add_optional(precision, score.precision)
            recall = _add_optional(recall, score.recall)
        signature = merge_signatures((self.signature, scores.signature))
        return RunningMean(count, value, precision, recall, signature, scores.corpus)

    @property
    def mean(self) -> Score:
        """Mean value, precision and recall; zeros if nothing was added."""
        count = max(self.count, 1)
        return Score(
            self.value / count,
            None if self.precision is None else self.precision / count,
            None if self.recall is None else self.recall / count,
        )


def _add_optional(total: float | None, value: float | None) -> float | None:
    return None if total is None or value is None else total + value


def count_flags(found: Sequence[Scores]) -> Counter[str]:
    """Count the rows that carry each flag for at least one metric."""
    counts: Counter[str] = Counter()
    for scores in zip(*(s.segments for s in found), strict=True):
        if any(score.flags for score in scores):
            counts.update(frozenset[str]().union(*(score.flags for score in scores)))
    return counts
