"""The texts of one window embedded, and their pairs scored: whatever is equal is made once.

Many metrics over one pass of the texts: equal parts run once, memory stays bounded.

Pairs are taken in windows. Within one, every distinct text goes through each model once, to the
deepest layer any metric wants; metrics with equal parts share units, vectors and similarities.

Pairs scored some thousands at a time, for metrics that share nothing beyond such a portion.

How many threads aligning takes: one for small matrix products, all there are for loops.
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
from evenmatch.scoring.chunking import chunk_pairs, copy_if_view
from evenmatch.scoring.inputs import check_pairs
from evenmatch.types import Array, Embedded, Pair, Problem, Run, Score, Scores, Units


class MatchingParts(Protocol):
    """What turns units of two texts into a score."""

    @property
    def vectors(self) -> Encoder: ...
    @property
    def similarity(self) -> Similarity: ...
    @property
    def alignment(self) -> Solver: ...
    @property
    def scoring(self) -> Reducer: ...


class AlignmentParts(MatchingParts, Protocol):
    """Anything with the five fields of an alignment metric."""

    @property
    def units(self) -> Splitter: ...


EmbeddingParts: TypeAlias = tuple[Splitter, Encoder]  # how a text is cut and embedded


SideParts: TypeAlias = tuple[
    EmbeddingParts, EmbeddingParts
]  # of the candidate and of the reference


class TextEmbedder:
    """Embeds the texts of window after window, each text once."""

    def __init__(self, metrics: Sequence[AlignmentParts], run: Run) -> None:
        self._run = run
        # Which layers an encoder reads is looked up on disk, so once a call and not once a text.
        self._side_parts: dict[EmbeddingParts, SideParts] = {
            (m.units, m.vectors): _sides_of_encoder(m.units, m.vectors) for m in metrics
        }
        self._embedding_parts = list(
            dict.fromkeys(view for both in self._side_parts.values() for view in both)
        )
        self._depths: dict[Encoder, tuple[int, ...]] = {
            e: e.layer_indices() if isinstance(e, MultiLayerEncoder) else (e.layer_index(),)
            for _, e in self._embedding_parts
            if isinstance(e, BackboneEncoder)
        }
        self._backbones = self._group_by_backbone()
        self._identities = {body: body.identity() for body in self._backbones if run.cache}
        self._embedded: dict[EmbeddingParts, dict[str, Embedded]] = {
            view: {} for view in self._embedding_parts
        }
        self._units: dict[Splitter, dict[str, Units]] = {}

    def embed_chunk(self, pairs: Sequence[Pair], again: Collection[str]) -> EmbeddedChunk:
        """Embed the texts of these pairs; of those embedded before keep what is needed `again`."""
        texts = dict.fromkeys(t for p in pairs for t in (p.candidate, *p.references))
        self._embedded = {
            view: {
                t: _copy_vectors_if_view(e) for t, e in known.items() if t in texts or t in again
            }
            for view, known in self._embedded.items()
        }
        self._units = {cut: {} for cut, _ in self._embedding_parts}
        new = self._texts_to_embed(texts, pairs)
        for body, views in self._backbones.items():
            depths = sorted({depth for _, encoder in views for depth in self._depths[encoder]})
            unknown = list(dict.fromkeys(t for view in views for t in new[view]))
            found = encode_cached(body, unknown, depths, self._run, self._identities.get(body, ""))
            states = dict(zip(unknown, found, strict=True))
            for view in views:
                self._embedded[view].update(
                    self._embed_hidden_states(view, [states[t] for t in new[view]])
                )
        for cut, encoder in self._embedding_parts:
            if encoder not in self._depths:
                some = new[cut, encoder]
                self._embedded[cut, encoder].update(
                    zip(some, encoder(self._split_once(cut, some)), strict=True)
                )
        return EmbeddedChunk(pairs, self._side_parts, self._embedded)

    def _texts_to_embed(
        self, texts: Iterable[str], pairs: Sequence[Pair]
    ) -> dict[EmbeddingParts, list[str]]:
        """What each view has still to embed: some look at candidates or at references only."""
        candidates = {p.candidate for p in pairs}
        references = {r for p in pairs for r in p.references}
        wanted: dict[EmbeddingParts, set[str]] = {view: set() for view in self._embedding_parts}
        for left, right in self._side_parts.values():
            wanted[left] |= candidates
            wanted[right] |= references
        return {
            view: [t for t in texts if t in wanted[view] and t not in self._embedded[view]]
            for view in self._embedding_parts
        }

    def _group_by_backbone(self) -> Mapping[Backbone, list[EmbeddingParts]]:
        bodies: dict[Backbone, list[EmbeddingParts]] = {}
        for view in self._embedding_parts:
            if isinstance(view[1], BackboneEncoder):
                bodies.setdefault(view[1].backbone, []).append(view)
        return bodies

    def _embed_hidden_states(
        self, view: EmbeddingParts, states: Sequence[HiddenStates]
    ) -> Iterator[tuple[str, Embedded]]:
        cut, encoder = view
        assert isinstance(encoder, BackboneEncoder)
        depth = self._depths[encoder][-1]
        for units, state in zip(
            self._split_once(cut, [s.text for s in states]), states, strict=True
        ):
            yield units.text, encoder.embed(units, state, depth)

    def _split_once(self, cut: Splitter, texts: Sequence[str]) -> list[Units]:
        """The texts' units, which encoders share that are given the same ones."""
        known = self._units[cut]
        new = [text for text in texts if text not in known]
        known.update(zip(new, split_texts(cut, new), strict=True))
        return [known[text] for text in texts]


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedChunk:
    """The pairs of one window with the vectors of their texts; similarities come as asked for."""

    pairs: Sequence[Pair]
    sides: Mapping[EmbeddingParts, SideParts]
    embedded: Mapping[EmbeddingParts, Mapping[str, Embedded]]
    similarities: dict[tuple[SideParts, Similarity], list[Array]] = field(default_factory=dict)
    problems: dict[tuple[SideParts, Similarity], list[Problem]] = field(default_factory=dict)

    def scores(self, metric: AlignmentParts) -> Iterator[Score]:
        """The metric's score of each pair in the window: the best over its references."""
        both = self.sides[metric.units, metric.vectors]
        problems = self._alignment_problems(both, metric.similarity)
        reduced = [
            metric.scoring(problem.similarity, alignment, x, y)
            for problem, alignment, (x, y) in zip(
                problems, metric.alignment(problems), self._embedded_pairs(both), strict=True
            )
        ]
        if len(reduced) == len(self.pairs):  # one reference each
            yield from reduced
            return
        left = iter(reduced)
        for pair in self.pairs:
            yield max((next(left) for _ in pair.references), key=lambda score: score.value)

    def _alignment_problems(self, both: SideParts, similarity: Similarity) -> list[Problem]:
        """What there is to align, which differs only by masses from what other weights pose."""
        if (both, similarity) not in self.problems:
            compared = self._similarity_matrices(both, similarity)
            self.problems[both, similarity] = [
                Problem(s, x.mass, y.mass)
                for s, (x, y) in zip(compared, self._embedded_pairs(both), strict=True)
            ]
        return self.problems[both, similarity]

    def _similarity_matrices(self, both: SideParts, similarity: Similarity) -> list[Array]:
        key = (_without_weights(both), similarity)
        if key not in self.similarities:
            owners = (pair for pair in self.pairs for _ in pair.references)
            self.similarities[key] = [
                check_similarity(similarity(x, y), pair)
                for pair, (x, y) in zip(owners, self._embedded_pairs(both), strict=True)
            ]
        return self.similarities[key]

    def _embedded_pairs(self, both: SideParts) -> Iterator[tuple[Embedded, Embedded]]:
        """Each candidate with each of its references."""
        left, right = (self.embedded[view] for view in both)
        for pair in self.pairs:
            candidate = left[pair.candidate]
            for reference in pair.references:
                yield candidate, right[reference]


