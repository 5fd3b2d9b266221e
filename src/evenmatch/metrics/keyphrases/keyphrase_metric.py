"""The keyphrase metric: an alignment metric whose units are keyphrases.

`KeyphraseMetric` cleans predicted and reference lists by named policies, aligns their phrases and
reduces the alignment. FG, FB, F1@k and F1@M are presets of it (`metrics/presets.py`). Phrase lists,
similarities and alignments that several metrics of a call share are computed once (`_ChunkLists`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from evenmatch.alignment.assignment import Greedy
from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.phrase_lists import (
    PairPhrases,
    PhraseCleaning,
    PhrasePolicy,
    PhraseSubset,
    select_phrases,
    split_pair,
)
from evenmatch.metrics.keyphrases.phrase_reducers import Counts, FineGrained
from evenmatch.metrics.ngram.tokens import library_version
from evenmatch.protocols import BoundedReducer, Encoder, Reducer, Similarity, Solver
from evenmatch.registry import CallContext, check_settings, make_signature, register
from evenmatch.scoring.engine import Chunk, ChunkScores, EngineMetric, ReadyMetric, open_encoder
from evenmatch.similarity.strings import PhraseStringSimilarity
from evenmatch.similarity.vectors import similarity_bounds
from evenmatch.types import Alignment, Array, Embedded, OpenEncoder, Problem, Score
from evenmatch.units.keyphrases import Phrases
from evenmatch.vectors.hashed import Bare

EmbeddedPhrases: TypeAlias = tuple[Embedded, Embedded]  # of a candidate and of one reference


@register("metric", "keyphrases")
@dataclass(frozen=True)
class KeyphraseMetric(EngineMetric):
    """Score predicted keyphrases against reference keyphrases, both given as text separated by `;`.

    `units` splits the lists and stems the words. `which` selects all phrases, those 'present' in
    the source (the stemmed words occur there consecutively), or the 'absent' ones. `duplicates` is
    the policy for candidate phrases that equal an earlier one after stemming: drop them, count them
    as wrong or keep them. `reference_duplicates` is the same for reference phrases. `invalid` is
    the policy for candidate phrases with a comma, a full stop or `<unk>` as a word. `most` is the
    number of candidate phrases that are read, from the first; 0 reads all. `no_reference` 'count'
    includes documents without reference phrases in the corpus score, as the reducer scores them;
    'skip' leaves them out. The other parts are those of `align`.
    """

    units: Phrases = Phrases()
    which: PhraseSubset = "all"
    duplicates: PhrasePolicy = "drop"
    reference_duplicates: Literal["drop", "keep"] = "drop"
    invalid: PhrasePolicy = "drop"
    most: int = 200
    no_reference: Literal["count", "skip"] = "count"
    vectors: Encoder = Bare()
    similarity: Similarity = PhraseStringSimilarity()
    alignment: Solver = Greedy()
    scoring: Reducer = FineGrained()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.most < 0:
            raise InputError(f"most must be 0 (all phrases) or more, got {self.most}")

    def open(self, context: CallContext) -> ReadyMetric:
        """Open the encoder; metrics of one call share lists, matrices and alignments."""
        encoder = open_encoder(self.vectors, context)[0]
        # Without counts and omitted documents the corpus score would be the mean.
        is_mean = not isinstance(self.scoring, CountingReducer) and self.no_reference == "count"

        def score_chunk(chunk: Chunk) -> ChunkScores:
            found = self._score_lists(_ChunkLists(chunk, self, encoder))
            best = chunk.best_scores(found, lambda each: each[0].value)
            return [score for score, _ in best], np.array([row for _, row in best], np.float64)

        totals = None if is_mean else self.score_totals
        return ReadyMetric(make_signature(self, context), score_chunk, totals)

    def _score_lists(self, lists: _ChunkLists) -> Iterator[tuple[Score, Counts]]:
        """Yield the score and the counts of each candidate and reference list."""
        reducer, skip = self.scoring, self.no_reference == "skip"
        counting = reducer if isinstance(reducer, CountingReducer) else None
        matrices = lists.similarities()
        for s, a, (x, y) in zip(matrices, lists.alignments(), lists.embedded(), strict=True):
            if counting:
                counts = counting.count_matches(s, a, x, y)
                score = counting.score_counts(counts, x, y)
            else:
                score = reducer(s, a, x, y)
                counts = (score.value, 1.0)
            yield score, (0.0,) * len(counts) if skip and not len(y.weights) else counts

    def score_totals(self, totals: Array) -> Array:
        """Corpus score of each row of totals."""
        if isinstance(self.scoring, CountingReducer):
            return self.scoring.score_totals(totals)
        return mean_from_totals(totals)

    @property
    def cleaning(self) -> PhraseCleaning:
        """The settings for making phrase lists; metrics with equal ones share the lists."""
        return PhraseCleaning(
            self.units, self.duplicates, self.reference_duplicates, self.invalid, self.most
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of scores; infinite where the similarity or the reducer declares no bounds."""
        low, high = similarity_bounds(self.similarity)
        if isinstance(self.scoring, BoundedReducer):
            return self.scoring.score_bounds(low, high)
        return (-math.inf, math.inf)

    def resolve(self, context: CallContext) -> tuple[KeyphraseMetric, tuple[str, ...]]:
        """Return the metric with the version of the stemmer's library."""
        return self, (library_version("nltk"),) if self.units.stem == "porter" else ()


