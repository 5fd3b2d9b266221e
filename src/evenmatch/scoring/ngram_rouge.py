"""rouge1, rouge2 and rougeL as rouge-score defines them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from evenmatch.registry import register, signature
from evenmatch.scoring.ngram_library import library, release
from evenmatch.scoring.ngram_rows import best, overlap
from evenmatch.scoring.ngram_tokens import choose, words
from evenmatch.scoring.pairs import check_pairs
from evenmatch.scoring.reduce import harmonic
from evenmatch.types import Pair, Score, Scores
from evenmatch.units.stemming import stemmer

RougeTokenizer = Literal["auto", "rouge", "words"]
Rule = Callable[[list[str], list[str]], Score]  # candidate's and reference's tokens
_STEMMED = 4  # rouge-score leaves shorter words as they are


@register("metric", "rouge1")
@dataclass(frozen=True)
class Rouge1:
    """ROUGE-1 by rouge-score: words that candidate and reference share; the value is F.

    `stemmer` takes English words back to their stems (Porter). `tokenizer` says what a word is:
    'rouge' is rouge-score's own cut, runs of a to z and digits in lower case; 'words' takes words
    of any script, characters where a script has no spaces, and single symbols; 'auto' is 'rouge',
    but 'words' for a pair that is not mostly Latin, since 'rouge' would drop what it says.
    """

    stemmer: bool = False
    tokenizer: RougeTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """F as value, with precision and recall; the best reference counts."""
        segments = _segments(pairs, _shared("rouge1"), self.tokenizer, self.stemmer)
        return Scores(segments, self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("rouge-score"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)


@register("metric", "rouge2")
@dataclass(frozen=True)
class Rouge2:
    """ROUGE-2 by rouge-score: pairs of neighbouring words that both share; the value is F.

    A text of one word has no such pair and scores 0.

    `stemmer` takes English words back to their stems (Porter). `tokenizer` says what a word is:
    'rouge' is rouge-score's own cut, runs of a to z and digits in lower case; 'words' takes words
    of any script, characters where a script has no spaces, and single symbols; 'auto' is 'rouge',
    but 'words' for a pair that is not mostly Latin, since 'rouge' would drop what it says.
    """

    stemmer: bool = False
    tokenizer: RougeTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """F as value, with precision and recall; the best reference counts."""
        segments = _segments(pairs, _shared("rouge2"), self.tokenizer, self.stemmer)
        return Scores(segments, self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("rouge-score"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)


@register("metric", "rougeL")
@dataclass(frozen=True)
class RougeL:
    """ROUGE-L by rouge-score: the longest common subsequence of words; the value is F.

    The whole text is one sequence, whatever its lines.

    `stemmer` takes English words back to their stems (Porter). `tokenizer` says what a word is:
    'rouge' is rouge-score's own cut, runs of a to z and digits in lower case; 'words' takes words
    of any script, characters where a script has no spaces, and single symbols; 'auto' is 'rouge',
    but 'words' for a pair that is not mostly Latin, since 'rouge' would drop what it says.
    """

    stemmer: bool = False
    tokenizer: RougeTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """F as value, with precision and recall; the best reference counts."""
        segments = _segments(pairs, _in_order, self.tokenizer, self.stemmer)
        return Scores(segments, self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (release("rouge-score"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return signature(self)


def _segments(
    pairs: Sequence[Pair], rule: Rule, tokenizer: RougeTokenizer, stemmed: bool
) -> tuple[Score, ...]:
    check_pairs(pairs)
    tokenize: Any = library("rouge_score.tokenize", package="rouge-score").tokenize
    usual = partial(tokenize, stemmer=stemmer() if stemmed else None)
    ours = partial(_lower_words, stemmed=stemmed)

    def score(candidate: str, reference: str) -> Score:
        cut = choose(tokenizer, usual, ours, candidate, reference)
        return rule(cut(candidate), cut(reference))

    return tuple(_with_sides(best(pair, score)) for pair in pairs)


def _lower_words(text: str, stemmed: bool) -> list[str]:
    found = words(text.lower())
    if not stemmed:
        return found
    return [stemmer().stem(word) if len(word) >= _STEMMED else word for word in found]


def _with_sides(score: Score) -> Score:
    """An empty side's score with precision and recall, which are its value."""
    if score.precision is not None:
        return score
    return dataclasses.replace(score, precision=score.value, recall=score.value)


@dataclass(frozen=True)
class _AsGiven:
    """What rouge-score calls a tokenizer, for text that is cut already."""

    def tokenize(self, tokens: list[str]) -> list[str]:
        return tokens


def _shared(name: str) -> Rule:
    """The n-grams both sides share, counted by rouge-score."""
    module = library("rouge_score.rouge_scorer", package="rouge-score")
    scorer: Any = module.RougeScorer([name], tokenizer=_AsGiven())

    def rule(candidate: list[str], reference: list[str]) -> Score:
        found = scorer.score(reference, candidate)[name]
        return overlap(found.fmeasure, found.precision, found.recall)

    return rule


def _in_order(candidate: list[str], reference: list[str]) -> Score:
    common = longest_common(candidate, reference)
    precision, recall = common / max(1, len(candidate)), common / max(1, len(reference))
    return overlap(harmonic(precision, recall), precision, recall)


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common subsequence, one row of its table in the bits of a number.

    rouge-score's own table takes a step per cell, seconds for two texts of 2,000 words; this takes
    one per word of `b`, milliseconds for the same (Hyyrö 2004).

    >>> longest_common("a b c d".split(), "b x d".split())
    2
    """
    places: dict[str, int] = {}
    for index, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << index
    whole = (1 << len(a)) - 1
    open_ = whole  # bits at 0 are the steps where the subsequence grows
    for word in b:
        hit = open_ & places.get(word, 0)
        open_ = ((open_ + hit) | (open_ - hit)) & whole
    return len(a) - open_.bit_count()
