"""Many keyphrase metrics over the same pairs: lists, similarities and alignments made once.

KeyphraseMetric: lists of phrases cleaned by named policies, compared, aligned and scored.

Keyphrase metrics by name: fg, fb, f1_at_5, f1_at_m, and F1 at any other cut.
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
from evenmatch.metrics.keyphrases.phrase_reducers import F1At, FineGrained
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

EmbeddedPhrases: TypeAlias = tuple[Embedded, Embedded]


Counts: TypeAlias = tuple[float, ...]


T = TypeVar("T")


_CHUNK_SIZE = 512  # documents whose lists and matrices are held at a time


@runtime_checkable
class CountingReducer(Protocol):
    """A reducer whose score of many documents comes from sums of numbers of each."""

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Counts: ...
    def score_counts(self, tally: Counts, x: Embedded, y: Embedded, /) -> Score: ...
    def score_totals(self, totals: Array, /) -> Array: ...


@runtime_checkable
class BatchSimilarity(Protocol):
    """A similarity that had better see many pairs of texts before it is asked for each."""

    def prepare(self, sides: Sequence[EmbeddedPhrases], /) -> Similarity: ...


class KeyphraseParts(MatchingParts, Protocol):
    """What a keyphrase metric is made of."""

    @property
    def cleaning(self) -> PhraseCleaning: ...
    @property
    def which(self) -> PhraseSubset: ...
    @property
    def no_reference(self) -> str: ...
    def score_totals(self, totals: Array, /) -> Array: ...


def score_keyphrase_metrics(
    metrics: Sequence[KeyphraseParts], pairs: Sequence[Pair], run: Run = Run()
) -> list[tuple[Scores, Array]]:
    """Each metric's scores of the pairs, and a row of counts per pair for `of_totals`."""
    check_pairs(pairs)
    found: list[list[tuple[Score, Counts]]] = [[] for _ in metrics]
    for start in range(0, len(pairs), _CHUNK_SIZE):
        portion = _KeyphraseChunk(pairs[start : start + _CHUNK_SIZE], start)
        for own, metric in zip(found, metrics, strict=True):
            own += portion.score_pairs(metric)
        if run.progress:
            run.progress(min(start + _CHUNK_SIZE, len(pairs)), len(pairs))
    return [_collect_scores(metric, own) for metric, own in zip(metrics, found, strict=True)]


def _collect_scores(
    metric: KeyphraseParts, found: Sequence[tuple[Score, Counts]]
) -> tuple[Scores, Array]:
    counts = np.array([row for _, row in found], dtype=np.float64)
    is_mean = not isinstance(metric.scoring, CountingReducer) and metric.no_reference == "count"
    corpus = None if is_mean or not found else float(metric.score_totals(counts.sum(0)))
    return Scores(tuple(score for score, _ in found), make_signature(metric), corpus), counts


def mean_from_totals(totals: Array) -> Array:
    """The mean of scores, from their sum and number."""
    return totals[..., 0] / np.maximum(totals[..., 1], 1.0)


