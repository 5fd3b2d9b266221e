"""BLEU, chrF and NIST as nltk computes them; many papers report nltk's BLEU and chrF.

The corpus scores of nltk's BLEU and NIST are computed from all texts at once, so these two metrics
are called with all pairs, like a plug-in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evenmatch.errors import InputError
from evenmatch.metrics.ngram.tokens import (
    LibraryMetric,
    WordTokenizer,
    import_library,
    tokenize_texts,
)
from evenmatch.registry import CallContext, register
from evenmatch.registry.parts import check_at_most
from evenmatch.scoring.engine import EngineMetric, ReadyMetric, score_each_pair
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import best_over_references, empty_score, overlap_score
from evenmatch.types import Pair, Score, Scores


@register("metric", "bleu_nltk")
@dataclass(frozen=True)
class BleuNltk(LibraryMetric):
    """BLEU by nltk, smoothed by one of the methods of Chen & Cherry (2014).

    `order` is the longest n-gram counted; unlike in `bleu`, orders longer than a sentence count.
    `smoothing` is the number of the method; method 1 replaces a count of 0 by 0.1. `tokenizer` is
    'whitespace' (split at spaces), 'words' (words of any script, characters where a script has no
    spaces, and single symbols) or 'auto' ('words' for a pair that is not mostly in Latin script,
    else 'whitespace').
    """

    order: int = 4
    smoothing: Literal[1, 2, 3, 4] = 1
    tokenizer: WordTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    library: ClassVar[str] = "nltk"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"bleu_nltk's order must be at least 1, got {self.order}")
        check_at_most(1000, order=self.order)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Sentence scores in order, and the corpus score."""
        check_pairs(pairs)
        module: Any = import_library("nltk.translate.bleu_score", package="nltk")
        smooth = getattr(module.SmoothingFunction(), f"method{self.smoothing}")
        weights = (1 / self.order,) * self.order

        def score(rows: list[list[list[str]]]) -> float:
            references, candidates = [row[1:] for row in rows], [row[0] for row in rows]
            return min(1.0, float(module.corpus_bleu(references, candidates, weights, smooth)))

        rows = [tokenize_texts(self.tokenizer, pair.candidate, *pair.references) for pair in pairs]
        segments = [
            empty_score(pair) or overlap_score(score([row]))
            for pair, row in zip(pairs, rows, strict=True)
        ]
        return Scores(tuple(segments), self.signature, score(rows) if rows else None)


@register("metric", "chrf_nltk")
@dataclass(frozen=True)
class ChrfNltk(LibraryMetric, EngineMetric):
    """chrF by nltk: F-score of character n-grams, averaged over orders.

    `min_order` and `max_order` are the shortest and the longest n-gram counted; unlike in `chrf`,
    orders longer than a text count as 0. `beta` is the weight of recall relative to precision.
    `whitespace` counts spaces as characters.
    """

    min_order: int = 1
    max_order: int = 6
    beta: float = 3.0
    whitespace: bool = False
    library: ClassVar[str] = "nltk"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not 1 <= self.min_order <= self.max_order or self.beta <= 0:
            raise InputError(
                "chrf_nltk needs 1 <= min_order <= max_order and a beta above 0, "
                f"got {self.min_order}, {self.max_order} and {self.beta}"
            )
        check_at_most(1000, max_order=self.max_order)

    def open(self, context: CallContext) -> ReadyMetric:
        """Load nltk; with several references the best score counts."""
        chrf: Any = import_library("nltk.translate.chrf_score", package="nltk").sentence_chrf

        def score(candidate: str, reference: str) -> Score:
            value = chrf(
                reference,
                candidate,
                self.min_order,
                self.max_order,
                self.beta,
                ignore_whitespace=not self.whitespace,
            )
            # nltk returns 1e-16 instead of 0.
            return overlap_score(value if value > 1e-15 else 0.0)

        return score_each_pair(lambda pair: best_over_references(pair, score))


@register("metric", "nist")
@dataclass(frozen=True)
class Nist(LibraryMetric):
    """NIST by nltk: n-gram precision, each n-gram weighted by its information in the references.

    The score has no upper bound. Identical one-word texts score 0, since the only word of a text
    carries no information. A sentence score takes its weights from one reference, so prefer the
    corpus score. `order` is the longest n-gram counted; orders longer than a text add 0.
    `tokenizer` is 'whitespace' (split at spaces), 'words' (words of any script, characters where a
    script has no spaces, and single symbols) or 'auto' ('words' for a pair that is not mostly in
    Latin script, else 'whitespace').
    """

    order: int = 5
    tokenizer: WordTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    library: ClassVar[str] = "nltk"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"nist's order must be at least 1, got {self.order}")
        check_at_most(1000, order=self.order)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Sentence scores in order, each with the best reference, and the corpus score."""
        check_pairs(pairs)

        def score(candidate: str, reference: str) -> Score:
            return overlap_score(
                self._corpus_nist([tokenize_texts(self.tokenizer, candidate, reference)])
            )

        segments = tuple(best_over_references(pair, score) for pair in pairs)
        rows = [tokenize_texts(self.tokenizer, pair.candidate, *pair.references) for pair in pairs]
        return Scores(segments, self.signature, self._corpus_nist(rows) if rows else None)

    def _corpus_nist(self, rows: Sequence[Sequence[list[str]]]) -> float:
        """NIST of tokenized rows: a candidate followed by its references."""
        nist: Any = import_library("nltk.translate.nist_score", package="nltk").corpus_nist
        candidates, references = [row[0] for row in rows], [row[1:] for row in rows]
        # nltk divides by the number of n-grams, so orders longer than every candidate are left out.
        order = min(self.order, max(map(len, candidates)))
        if order == 0 or not any(map(any, references)):
            return 0.0
        return float(nist(references, candidates, order))
