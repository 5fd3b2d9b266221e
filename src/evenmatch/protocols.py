"""Protocols: the interfaces of parts and metrics.

The first group is one protocol per kind of part, each a single call. The second group is optional
abilities, tested with `isinstance`; a part without one gets a default behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias, runtime_checkable

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


class Splitter(Protocol):
    """Splits a text into units."""

    def __call__(self, text: str, /) -> Units: ...


class Parser(Protocol):
    """Parses texts; one parse per text, in order.

    `identity` names the parser and its version, and is part of the key of cached parses.
    """

    def __call__(self, texts: Sequence[str], /) -> list[Parse]: ...
    def identity(self) -> str: ...


class Encoder(Protocol):
    """Computes the vectors of units; one result per input, in order."""

    def __call__(self, batch: Sequence[Units], /) -> list[Embedded]: ...


class Weighting(Protocol):
    """Computes the weight of each token of a text from token keys and vectors."""

    def __call__(self, keys: Array, vectors: Array, /) -> Array: ...


class Similarity(Protocol):
    """Compares every candidate unit with every reference unit.

    It must not use weights or mass: metrics that differ only in those share one matrix.
    """

    def __call__(self, x: Embedded, y: Embedded, /) -> Array: ...


class Solver(Protocol):
    """Solves alignment problems; one alignment per problem, in order."""

    def __call__(self, problems: Sequence[Problem], /) -> list[Alignment]: ...


class Reducer(Protocol):
    """Turns an alignment into a score."""

    def __call__(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Score: ...


@runtime_checkable
class Metric(Protocol):
    """Scores pairs; `score` and `evenmatch score` accept any object with these members."""

    @property
    def signature(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...
    @property
    def bounds(self) -> tuple[float, float]: ...
    def __call__(self, pairs: Sequence[Pair], /) -> Scores: ...


@runtime_checkable
class TextColumn(Protocol):
    """A column of a polars or pandas frame, accepted wherever a list of texts is."""

    def to_list(self) -> list[Any]: ...


# A metric as an argument: its name, a spec, the folder it was saved in, or the metric itself.
MetricLike: TypeAlias = str | PathLike[str] | Metric


@runtime_checkable
class BatchSplitter(Protocol):
    """A splitter that is faster on many texts together than one by one."""

    def split_batch(self, texts: Sequence[str], /) -> list[Units]: ...


@runtime_checkable
class BatchSimilarity(Protocol):
    """A similarity that is faster when it is prepared with all pairs of texts at once."""

    def prepare(self, sides: Sequence[tuple[Embedded, Embedded]], /) -> Similarity: ...


@runtime_checkable
class BoundedSimilarity(Protocol):
    """A similarity that declares the range of its values; others are taken as unbounded."""

    @property
    def bounds(self) -> tuple[float, float]: ...


@runtime_checkable
class BoundedReducer(Protocol):
    """A reducer that computes the range of its scores from the range of the similarity."""

    def score_bounds(self, low: float, high: float, /) -> tuple[float, float]: ...


@runtime_checkable
class CorpusMetric(Protocol):
    """A metric whose corpus score is a function of counts summed over segments.

    Its `Scores` have a row of counts per pair. `score_totals` turns sums of such rows, shape
    (…, counts), into corpus scores, shape (…), so that many resampled corpora are scored at once.
    """

    def score_totals(self, totals: Array, /) -> Array: ...


@runtime_checkable
class RemoteExecutor(Protocol):
    """Scores pairs outside this process."""

    def score_metrics(
        self, metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run, /
    ) -> list[Scores]: ...