class _KeyphraseChunk:
    """Some pairs, and what metrics have in common on them, each made when first asked for."""

    def __init__(self, pairs: Sequence[Pair], first_row: int) -> None:
        self._pairs = pairs
        self._first_row = first_row
        self._memo: dict[Hashable, Any] = {}

    def score_pairs(self, metric: KeyphraseParts) -> Iterator[tuple[Score, Counts]]:
        """The metric's score of each pair with its counts: the best over the references."""
        wanted = (metric.cleaning, metric.which)
        view = (*wanted, metric.vectors)
        lists = self._memoize(wanted, lambda: self._select_lists(*wanted))
        sides = self._memoize(view, lambda: _embed_lists(lists, metric.vectors))
        alike = (*view, metric.similarity)
        similarity = self._prepared_similarity(metric)
        similarities = self._memoize(alike, lambda: [similarity(x, y) for x, y in sides])
        alignments = self._memoize(
            (*alike, metric.alignment), lambda: _align_lists(sides, similarities, metric.alignment)
        )
        reduced = _counting_function(metric)
        found = (
            reduced(s, a, x, y)
            for s, a, (x, y) in zip(similarities, alignments, sides, strict=True)
        )
        for each in lists:
            own = [next(found) for _ in each.references]
            yield max(own, key=lambda scored: scored[0].value)

    def _prepared_similarity(self, metric: KeyphraseParts) -> Similarity:
        """The metric's similarity, prepared for all phrases, whichever of them are chosen."""
        similarity = metric.similarity
        if not isinstance(similarity, BatchSimilarity):
            return similarity
        preparing, cleaning = similarity, metric.cleaning
        return self._memoize(
            (cleaning, metric.vectors, similarity),
            lambda: preparing.prepare(_embed_lists(self._split_lists(cleaning), metric.vectors)),
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
    """Both sides of every comparison with vectors; the flags of a pair go with its candidate."""
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
    """What gives a document's score and counts, once its phrases are aligned."""
    reducer, skip = metric.scoring, metric.no_reference == "skip"
    tallying = reducer if isinstance(reducer, CountingReducer) else None

    def reduced(
        similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> tuple[Score, Counts]:
        if tallying:
            counts = tallying.count_matches(similarity, alignment, x, y)
            score = tallying.score_counts(counts, x, y)
        else:
            score = reducer(similarity, alignment, x, y)
            counts = (score.value, 1.0)
        if skip and not len(y.weights):
            counts = (0.0,) * len(counts)
        return score, counts

    return reduced


@register("metric", "keyphrases")
@dataclass(frozen=True)
class KeyphraseMetric:
    """Keyphrases against keyphrases, both as text with `;` between phrases.

    `which` takes all phrases, or only those present in the source (their stemmed words stand there
    in a row), or only those absent. Of the candidate's phrases the first `most` are looked at (0
    for all of them). What equals an earlier one once stemmed is dropped, counted as wrong or kept,
    as `duplicates` says; `reference_duplicates` does the same for the reference. `invalid`
    is about candidate phrases with a comma, a full stop or `<unk>` as a word. A document without
    reference phrases counts, as its reducer defines it, or `no_reference` skips it in the score of
    many. `units` says how phrases are cut and stemmed; the other parts are those of `align`.
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
        """The scores in order, the best reference's; and the corpus score where it is no mean."""
        return self.score_with_counts(pairs)[0]

    def score_with_counts(self, pairs: Sequence[Pair]) -> tuple[Scores, Array]:
        """The scores, and each pair's counts, whose totals `of_totals` scores."""
        return score_keyphrase_metrics([self], pairs)[0]

    def score_totals(self, totals: Array) -> Array:
        """The score of many documents for each row of totals."""
        if isinstance(self.scoring, CountingReducer):
            return self.scoring.score_totals(totals)
        return mean_from_totals(totals)

    @property
    def cleaning(self) -> PhraseCleaning:
        """How lists are made from texts; metrics that agree in it share the work."""
        return PhraseCleaning(
            self.units, self.duplicates, self.reference_duplicates, self.invalid, self.most
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The range a score lies in, as far as the similarity and the reducer know theirs."""
        low, high = similarity_bounds(self.similarity)
        if isinstance(self.scoring, BoundedReducer):
            return self.scoring.score_bounds(low, high)
        return (-math.inf, math.inf)

    def sources(self) -> tuple[str, ...]:
        """The stemmer with its version."""
        return (library_version("nltk"),) if self.units.stem == "porter" else ()

    @property
    def signature(self) -> str:
        """The recipe, with every policy that is not the usual one, and the stemmer's version."""
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
    """FG: each phrase by its most similar reference phrase, less for repetition and number.

    `fine_grained` explains `mode`, `repetition`, `quantity` and `both_empty`; `keyphrases` the
    policies after them; `phrases` the last two. `similarity` may be `edit` or `token_f1`
    alone, or semantic: `by_metric(metric=f_disc)` (paper 004).
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
    """FB: the FG score with phrases compared by a trained scorer, through Algorithm 1.

    `model` is the folder of a scorer that `evenmatch fit --keyphrases` trained; by default the
    one it put among the models. The rest is as in `fg`, but after the paper, which is all there is
    to follow: the authors' released code does something else (paper 004, eq. 8).
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
    """F1 of the first `k` phrases, phrases matched one to one once stemmed.

    `f1_at` explains `k`, `pad` and `average`; `keyphrases` the policies after `similarity`;
    `phrases` the last two. The usual ones are those of Chan et al. (2019).
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
    """F1@5: the first five phrases, made up to five by wrong ones (see `keyphrase_f1`)."""
    return keyphrase_f1(5, **settings)


@register("metric", "f1_at_m")
@with_settings_of(keyphrase_f1, "k", "pad")
def f1_at_m(**settings: Any) -> KeyphraseMetric:
    """F1@M: all phrases there are (see `keyphrase_f1`)."""
    return keyphrase_f1("M", **settings)
