"""Protocols: what the parts of a metric have to provide.

The first group is required of each kind of part; the rest are optional abilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from evenmatch.types import (
    Alignment,
    Array,
    Embedded,
    Pair,
    Parse,
    Problem,
    Run,
    Score,
    Scores,
    Units,
)


@runtime_checkable
class RemoteExecutor(Protocol):
    """Scores pairs in other processes: each metric's scores, and the counts of `Totalled` ones."""

    def score_metrics(
        self, metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run, /
    ) -> list[tuple[Scores, Array | None]]: ...


class Splitter(Protocol):
    """Cuts a text into units."""

    def __call__(self, text: str, /) -> Units: ...


@runtime_checkable
class BatchSplitter(Protocol):
    """A splitter that cuts many texts faster than one by one."""

    def split_batch(self, texts: Sequence[str], /) -> list[Units]: ...


class Parser(Protocol):
    """Parses texts; one parse per text, in order. `identity` names it, version and all."""

    def __call__(self, texts: Sequence[str], /) -> list[Parse]: ...
    def identity(self) -> str: ...


class Encoder(Protocol):
    """Gives units their vectors; one result per input, in order."""

    def __call__(self, batch: Sequence[Units], /) -> list[Embedded]: ...


class Similarity(Protocol):
    """Compares every candidate unit with every reference unit.

    Weights and mass have no part in it: metrics that differ in nothing else share its outcome.
    """

    def __call__(self, x: Embedded, y: Embedded, /) -> Array: ...


class Solver(Protocol):
    """Aligns; one alignment per problem, in order."""

    def __call__(self, problems: Sequence[Problem], /) -> list[Alignment]: ...


class Reducer(Protocol):
    """Turns an alignment into a score."""

    def __call__(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Score: ...


class Weighting(Protocol):
    """Says how much each piece of a text counts, given its keys and vectors."""

    def __call__(self, keys: Array, vectors: Array, /) -> Array: ...


@runtime_checkable
class Metric(Protocol):
    """Scores pairs; `score` and `evenmatch score` take anything of this shape."""

    @property
    def signature(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...
    @property
    def bounds(self) -> tuple[float, float]: ...
    def __call__(self, pairs: Sequence[Pair], /) -> Scores: ...


@runtime_checkable
class RunAwareMetric(Protocol):
    """A metric that can be told how to carry out its work: device, threads, batches, progress.

    It scores pair by pair and has no corpus score, so pairs may come to it in portions.
    """

    def score_pairs(self, pairs: Sequence[Pair], run: Run, /) -> Scores: ...


@runtime_checkable
class CorpusMetric(Protocol):
    """A metric whose corpus score is a function of counts summed over segments.

    `counted` gives the scores and a row of counts per pair; `of_totals` turns sums of such rows
    (…, counts) into corpus scores (…), so that many resampled corpora are scored at once.
    """

    def score_with_counts(self, pairs: Sequence[Pair], /) -> tuple[Scores, Array]: ...
    def score_totals(self, totals: Array, /) -> Array: ...


@runtime_checkable
class BoundedSimilarity(Protocol):
    """A similarity that says the range of its values; without, nothing is known of them."""

    @property
    def bounds(self) -> tuple[float, float]: ...


@runtime_checkable
class BoundedReducer(Protocol):
    """A reducer that says the range of its scores, given that of the similarity."""

    def score_bounds(self, low: float, high: float, /) -> tuple[float, float]: ...


@runtime_checkable
class Pinnable(Protocol):
    """A part that can replace 'auto' settings and local paths by what they stand for now."""

    def pin(self) -> Any: ...


@runtime_checkable
class HasSources(Protocol):
    """A part that rests on files; `sources` names them by content for the signature."""

    def sources(self) -> tuple[str, ...]: ...
