"""The scoring engine: score many alignment metrics in one pass over the texts.

An alignment metric is a chain of five parts: it splits each text into units, embeds the units,
compares them, aligns them and reduces the alignment to a score. Metrics often have parts in
common: BERTScore and F_DISC on one model differ only in how they align. The engine runs every
step that several metrics share once:

1. Pairs are taken in chunks (`chunking.py`), so that memory stays bounded.
2. `TextEmbedder` embeds each distinct text of a chunk once. Each backbone runs once per text, for
   all layers that any metric reads.
3. `EmbeddedChunk` computes each similarity matrix once. Metrics that differ only in weights, mass,
   alignment or scoring share it.
4. Each metric aligns and reduces its own problems. Scores go back into input order.

Read `score_alignment_metrics` first, then `TextEmbedder` and `EmbeddedChunk`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from evenmatch.alignment.batching import solver_threads
from evenmatch.errors import InputError
from evenmatch.models.checkpoints import cache_checkpoints
from evenmatch.models.embedding_cache import cache_facts, encode_cached
from evenmatch.models.hidden_states import (
    Backbone,
    BackboneEncoder,
    HiddenStates,
    IdfEncoder,
    MultiLayerEncoder,
    PaddedEncoder,
    TwoSidedEncoder,
    needs_idf_counts,
    side_encoders,
    without_weights,
)
from evenmatch.models.packing import iter_chunks
from evenmatch.protocols import BatchSplitter, Encoder, Reducer, Similarity, Solver, Splitter
from evenmatch.registry import make_signature
from evenmatch.scoring.chunking import chunk_pairs, copy_if_view, texts_of_pair
from evenmatch.scoring.inputs import check_pairs
from evenmatch.types import Array, Embedded, Pair, Problem, Run, Score, Scores, Units


class MatchingParts(Protocol):
    """The parts that turn the units of two texts into a score."""

    @property
    def vectors(self) -> Encoder: ...
    @property
    def similarity(self) -> Similarity: ...
    @property
    def alignment(self) -> Solver: ...
    @property
    def scoring(self) -> Reducer: ...


class AlignmentParts(MatchingParts, Protocol):
    """The five parts of an alignment metric."""

    @property
    def units(self) -> Splitter: ...


M = TypeVar("M", bound=AlignmentParts)

# How a text is split and embedded. Parts compare by value, so equal parts are one dictionary key.
EmbeddingParts: TypeAlias = tuple[Splitter, Encoder]

# The same for candidates and for references; the two differ only for a `TwoSidedEncoder`.
SideParts: TypeAlias = tuple[EmbeddingParts, EmbeddingParts]


@cache_checkpoints()
def score_alignment_metrics(
    metrics: Sequence[AlignmentParts], pairs: Sequence[Pair], run: Run
) -> list[Scores]:
    """Score all pairs with all metrics; one `Scores` per metric, segments in input order."""
    check_pairs(pairs)
    metrics = [with_idf_counts(metric, pairs) for metric in metrics]
    embedder = TextEmbedder(metrics, run)
    results: list[list[Score | None]] = [[None] * len(pairs) for _ in metrics]
    done = 0
    for indexes, reused in chunk_pairs(pairs, _pad_to(metrics), cached=run.cache is not None):
        # The embedded chunk gets no name: a variable would keep it alive beside the next one.
        found = _score_chunk(
            embedder.embed_chunk([pairs[i] for i in indexes], reused), metrics, run
        )
        for row, scores in zip(results, found, strict=True):
            for index, score in zip(indexes, scores, strict=True):
                row[index] = score
        done += len(indexes)
        if run.progress:
            run.progress(done, len(pairs))
    return [
        Scores(tuple(score for score in row if score is not None), _run_signature(metric, run))
        for row, metric in zip(results, metrics, strict=True)
    ]


def with_idf_counts(metric: M, pairs: Iterable[Pair]) -> M:
    """Return the metric with its idf tables counted from these pairs, if it needs any."""
    encoder = metric.vectors
    if not needs_idf_counts(encoder):
        return metric
    references = (reference for pair in pairs for reference in pair.references)
    if isinstance(encoder, TwoSidedEncoder):
        encoder = encoder.with_side_idf((pair.candidate for pair in pairs), references)
    elif isinstance(encoder, IdfEncoder):
        encoder = encoder.with_idf(references)
    counted: M = dataclasses.replace(metric, vectors=encoder)  # type: ignore[type-var]  # parts are dataclasses
    return counted


def _pad_to(metrics: Sequence[AlignmentParts]) -> int:
    """The length in tokens that texts are padded to; 0 without padding."""
    encoders = [metric.vectors for metric in metrics]
    return max((e.pad_to for e in encoders if isinstance(e, PaddedEncoder)), default=0)


def _score_chunk(
    chunk: EmbeddedChunk, metrics: Sequence[AlignmentParts], run: Run
) -> list[list[Score]]:
    with single_blas_thread(), solver_threads(thread_count(run)):
        return [list(chunk.scores(metric)) for metric in metrics]


def _run_signature(metric: AlignmentParts, run: Run) -> str:
    """The metric's signature; the form of the embedding cache is part of it where one is used."""
    uses_cache = isinstance(metric.vectors, BackboneEncoder | TwoSidedEncoder)
    return make_signature(metric, *(cache_facts(run.cache) if uses_cache else ()))


