"""Keyphrase metrics: FG, FB, F1@k and F1@M.

`KeyphraseMetric` is an alignment metric whose units are keyphrases, cleaned by named policies. The
metrics with a name of their own are settings of it. Below them, `score_keyphrase_metrics` scores
documents with many such metrics at once; phrase lists, similarities and alignments that several
metrics share are computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.phrase_lists import (
    PairPhrases,
    PhraseCleaning,
    PhrasePolicy,
    PhraseSubset,
    select_phrases,
    split_pair,
)
from evenmatch.metrics.keyphrases.phrase_reducers import Counts, F1At, FineGrained
from evenmatch.metrics.keyphrases.phrase_similarity import DEFAULT_SCORER, ByMetric, PhraseScorer
from evenmatch.metrics.ngram.tokens import library_version
from evenmatch.protocols import BoundedReducer, Encoder, Reducer, Similarity, Solver
from evenmatch.registry import check_settings, make_signature, register
from evenmatch.registry.parts import with_settings_of
from evenmatch.scoring.engine import MatchingParts
from evenmatch.scoring.inputs import check_pairs
from evenmatch.similarity.strings import Exact, PhraseStringSimilarity
from evenmatch.similarity.vectors import similarity_bounds
from evenmatch.types import Alignment, Array, Embedded, Pair, Problem, Run, Score, Scores
from evenmatch.units.keyphrases import Phrases
from evenmatch.vectors.hashed import Bare

EmbeddedPhrases: TypeAlias = tuple[Embedded, Embedded]  # of a candidate and of one reference
T = TypeVar("T")


@register("metric", "keyphrases")
@dataclass(frozen=True)
class KeyphraseMetric:
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
    higher_is_better: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)
        if self.most < 0:
            raise InputError(f"most must be 0 (all phrases) or more, got {self.most}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Scores in order, with the best reference each; a corpus score if it is not the mean."""
        return self.score_with_counts(pairs)[0]

    def score_with_counts(self, pairs: Sequence[Pair]) -> tuple[Scores, Array]:
        """The scores, and one row of counts per pair; `score_totals` scores sums of such rows."""
        return score_keyphrase_metrics([self], pairs)[0]

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

    def sources(self) -> tuple[str, ...]:
        """The version of the stemmer's library."""
        return (library_version("nltk"),) if self.units.stem == "porter" else ()

    @property
    def signature(self) -> str:
        """The metric's spec with all non-default policies, and the stemmer's version."""
        return make_signature(self)


@register("metric", "fg")
def fg(
    mode: Literal["released", "paper"] = "released",
    which: PhraseSubset = "all",
    similarity: Similarity = PhraseStringSimilarity(),
    repetition: bool = True,
    quantity: bool = True,
    both_empty: float = 1.0,
    duplicates: PhrasePolicy = "drop",
    reference_duplicates: Literal["drop", "keep"] = "drop",
    invalid: PhrasePolicy = "drop",
    most: int = 200,
    no_reference: Literal["count", "skip"] = "count",
    stem: Literal["porter", "none"] = "porter",
    tokens: Literal["auto", "whitespace", "words"] = "auto",
) -> KeyphraseMetric:
    """FG: partial matches count, repetition and quantity are penalized (Luo et al. 2021).

    A phrase scores its similarity to the most similar reference phrase. `mode`, `repetition`,
    `quantity` and `both_empty` are settings of `fine_grained`. `which`, `duplicates`,
    `reference_duplicates`, `invalid`, `most` and `no_reference` are policies of `keyphrases`.
    `stem` and `tokens` are settings of `phrases`. `similarity` may also be `edit` or `token_f1`
    alone, or semantic: `by_metric(metric=f_disc)`.
    """
    return KeyphraseMetric(
        Phrases(stem=stem, tokens=tokens),
        which,
        duplicates,
        reference_duplicates,
        invalid,
        most,
        no_reference,
        similarity=similarity,
        alignment=Greedy(),
        scoring=FineGrained(mode, repetition, quantity, both_empty),
    )