def _copy_vectors_if_view(embedded: Embedded) -> Embedded:
    """The same to keep beyond its window: it must not hold on to the array it is part of."""
    vectors = copy_if_view(embedded.vectors)
    kept = vectors is embedded.vectors
    return embedded if kept else dataclasses.replace(embedded, vectors=vectors)


def _sides_of_encoder(units: Splitter, encoder: Encoder) -> SideParts:
    left, right = side_encoders(encoder)
    return (units, left), (units, right)


def _without_weights(both: SideParts) -> SideParts:
    (cut, left), (_, right) = both
    return (cut, without_weights(left)), (cut, without_weights(right))


def split_texts(splitter: Splitter, texts: Sequence[str]) -> list[Units]:
    """Each text's units, made together where the splitter can."""
    if isinstance(splitter, BatchSplitter):
        return splitter.split_batch(texts)
    return [splitter(text) for text in texts]


def check_similarity(similarity: Array, pair: Pair) -> Array:
    """The similarity in double precision, as solvers and sums take it, and nothing but numbers."""
    if not np.isfinite(similarity).all():
        raise InputError(
            f"a similarity is not a number for the candidate {pair.candidate[:60]!r}; "
            "check the vectors its encoder gives"
        )
    return np.asarray(similarity, dtype=np.float64)


