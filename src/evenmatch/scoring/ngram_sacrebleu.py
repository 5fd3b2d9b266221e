"""bleu, chrf and ter as sacrebleu defines them, sentence by sentence and for the corpus.

Scores are on the scale from 0 to 1, where sacrebleu shows them times 100. Several references
follow sacrebleu as well: BLEU pools their n-grams, chrF takes the best of them, TER divides the
fewest edits by their mean length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from evenmatch.errors import InputError, MissingExtraError
from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_library import library, release
from evenmatch.scoring.ngram_rows import empty_score, flags, overlap
from evenmatch.scoring.ngram_totals import bleu_of, chrf_of, ter_of
from evenmatch.scoring.pairs import check_pairs
from evenmatch.types import Array, Pair, Score, Scores


@register("metric", "bleu")
@dataclass(frozen=True)
class Bleu:
    """BLEU by sacrebleu: the share of the candidate's word n-grams that the references have.

    `tokenizer` is sacrebleu's: '13a' takes a Chinese clause for one word, so give 'zh' for Chinese,
    'char' for other text without spaces, and 'none' for text that is cut already. `lowercase`
    counts words in any case as equal. `smoothing` says what becomes of an order without a match.
    `order` is the longest n-gram counted; a sentence of fewer words is judged by the orders it has,
    as sacrebleu does for sentences, the corpus is not.
    """

    tokenizer: Literal["13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab"] = "13a"
    lowercase: bool = False
    smoothing: Literal["exp", "floor", "add-k", "none"] = "exp"
    order: int = 4
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"bleu's order must be at least 1, got {self.order}")

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order, and the corpus score."""
        return self.counted(pairs)[0]

    def counted(self, pairs: Sequence[Pair]) -> tuple[Scores, Array]:
        """The scores, and each pair's counts, whose totals `of_totals` scores."""
        check_pairs(pairs)
        sentence, corpus = self._scorer(by_sentence=True), self._scorer(by_sentence=False)
        counts = [_counts(sentence, pair) for pair in pairs]
        segments = (_overlap(sentence, pair, own) for pair, own in zip(pairs, counts, strict=True))
        return Scores(tuple(segments), self.signature, _share(corpus, counts)), _table(counts)

    def of_totals(self, totals: Array) -> Array:
        """The corpus score of each row of totals."""
        return bleu_of(totals, order=self.order, smoothing=self.smoothing)

    def _scorer(self, *, by_sentence: bool) -> Any:
        make = library("sacrebleu.metrics.bleu", package="sacrebleu").BLEU
        try:
            return make(
                lowercase=self.lowercase,
                force=True,  # no remark on text that looks tokenized
                tokenize=self.tokenizer,
                smooth_method=self.smoothing,
                max_ngram_order=self.order,
                effective_order=by_sentence,
            )
        except RuntimeError:
            language = self.tokenizer.removesuffix("-mecab")
            raise MissingExtraError(
                f"bleu's tokenizer {self.tokenizer!r} needs mecab; "
                f"install it with: pip install 'sacrebleu[{language}]'"
            ) from None

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("sacrebleu"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)


@register("metric", "chrf")
@dataclass(frozen=True)
class Chrf:
    """chrF by sacrebleu: F over character n-grams, recall counting more than precision.

    `char_order` is the longest run of characters counted. `word_order` adds runs of words: 2 makes
    it chrF++. `beta` says how many times as much recall counts. `lowercase` counts letters in any
    case as equal. `whitespace` counts spaces as characters. `eps_smoothing` counts orders that a
    short text does not have, as 0.
    """

    char_order: int = 6
    word_order: int = 0
    beta: float = 2.0
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.char_order < 1 or self.word_order < 0 or self.beta <= 0:
            raise InputError(
                "chrf needs a char_order of at least 1, a word_order of at least 0 and a beta "
                f"above 0, got {self.char_order}, {self.word_order} and {self.beta}"
            )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order, and the corpus score."""
        return self.counted(pairs)[0]

    def counted(self, pairs: Sequence[Pair]) -> tuple[Scores, Array]:
        """The scores, and each pair's counts, whose totals `of_totals` scores."""
        check_pairs(pairs)
        scorer: Any = library("sacrebleu.metrics.chrf", package="sacrebleu").CHRF(
            char_order=self.char_order,
            word_order=self.word_order,
            beta=self.beta,
            lowercase=self.lowercase,
            whitespace=self.whitespace,
            eps_smoothing=self.eps_smoothing,
        )
        counts = [_counts(scorer, pair) for pair in pairs]
        segments = (_overlap(scorer, pair, own) for pair, own in zip(pairs, counts, strict=True))
        return Scores(tuple(segments), self.signature, _share(scorer, counts)), _table(counts)

    def of_totals(self, totals: Array) -> Array:
        """The corpus score of each row of totals."""
        return chrf_of(totals, beta=self.beta, eps_smoothing=self.eps_smoothing)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("sacrebleu"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)


@register("metric", "ter")
@dataclass(frozen=True)
class Ter:
    """TER by sacrebleu: edits and shifts of words per word of the reference; 0 is best.

    An empty candidate takes one edit a word, so it scores 1; so does any text where the reference
    is empty. Two empty texts score 0. `normalized` parts punctuation from words. `no_punct` drops
    it. `asian_support` has those two act on Chinese, Japanese and Korean as well. `case_sensitive`
    tells letters of either case apart.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False
    higher_is_better: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The sentence scores in order, and the corpus score."""
        return self.counted(pairs)[0]

    def counted(self, pairs: Sequence[Pair]) -> tuple[Scores, Array]:
        """The scores, and each pair's counts, whose totals `of_totals` scores."""
        check_pairs(pairs)
        scorer: Any = library("sacrebleu.metrics.ter", package="sacrebleu").TER(
            normalized=self.normalized,
            no_punct=self.no_punct,
            asian_support=self.asian_support,
            case_sensitive=self.case_sensitive,
        )
        counts = [_counts(scorer, pair) for pair in pairs]
        segments = [
            Score(_value(scorer, [own]), flags=flags(pair))
            for pair, own in zip(pairs, counts, strict=True)
        ]
        corpus = _value(scorer, counts) if counts else None
        return Scores(tuple(segments), self.signature, corpus), _table(counts)

    def of_totals(self, totals: Array) -> Array:
        """The corpus score of each row of totals."""
        return ter_of(totals)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("sacrebleu"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)


# A sentence's counts serve its own score and the corpus's. sacrebleu's public functions would
# count twice, and counting is all the work there is, most of all for TER.


def _counts(scorer: Any, pair: Pair) -> Any:
    references = [[reference] for reference in pair.references]
    return scorer._extract_corpus_statistics([pair.candidate], references)[0]


def _table(counts: Sequence[Any]) -> Array:
    return np.array([list(own) for own in counts], dtype=np.float64)


def _value(scorer: Any, counts: Sequence[Any]) -> float:
    return float(scorer._aggregate_and_compute(counts).score) / 100


def _overlap(scorer: Any, pair: Pair, counts: Any) -> Score:
    # The logarithms inside may put a perfect score a hair above 1.
    return empty_score(pair) or overlap(min(1.0, _value(scorer, [counts])))


def _share(scorer: Any, counts: Sequence[Any]) -> float | None:
    return min(1.0, _value(scorer, counts)) if counts else None