@register("metric", "fb")
def fb(
    model: str = DEFAULT_SCORER,
    mode: Literal["released", "paper"] = "paper",
    which: PhraseSubset = "all",
    both_empty: float = 1.0,
    duplicates: PhrasePolicy = "drop",
    tokens: Literal["auto", "whitespace", "words"] = "auto",
) -> KeyphraseMetric:
    """FB: the FG score with phrases compared by a trained model (Luo et al. 2021).

    `model` is the folder of a scorer trained by `evenmatch fit --keyphrases`; the default is the
    one in the model directory. The other settings are those of `fg`. `mode` is 'paper' here, since
    the authors' released code does not compute the FB of their equation 8.
    """
    return fg(
        mode,
        which,
        ByMetric(PhraseScorer(model)),
        both_empty=both_empty,
        duplicates=duplicates,
        tokens=tokens,
    )


@register("metric", "keyphrase_f1")
def keyphrase_f1(
    k: int | Literal["M", "G", "O"] = "M",
    which: PhraseSubset = "all",
    pad: bool = True,
    average: Literal["macro", "mean", "micro"] = "macro",
    similarity: Similarity = Exact(),
    duplicates: PhrasePolicy = "drop",
    reference_duplicates: Literal["drop", "keep"] = "drop",
    invalid: PhrasePolicy = "drop",
    most: int = 200,
    no_reference: Literal["count", "skip"] = "count",
    stem: Literal["porter", "none"] = "porter",
    tokens: Literal["auto", "whitespace", "words"] = "auto",
) -> KeyphraseMetric:
    """F1 of the first `k` phrases, matched one to one after stemming.

    `k`, `pad` and `average` are settings of `f1_at`. `which`, `duplicates`, `reference_duplicates`,
    `invalid`, `most` and `no_reference` are policies of `keyphrases`. `stem` and `tokens` are
    settings of `phrases`. The defaults are those of Chan et al. (2019).
    """
    return KeyphraseMetric(
        Phrases(stem=stem, tokens=tokens),
        which,
        duplicates,
        reference_duplicates,
        invalid,
        most,
        no_reference,
        similarity=similarity,
        alignment=Lsa(),
        scoring=F1At(k, pad, average),
    )


@register("metric", "f1_at_5")
@with_settings_of(keyphrase_f1, "k")
def f1_at_5(**settings: Any) -> KeyphraseMetric:
    """F1@5: F1 of the first five phrases, padded to five with wrong ones (see `keyphrase_f1`)."""
    return keyphrase_f1(5, **settings)


@register("metric", "f1_at_m")
@with_settings_of(keyphrase_f1, "k", "pad")
def f1_at_m(**settings: Any) -> KeyphraseMetric:
    """F1@M: F1 of all predicted phrases (see `keyphrase_f1`)."""
    return keyphrase_f1("M", **settings)


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


class KeyphraseParts(MatchingParts, Protocol):
    """The parts and policies of a keyphrase metric."""

    @property
    def cleaning(self) -> PhraseCleaning: ...
    @property
    def which(self) -> PhraseSubset: ...
    @property
    def no_reference(self) -> str: ...
    def score_totals(self, totals: Array, /) -> Array: ...


_CHUNK_SIZE = 512  # documents whose lists and matrices are held at a time


def score_keyphrase_metrics(
    metrics: Sequence[KeyphraseParts], pairs: Sequence[Pair], run: Run = Run()
) -> list[tuple[Scores, Array]]:
    """Score the pairs with each metric; also return one row of counts per pair.

    A metric's `score_totals` turns sums of these rows into corpus scores.
    """
    check_pairs(pairs)
    found: list[list[tuple[Score, Counts]]] = [[] for _ in metrics]
    for start in range(0, len(pairs), _CHUNK_SIZE):
        chunk = _KeyphraseChunk(pairs[start : start + _CHUNK_SIZE], start)
        for scored, metric in zip(found, metrics, strict=True):
            scored += chunk.score_pairs(metric)
        if run.progress:
            run.progress(min(start + _CHUNK_SIZE, len(pairs)), len(pairs))
    return [_collect_scores(metric, scored) for metric, scored in zip(metrics, found, strict=True)]


def _collect_scores(
    metric: KeyphraseParts, found: Sequence[tuple[Score, Counts]]
) -> tuple[Scores, Array]:
    counts = np.array([row for _, row in found], dtype=np.float64)
    is_mean = not isinstance(metric.scoring, CountingReducer) and metric.no_reference == "count"
    corpus = None if is_mean or not found else float(metric.score_totals(counts.sum(0)))
    return Scores(tuple(score for score, _ in found), make_signature(metric), corpus), counts


