"""Scoring of streams: score more pairs than fit in memory, chunk by chunk.

`score_stream` yields each chunk with its scores; `RunningMean` and `count_flags` summarise them, so
that the scores themselves need not be kept. A `ChunkStore` keeps the scores of finished chunks, so
that an interrupted run can be continued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.scoring.engine import OpenMetrics, merge_signatures, texts_of_pair
from evenmatch.scoring.inputs import warn_of_misreadings
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
    store: ChunkStore | None = None,
) -> Iterator[tuple[list[Pair], list[Scores]]]:
    """Yield each chunk with its scores, one `Scores` per metric.

    The segments of all chunks together equal those of `score`. A metric that counts idf reads
    `pairs` once beforehand, so they must be iterable twice. A metric that the engine cannot open,
    such as a plug-in, needs all pairs in one chunk. `total` is the number of pairs, for progress
    reports; 0 if unknown. Chunks that are in the `store` are not scored again.
    """
    if chunk_size < 1:
        raise InputError(f"a chunk holds at least 1 pair, got chunk_size={chunk_size}")
    opened, done = OpenMetrics(metrics, pairs, run), 0
    scored: tuple[list[Pair], list[Scores]] | None = None  # the last chunk, if it is not stored
    for chunk in _read_chunks(pairs, chunk_size) if opened.scores_any_block else [list(pairs)]:
        if not chunk:
            continue
        if not done:
            warn_of_misreadings(metrics, chunk)
        if store and scored:  # the last chunk of all need not be stored
            store.save(done - len(scored[0]), *scored)
        found = store.load(done, chunk) if store else None
        scored = None
        if found is None:
            found = opened.score(chunk, done=done, total=total)
            scored = chunk, found
        yield chunk, found
        done += len(chunk)


class ChunkStore(Protocol):
    """Keeps the scores of chunks, identified by their first row and their content."""

    def load(self, first: int, pairs: Sequence[Pair], /) -> list[Scores] | None: ...
    def save(self, first: int, pairs: Sequence[Pair], scores: Sequence[Scores], /) -> None: ...


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
    """Sums over the scores so far; a sum becomes None when a score lacks that number.

    The corpus score is that of the only chunk: corpus scores of several cannot be added.
    """

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
        corpus = None if self.count else scores.corpus
        return RunningMean(count, value, precision, recall, signature, corpus)

    @property
    def mean(self) -> Score:
        """Mean value, precision and recall; zeros if nothing was added."""
        count = max(self.count, 1)
        return Score(
            self.value / count,
            None if self.precision is None else self.precision / count,
            None if self.recall is None else self.recall / count,
        )

    def scaled(self, factor: float) -> RunningMean:
        """Return the sums multiplied by a factor, as `Scores.scaled` does."""
        if factor == 1:
            return self
        names = ("value", "precision", "recall", "corpus")
        own = {name: getattr(self, name) for name in names}
        numbers: dict[str, Any] = {
            name: None if n is None else n * factor for name, n in own.items()
        }
        return replace(self, **numbers, signature=f"{self.signature} · scale {factor:g}")


def _add_optional(total: float | None, value: float | None) -> float | None:
    return None if total is None or value is None else total + value


def count_flags(found: Sequence[Scores]) -> Counter[str]:
    """Count the rows that carry each flag for at least one metric."""
    counts: Counter[str] = Counter()
    for scores in zip(*(s.segments for s in found), strict=True):
        if any(score.flags for score in scores):
            counts.update(frozenset[str]().union(*(score.flags for score in scores)))
    return counts