P = TypeVar("P", bound=AlignmentParts)


@cache_checkpoints()
def score_alignment_metrics(
    metrics: Sequence[AlignmentParts], pairs: Sequence[Pair], run: Run
) -> list[Scores]:
    """The scores of every metric for every pair, in order."""
    check_pairs(pairs)
    ready = [with_idf_counts(metric, pairs) for metric in metrics]
    results: list[list[Score | None]] = [[None] * len(pairs) for _ in ready]
    shelf = TextEmbedder(ready, run)
    done = 0
    pad_to = max(
        (m.vectors.pad_to for m in ready if isinstance(m.vectors, PaddedEncoder)), default=0
    )
    for window, again in chunk_pairs(pairs, pad_to, cached=run.cache is not None):
        # The stock is not given a name: it would outlive its window, and lie beside the next.
        found = _score_chunk(shelf.embed_chunk([pairs[i] for i in window], again), ready, run)
        for row, scores in zip(results, found, strict=True):
            for index, score in zip(window, scores, strict=True):
                row[index] = score
        done += len(window)
        if run.progress:
            run.progress(done, len(pairs))
    return [
        Scores(tuple(score for score in row if score is not None), _run_signature(metric, run))
        for row, metric in zip(results, ready, strict=True)
    ]


def _score_chunk(
    stock: EmbeddedChunk, metrics: Sequence[AlignmentParts], run: Run
) -> list[list[Score]]:
    with single_blas_thread(), solver_threads(thread_count(run)):
        return [list(stock.scores(metric)) for metric in metrics]


def _run_signature(metric: AlignmentParts, run: Run) -> str:
    cached = isinstance(metric.vectors, BackboneEncoder | TwoSidedEncoder)
    facts = cache_facts(run.cache) if cached else ()
    return make_signature(metric, *facts)


def with_idf_counts(metric: P, pairs: Iterable[Pair]) -> P:
    """The metric with its idf tables counted from these pairs, where it asks for that."""
    encoder = metric.vectors
    if not needs_idf_counts(encoder):
        return metric
    references = (reference for pair in pairs for reference in pair.references)
    if isinstance(encoder, TwoSidedEncoder):
        encoder = encoder.with_side_idf((pair.candidate for pair in pairs), references)
    elif isinstance(encoder, IdfEncoder):
        encoder = encoder.with_idf(references)
    counted: P = dataclasses.replace(metric, vectors=encoder)  # type: ignore[type-var]  # parts are dataclasses
    return counted


def score_in_chunks(
    pairs: Sequence[Pair], run: Run, scored: Callable[[Sequence[Pair], Run], Iterable[Score]]
) -> tuple[Score, ...]:
    """The scores that `scored` gives each portion, in order, telling progress as it goes."""
    check_pairs(pairs)
    segments: list[Score] = []
    for some in iter_chunks(pairs):
        segments += scored(some, run)
        if run.progress:
            run.progress(len(segments), len(pairs))
    return tuple(segments)


def single_blas_thread() -> AbstractContextManager[Any]:
    """Keep numpy's matrix products to one thread for as long as the context lasts.

    A similarity matrix takes some 20 microseconds on one thread and no less on two, which then
    wait for each other; beside other work that wait was measured at forty times the product.
    """
    limited: AbstractContextManager[Any] = _blas_controller().limit(limits=1)
    return limited


def thread_count(run: Run) -> int:
    """The threads a call may use: torch's own number where it names none and torch is there."""
    torch = sys.modules.get("torch")
    return run.threads or (torch.get_num_threads() if torch else 1)


@cache
def _blas_controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
