"""nist as nltk computes it: n-gram precision in bits of information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenmatch.errors import InputError
from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_library import library, release
from evenmatch.scoring.ngram_rows import best, overlap
from evenmatch.scoring.ngram_tokens import Spaced, spaced
from evenmatch.scoring.pairs import check_pairs
from evenmatch.types import Pair, Score, Scores


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
    tokenizer: Spaced = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"nist's order must be at least 1, got {self.order}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order, by the best reference, and the corpus score."""
        check_pairs(pairs)

        def score(candidate: str, reference: str) -> Score:
            return overlap(self._of([spaced(self.tokenizer, candidate, reference)]))

        segments = tuple(best(pair, score) for pair in pairs)
        rows = [spaced(self.tokenizer, pair.candidate, *pair.references) for pair in pairs]
        return Scores(segments, self.signature, self._of(rows) if rows else None)

    def _of(self, rows: Sequence[Sequence[list[str]]]) -> float:
        """The score of rows of tokens, each a candidate's and then its references'."""
        nist: Any = library("nltk.translate.nist_score", package="nltk").corpus_nist
        candidates, references = [row[0] for row in rows], [row[1:] for row in rows]
        # nltk divides by the count of n-grams, so orders that nothing is long enough for stay out.
        order = min(self.order, max(map(len, candidates)))
        if order == 0 or not any(map(any, references)):
            return 0.0
        return float(nist(references, candidates, order))

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("nltk"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)
