"""bleu_nltk and chrf_nltk: BLEU and chrF in nltk's variants, which many papers report.

nist as nltk computes it: n-gram precision in bits of information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evenmatch.errors import InputError
from evenmatch.metrics.ngram.tokens import (
    WordTokenizer,
    import_library,
    library_version,
    tokenize_texts,
)
from evenmatch.registry import make_signature, register
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import best_over_references, empty_score, overlap_score
from evenmatch.types import Pair, Score, Scores


@register("metric", "bleu_nltk")
@dataclass(frozen=True)
class BleuNltk:
    """BLEU by nltk, on words between spaces, smoothed by one of Chen & Cherry's methods.

    `order` is the longest n-gram counted; unlike in `bleu`, a short sentence is judged by orders it
    does not have. `smoothing` is the method's number; method 1 puts 0.1 in the place of a count of
    0. `tokenizer` says what a word is: 'whitespace' cuts between spaces; 'words' takes words of any
    script, characters where a script has no spaces, and single symbols; 'auto' is 'whitespace', but
    'words' for a pair that is not mostly Latin.
    """

    order: int = 4
    smoothing: Literal[1, 2, 3, 4] = 1
    tokenizer: WordTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"bleu_nltk's order must be at least 1, got {self.order}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order, and the corpus score."""
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

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (library_version("nltk"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return make_signature(self)


@register("metric", "chrf_nltk")
@dataclass(frozen=True)
class ChrfNltk:
    """chrF by nltk: the mean over orders of F over character n-grams.

    `min_order` and `max_order` are the shortest and the longest run of characters counted; unlike
    in `chrf`, orders that a short text does not have count, as 0. `beta` says how many times as
    much recall counts. `whitespace` counts spaces as characters.
    """

    min_order: int = 1
    max_order: int = 6
    beta: float = 3.0
    whitespace: bool = False
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if not 1 <= self.min_order <= self.max_order or self.beta <= 0:
            raise InputError(
                "chrf_nltk needs 1 <= min_order <= max_order and a beta above 0, "
                f"got {self.min_order}, {self.max_order} and {self.beta}"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order; the best reference counts."""
        check_pairs(pairs)
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
            # nltk puts 1e-16 in the place of 0.
            return overlap_score(value if value > 1e-15 else 0.0)

        return Scores(tuple(best_over_references(pair, score) for pair in pairs), self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (library_version("nltk"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return make_signature(self)


@register("metric", "nist")
@dataclass(frozen=True)
class Nist:
    """NIST by nltk: shared n-grams weighted by how rare they are in the references.

    The score has no upper end; equal one-word texts score 0, since a text's only word tells
    nothing. For a sentence the weights come from its own reference, so prefer the corpus score.
    `order` is the longest n-gram counted; orders that a text is too short for add 0. `tokenizer`
    says what a word is: 'whitespace' cuts between spaces; 'words' takes words of any script,
    characters where a script has no spaces, and single symbols; 'auto' is 'whitespace', but 'words'
    for a pair that is not mostly Latin.
    """

    order: int = 5
    tokenizer: WordTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"nist's order must be at least 1, got {self.order}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order, by the best reference, and the corpus score."""
        check_pairs(pairs)

        def score(candidate: str, reference: str) -> Score:
            return overlap_score(
                self._corpus_nist([tokenize_texts(self.tokenizer, candidate, reference)])
            )

        segments = tuple(best_over_references(pair, score) for pair in pairs)
        rows = [tokenize_texts(self.tokenizer, pair.candidate, *pair.references) for pair in pairs]
        return Scores(segments, self.signature, self._corpus_nist(rows) if rows else None)

    def _corpus_nist(self, rows: Sequence[Sequence[list[str]]]) -> float:
        """The score of rows of tokens, each a candidate's and then its references'."""
        nist: Any = import_library("nltk.translate.nist_score", package="nltk").corpus_nist
        candidates, references = [row[0] for row in rows], [row[1:] for row in rows]
        # nltk divides by the count of n-grams, so orders that nothing is long enough for stay out.
        order = min(self.order, max(map(len, candidates)))
        if order == 0 or not any(map(any, references)):
            return 0.0
        return float(nist(references, candidates, order))

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (library_version("nltk"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return make_signature(self)
