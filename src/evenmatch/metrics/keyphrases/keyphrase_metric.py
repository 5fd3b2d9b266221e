"""The keyphrase metric: an alignment metric whose units are keyphrases.

`KeyphraseMetric` cleans predicted and reference lists by named policies, aligns their phrases and
reduces the alignment. FG, FB, F1@k and F1@M are presets of it (`metrics/presets.py`). Phrase lists,
similarities and alignments that several metrics of a call share are computed once (`_align_lists`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.alignment.assignment import Greedy
from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.phrase_lists import (
    PairPhrases,
    PhrasePolicy,
    PhraseSubset,
    select_phrases,
    split_pair,
)
from evenmatch.metrics.keyphrases.phrase_reducers import CountingReducer, Counts, FineGrained
from evenmatch.metrics.ngram.tokens import library_version
from evenmatch.protocols import BatchSimilarity, Encoder, Reducer, Similarity, Solver
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.scoring.engine import Chunk, ChunkScores, EngineMetric, ReadyMetric, open_encoder
from evenmatch.scoring.reducers import ratio, reducer_bounds
from evenmatch.similarity.strings import PhraseStringSimilarity
from evenmatch.types import Alignment, Array, Embedded, OpenEncoder, Problem, Score
from evenmatch.units.keyphrases import Phrases, variant_groups
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
    'skip' leaves them out. A reference phrase with variants counts as the one that is most similar
    to a candidate phrase. The other parts are those of `align`.
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
            found = self._score_lists(chunk, encoder)
            best = chunk.best_scores(found, lambda each: each[0].value)
            return [score for score, _ in best], np.array([row for _, row in best], np.float64)

        totals = None if is_mean else self.score_totals
        return ReadyMetric(score_chunk, totals)

    def _score_lists(self, chunk: Chunk, encoder: OpenEncoder) -> Iterator[tuple[Score, Counts]]:
        """Yield the score and the counts of each candidate and reference list."""
        reducer, skip = self.scoring, self.no_reference == "skip"
        for s, a, (x, y) in self._align_lists(chunk, encoder):
            if isinstance(reducer, CountingReducer):
                counts = reducer.count_matches(s, a, x, y)
                score = reducer.score_counts(counts, x, y)
            else:
                score = reducer(s, a, x, y)
                counts = (score.value, 1.0)
            yield score, (0.0,) * len(counts) if skip and not len(y.weights) else counts

    def _align_lists(
        self, chunk: Chunk, encoder: OpenEncoder
    ) -> Iterator[tuple[Array, Alignment, EmbeddedPhrases]]:
        """Yield similarity, alignment and phrases of each candidate list with a reference list.

        Metrics with equal parts share each result; its key has all parts that it depends on.
        """
        splitting, similarity = (self.units, self.most), self.similarity
        split = chunk.share(splitting, lambda: [split_pair(p, *splitting) for p in chunk.pairs])
        for each in split:
            sizes = (len(reference.groups) for reference in each.references)
            chunk.run.check(*(len(each.candidate.groups) * size for size in sizes))
        if isinstance(similarity, BatchSimilarity):
            # Prepared with all phrases: present, absent and duplicate ones.
            prepare = similarity.prepare
            similarity = chunk.share(
                (splitting, encoder, similarity), lambda: prepare(_embed_lists(split, encoder))
            )

        def select_lists() -> list[PairPhrases]:
            rows = zip(split, chunk.rows, strict=True)
            return [select_phrases(each, row, *self.selection) for each, row in rows]

        def compare() -> list[tuple[Array, EmbeddedPhrases]]:
            return [_choose_variants(similarity(x, y), x, y) for x, y in embedded]

        def align() -> list[Alignment]:
            return self.alignment([Problem(s, x.mass, y.mass) for s, (x, y) in compared])

        selected = chunk.share((splitting, self.selection), select_lists)
        key = (splitting, self.selection, encoder)
        embedded = chunk.share(key, lambda: _embed_lists(selected, encoder))
        compared = chunk.share((*key, self.similarity), compare)
        alignments = chunk.share((*key, self.similarity, self.alignment), align)
        for (matrix, sides), alignment in zip(compared, alignments, strict=True):
            yield matrix, alignment, sides

    def score_totals(self, totals: Array) -> Array:
        """Corpus score of each row of totals."""
        if isinstance(self.scoring, CountingReducer):
            return self.scoring.score_totals(totals)
        return ratio(totals[..., 0], totals[..., 1])  # totals of (score, 1)

    def precision_recall(self, totals: Array) -> tuple[Array, Array] | None:
        """Precision and recall of a corpus from its totals; None where the reducer has none."""
        if isinstance(self.scoring, CountingReducer):
            return self.scoring.precision_recall(totals)
        return None

    @property
    def selection(self) -> tuple[PhraseSubset, PhrasePolicy, PhrasePolicy, PhrasePolicy]:
        """The last arguments of `select_phrases`; metrics with equal ones share the lists."""
        return self.which, self.duplicates, self.reference_duplicates, self.invalid

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of scores; infinite where the similarity or the reducer declares no bounds."""
        return reducer_bounds(self.scoring, self.similarity)

    def resolve(self, context: CallContext) -> tuple[KeyphraseMetric, tuple[str, ...]]:
        """Return the metric with the version of the stemmer's library."""
        return self, (library_version("nltk"),) if self.units.stem == "porter" else ()


def _choose_variants(similarity: Array, x: Embedded, y: Embedded) -> tuple[Array, EmbeddedPhrases]:
    """Represent each reference phrase by its variant that is most similar to a candidate phrase."""
    phrases = variant_groups(y.units)
    if len(phrases) == len(y.units.groups):
        return similarity, (x, y)
    best = np.asarray(similarity).max(0, initial=0.0)
    chosen = [max(variants, key=lambda i: float(best[i])) for variants in phrases]
    groups = tuple(y.units.groups[i] for i in chosen)
    one_each = replace(
        y,
        units=replace(y.units, groups=groups),
        vectors=y.vectors[chosen],
        weights=y.weights[chosen],
        mass=y.mass[chosen],
    )
    return similarity[:, chosen], (x, one_each)


def _embed_lists(lists: Sequence[PairPhrases], encoder: OpenEncoder) -> list[EmbeddedPhrases]:
    """Embed both sides of every comparison; a candidate also carries the flags of its pair."""
    flat = [side for each in lists for side in (each.candidate, *each.references)]
    found = iter(encoder.encode(flat))
    sides = []
    for each in lists:
        candidate = next(found)
        if each.flags:
            candidate = replace(candidate, flags=candidate.flags | each.flags)
        sides += [(candidate, next(found)) for _ in each.references]
    return sides