class TextEmbedder:
    """Embed each distinct text of a chunk once, for all metrics.

    Encoders with equal backbones share its hidden states: the backbone runs once per text, for
    all layers that any of them reads. Other encoders are called with the units themselves, which
    are split once for each distinct splitter. Texts that occur again in a later chunk keep their
    vectors.
    """

    def __init__(self, metrics: Sequence[AlignmentParts], run: Run) -> None:
        self._run = run
        self._side_parts: dict[EmbeddingParts, SideParts] = {
            (m.units, m.vectors): _parts_by_side(m.units, m.vectors) for m in metrics
        }
        self._embedding_parts = list(
            dict.fromkeys(parts for sides in self._side_parts.values() for parts in sides)
        )
        # Resolving the layers of an encoder reads the disk: do it once per call, not once per text.
        self._layers: dict[Encoder, tuple[int, ...]] = {
            e: e.layer_indices() if isinstance(e, MultiLayerEncoder) else (e.layer_index(),)
            for _, e in self._embedding_parts
            if isinstance(e, BackboneEncoder)
        }
        self._backbones = self._group_by_backbone()
        self._identities = {b: b.identity() for b in self._backbones if run.cache}
        self._embedded: dict[EmbeddingParts, dict[str, Embedded]] = {
            parts: {} for parts in self._embedding_parts
        }
        self._units: dict[Splitter, dict[str, Units]] = {}

    def _group_by_backbone(self) -> Mapping[Backbone, list[EmbeddingParts]]:
        groups: dict[Backbone, list[EmbeddingParts]] = {}
        for parts in self._embedding_parts:
            if isinstance(parts[1], BackboneEncoder):
                groups.setdefault(parts[1].backbone, []).append(parts)
        return groups

    def embed_chunk(self, pairs: Sequence[Pair], reused: Collection[str]) -> EmbeddedChunk:
        """Embed the texts of these pairs.

        Vectors of earlier texts are dropped, except those of `reused` texts, which occur in this
        chunk or in a later one.
        """
        texts = dict.fromkeys(text for pair in pairs for text in texts_of_pair(pair))
        self._drop_texts_except(texts.keys() | set(reused))
        new = self._texts_to_embed(texts, pairs)
        for backbone, sharing in self._backbones.items():
            self._embed_by_backbone(backbone, {parts: new[parts] for parts in sharing})
        for splitter, encoder in self._embedding_parts:
            if encoder not in self._layers:  # it has no backbone
                some = new[splitter, encoder]
                vectors = encoder(self._split_once(splitter, some))
                self._embedded[splitter, encoder].update(zip(some, vectors, strict=True))
        return EmbeddedChunk(pairs, self._side_parts, self._embedded)

    def _drop_texts_except(self, kept: Collection[str]) -> None:
        self._embedded = {
            parts: {t: _copy_vectors_if_view(e) for t, e in embedded.items() if t in kept}
            for parts, embedded in self._embedded.items()
        }
        self._units = {splitter: {} for splitter, _ in self._embedding_parts}

    def _texts_to_embed(
        self, texts: Iterable[str], pairs: Sequence[Pair]
    ) -> dict[EmbeddingParts, list[str]]:
        """The texts that each encoder still has to embed: candidates, references or both."""
        candidates = {pair.candidate for pair in pairs}
        references = {reference for pair in pairs for reference in pair.references}
        wanted: dict[EmbeddingParts, set[str]] = {parts: set() for parts in self._embedding_parts}
        for candidate_parts, reference_parts in self._side_parts.values():
            wanted[candidate_parts] |= candidates
            wanted[reference_parts] |= references
        return {
            parts: [t for t in texts if t in wanted[parts] and t not in self._embedded[parts]]
            for parts in self._embedding_parts
        }

    def _embed_by_backbone(
        self, backbone: Backbone, new: Mapping[EmbeddingParts, Sequence[str]]
    ) -> None:
        """Run the backbone once over the new texts and let every encoder read its hidden states."""
        layers = sorted({layer for _, encoder in new for layer in self._layers[encoder]})
        texts = list(dict.fromkeys(text for own in new.values() for text in own))
        found = encode_cached(
            backbone, texts, layers, self._run, self._identities.get(backbone, "")
        )
        states = dict(zip(texts, found, strict=True))
        for parts, own in new.items():
            self._embedded[parts].update(
                self._embed_hidden_states(parts, [states[text] for text in own])
            )

    def _embed_hidden_states(
        self, parts: EmbeddingParts, states: Sequence[HiddenStates]
    ) -> Iterator[tuple[str, Embedded]]:
        splitter, encoder = parts
        assert isinstance(encoder, BackboneEncoder)
        layer = self._layers[encoder][-1]
        every_unit = self._split_once(splitter, [state.text for state in states])
        for units, state in zip(every_unit, states, strict=True):
            yield units.text, encoder.embed(units, state, layer)

    def _split_once(self, splitter: Splitter, texts: Sequence[str]) -> list[Units]:
        """Split each text once per splitter; encoders with the same splitter share the units."""
        known = self._units[splitter]
        new = [text for text in texts if text not in known]
        known.update(zip(new, split_texts(splitter, new), strict=True))
        return [known[text] for text in texts]


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedChunk:
    """The pairs of one chunk and the vectors of their texts.

    Similarity matrices and alignment problems are computed on first use and shared between
    metrics. There is one per candidate and reference, in the order of `_embedded_pairs`.
    """

    pairs: Sequence[Pair]
    sides: Mapping[EmbeddingParts, SideParts]
    embedded: Mapping[EmbeddingParts, Mapping[str, Embedded]]
    similarities: dict[tuple[SideParts, Similarity], list[Array]] = field(default_factory=dict)
    problems: dict[tuple[SideParts, Similarity], list[Problem]] = field(default_factory=dict)

    def scores(self, metric: AlignmentParts) -> Iterator[Score]:
        """Score each pair of the chunk; with several references the best score counts."""
        sides = self.sides[metric.units, metric.vectors]
        problems = self._alignment_problems(sides, metric.similarity)
        scores = [
            metric.scoring(problem.similarity, alignment, x, y)
            for problem, alignment, (x, y) in zip(
                problems, metric.alignment(problems), self._embedded_pairs(sides), strict=True
            )
        ]
        if len(scores) == len(self.pairs):  # one reference each
            yield from scores
            return
        remaining = iter(scores)
        for pair in self.pairs:
            yield max((next(remaining) for _ in pair.references), key=lambda score: score.value)

    def _alignment_problems(self, sides: SideParts, similarity: Similarity) -> list[Problem]:
        """The similarity matrices with the mass of each side's units."""
        if (sides, similarity) not in self.problems:
            matrices = self._similarity_matrices(sides, similarity)
            self.problems[sides, similarity] = [
                Problem(matrix, x.mass, y.mass)
                for matrix, (x, y) in zip(matrices, self._embedded_pairs(sides), strict=True)
            ]
        return self.problems[sides, similarity]

    def _similarity_matrices(self, sides: SideParts, similarity: Similarity) -> list[Array]:
        # A similarity reads vectors only, so encoders that differ in weights or mass share it.
        key = (_without_weights(sides), similarity)
        if key not in self.similarities:
            owners = (pair for pair in self.pairs for _ in pair.references)
            self.similarities[key] = [
                check_similarity(similarity(x, y), pair)
                for pair, (x, y) in zip(owners, self._embedded_pairs(sides), strict=True)
            ]
        return self.similarities[key]

    def _embedded_pairs(self, sides: SideParts) -> Iterator[tuple[Embedded, Embedded]]:
        """Each candidate with each of its references."""
        candidates, references = (self.embedded[parts] for parts in sides)
        for pair in self.pairs:
            candidate = candidates[pair.candidate]
            for reference in pair.references:
                yield candidate, references[reference]