def mean_from_totals(totals: Array) -> Array:
    """Mean score, from totals of (score, 1)."""
    return totals[..., 0] / np.maximum(totals[..., 1], 1.0)


class _KeyphraseChunk:
    """A chunk of pairs; intermediate results are computed on first use and shared by metrics."""

    def __init__(self, pairs: Sequence[Pair], first_row: int) -> None:
        self._pairs = pairs
        self._first_row = first_row
        self._memo: dict[Hashable, Any] = {}

    def score_pairs(self, metric: KeyphraseParts) -> Iterator[tuple[Score, Counts]]:
        """Yield the score and the counts of each pair; with several references the best counts."""
        # Each key extends the previous one: a result depends on all parts before it.
        list_key = (metric.cleaning, metric.which)
        embedding_key = (*list_key, metric.vectors)
        similarity_key = (*embedding_key, metric.similarity)
        alignment_key = (*similarity_key, metric.alignment)

        lists = self._memoize(list_key, lambda: self._select_lists(*list_key))
        sides = self._memoize(embedding_key, lambda: _embed_lists(lists, metric.vectors))
        similarity = self._prepared_similarity(metric)
        similarities = self._memoize(similarity_key, lambda: [similarity(x, y) for x, y in sides])
        alignments = self._memoize(
            alignment_key, lambda: _align_lists(sides, similarities, metric.alignment)
        )
        score = _counting_function(metric)
        scored = (
            score(s, a, x, y) for s, a, (x, y) in zip(similarities, alignments, sides, strict=True)
        )
        for pair in lists:
            of_references = [next(scored) for _ in pair.references]
            yield max(of_references, key=lambda found: found[0].value)

    def _prepared_similarity(self, metric: KeyphraseParts) -> Similarity:
        """The metric's similarity, prepared for all phrases: present, absent and duplicate ones."""
        similarity = metric.similarity
        if not isinstance(similarity, BatchSimilarity):
            return similarity
        batched, cleaning = similarity, metric.cleaning
        return self._memoize(
            (cleaning, metric.vectors, similarity),
            lambda: batched.prepare(_embed_lists(self._split_lists(cleaning), metric.vectors)),
        )

    def _split_lists(self, cleaning: PhraseCleaning) -> list[PairPhrases]:
        return self._memoize(cleaning, lambda: [split_pair(pair, cleaning) for pair in self._pairs])

    def _select_lists(self, cleaning: PhraseCleaning, which: PhraseSubset) -> list[PairPhrases]:
        rows = enumerate(self._split_lists(cleaning), self._first_row)
        return [select_phrases(each, which, cleaning, row) for row, each in rows]

    def _memoize(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._memo:
            self._memo[key] = make()
        found: T = self._memo[key]
        return found


def _embed_lists(lists: Sequence[PairPhrases], encoder: Encoder) -> list[EmbeddedPhrases]:
    """Embed both sides of every comparison; a candidate also carries the flags of its pair."""
    flat = [side.units for each in lists for side in (each.candidate, *each.references)]
    found = iter(encoder(flat))
    sides = []
    for each in lists:
        candidate = next(found)
        if each.flags:
            candidate = replace(candidate, flags=candidate.flags | each.flags)
        sides += [(candidate, next(found)) for _ in each.references]
    return sides


def _align_lists(
    sides: Sequence[EmbeddedPhrases], similarities: Sequence[Array], solver: Solver
) -> list[Alignment]:
    return solver(
        [Problem(s, x.mass, y.mass) for s, (x, y) in zip(similarities, sides, strict=True)]
    )


def _counting_function(metric: KeyphraseParts) -> Callable[..., tuple[Score, Counts]]:
    """A function from the alignment of a document's phrases to its score and counts."""
    reducer, skip = metric.scoring, metric.no_reference == "skip"
    counting = reducer if isinstance(reducer, CountingReducer) else None

    def score_and_counts(
        similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> tuple[Score, Counts]:
        if counting:
            counts = counting.count_matches(similarity, alignment, x, y)
            score = counting.score_counts(counts, x, y)
        else:
            score = reducer(similarity, alignment, x, y)
            counts = (score.value, 1.0)
        if skip and not len(y.weights):
            counts = (0.0,) * len(counts)
        return score, counts

    return score_and_counts