@runtime_checkable
class CountingReducer(Protocol):
    """A reducer that scores a corpus from counts summed over its documents."""

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Counts: ...
    def score_counts(self, counts: Counts, x: Embedded, y: Embedded, /) -> Score: ...
    def score_totals(self, totals: Array, /) -> Array: ...


@runtime_checkable
class BatchSimilarity(Protocol):
    """A similarity that is faster when it is prepared with all pairs of texts at once."""

    def prepare(self, sides: Sequence[EmbeddedPhrases], /) -> Similarity: ...


def mean_from_totals(totals: Array) -> Array:
    """Mean score, from totals of (score, 1)."""
    return totals[..., 0] / np.maximum(totals[..., 1], 1.0)


class _ChunkLists:
    """The phrase lists of a chunk for one metric; metrics with equal parts share each result."""

    def __init__(self, chunk: Chunk, metric: KeyphraseMetric, encoder: OpenEncoder) -> None:
        self._chunk = chunk
        self._metric = metric
        self._encoder = encoder
        # Each key extends the previous one: a result depends on all parts before it.
        self._split_key = (metric.cleaning,)
        self._list_key = (metric.cleaning, metric.which)
        self._embedding_key = (*self._list_key, encoder)
        self._similarity_key = (*self._embedding_key, metric.similarity)
        self._alignment_key = (*self._similarity_key, metric.alignment)

    def embedded(self) -> list[EmbeddedPhrases]:
        """Return the embedded lists of each candidate and reference."""
        return self._chunk.share(self._embedding_key, lambda: self._embed(self._selected_lists()))

    def similarities(self) -> list[Array]:
        """Return a similarity matrix per candidate and reference."""
        similarity = self._prepared_similarity()
        return self._chunk.share(
            self._similarity_key, lambda: [similarity(x, y) for x, y in self.embedded()]
        )

    def alignments(self) -> list[Alignment]:
        """Return an alignment per candidate and reference."""
        matrices = zip(self.similarities(), self.embedded(), strict=True)
        return self._chunk.share(
            self._alignment_key,
            lambda: self._metric.alignment([Problem(s, x.mass, y.mass) for s, (x, y) in matrices]),
        )

    def _split_lists(self) -> list[PairPhrases]:
        cleaning = self._metric.cleaning
        return self._chunk.share(
            self._split_key, lambda: [split_pair(pair, cleaning) for pair in self._chunk.pairs]
        )

    def _selected_lists(self) -> list[PairPhrases]:
        cleaning, which = self._list_key
        lists = zip(self._chunk.rows, self._split_lists(), strict=True)
        return self._chunk.share(
            self._list_key,
            lambda: [select_phrases(each, which, cleaning, row) for row, each in lists],
        )

    def _prepared_similarity(self) -> Similarity:
        """Return the similarity, prepared for all phrases: present, absent and duplicate ones."""
        similarity = self._metric.similarity
        if not isinstance(similarity, BatchSimilarity):
            return similarity
        prepare = similarity.prepare
        return self._chunk.share(
            (*self._split_key, self._encoder, similarity),
            lambda: prepare(self._embed(self._split_lists())),
        )

    def _embed(self, lists: Sequence[PairPhrases]) -> list[EmbeddedPhrases]:
        """Embed both sides of every comparison; a candidate also carries the flags of its pair."""
        flat = [side.units for each in lists for side in (each.candidate, *each.references)]
        found = iter(self._encoder.encode(flat))
        sides = []
        for each in lists:
            candidate = next(found)
            if each.flags:
                candidate = replace(candidate, flags=candidate.flags | each.flags)
            sides += [(candidate, next(found)) for _ in each.references]
        return sides