def _parts_by_side(units: Splitter, encoder: Encoder) -> SideParts:
    for_candidates, for_references = side_encoders(encoder)
    return (units, for_candidates), (units, for_references)


def _without_weights(sides: SideParts) -> SideParts:
    (units, for_candidates), (_, for_references) = sides
    return (units, without_weights(for_candidates)), (units, without_weights(for_references))


def _copy_vectors_if_view(embedded: Embedded) -> Embedded:
    """The same units with vectors that can outlive their chunk (see `copy_if_view`)."""
    vectors = copy_if_view(embedded.vectors)
    unchanged = vectors is embedded.vectors
    return embedded if unchanged else dataclasses.replace(embedded, vectors=vectors)


def split_texts(splitter: Splitter, texts: Sequence[str]) -> list[Units]:
    """Split texts into units, as one batch if the splitter supports it."""
    if isinstance(splitter, BatchSplitter):
        return splitter.split_batch(texts)
    return [splitter(text) for text in texts]


def check_similarity(similarity: Array, pair: Pair) -> Array:
    """Return the similarity matrix in double precision; raise InputError for NaN or infinity."""
    if not np.isfinite(similarity).all():
        raise InputError(
            f"a similarity is not a number for the candidate {pair.candidate[:60]!r}; "
            "check the vectors its encoder gives"
        )
    return np.asarray(similarity, dtype=np.float64)


def score_in_chunks(
    pairs: Sequence[Pair],
    run: Run,
    score_chunk: Callable[[Sequence[Pair], Run], Iterable[Score]],
) -> tuple[Score, ...]:
    """Score pairs chunk by chunk and report progress, for metrics that are not made of parts."""
    check_pairs(pairs)
    segments: list[Score] = []
    for chunk in iter_chunks(pairs):
        segments += score_chunk(chunk, run)
        if run.progress:
            run.progress(len(segments), len(pairs))
    return tuple(segments)


def single_blas_thread() -> AbstractContextManager[Any]:
    """Limit numpy's matrix products to one thread inside the context.

    A similarity matrix takes about 20 microseconds on one thread. Two threads are no faster, since
    they wait for each other; on a busy machine that wait was measured at 40 times the product.
    """
    limited: AbstractContextManager[Any] = _blas_controller().limit(limits=1)
    return limited


def thread_count(run: Run) -> int:
    """The number of threads a call may use: `run.threads`, or torch's setting, or 1."""
    torch = sys.modules.get("torch")
    return run.threads or (torch.get_num_threads() if torch else 1)


@cache
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
