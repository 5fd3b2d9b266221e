"""ROUGE-1, ROUGE-2 and ROUGE-L as the rouge-score package defines them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from evenmatch.metrics.ngram.tokens import (
    LibraryMetric,
    choose_tokenizer,
    import_library,
    split_words,
)
from evenmatch.registry import CallContext, check_settings, register
from evenmatch.scoring.engine import EngineMetric, ReadyMetric, score_each_pair
from evenmatch.scoring.reducers import best_over_references, harmonic_mean, overlap_score
from evenmatch.types import Score
from evenmatch.units.keyphrases import get_stemmer

RougeTokenizer = Literal["auto", "rouge", "words"]
TokenRule = Callable[[list[str], list[str]], Score]  # of candidate tokens and reference tokens

_MIN_STEMMED_LENGTH = 4  # rouge-score does not stem shorter words


@register("metric", "rouge")
@dataclass(frozen=True)
class Rouge(LibraryMetric, EngineMetric):
    """ROUGE by rouge-score: overlap of candidate and reference, with F1 as the value.

    `share` is the kind of overlap: '1' for words, '2' for bigrams, 'L' for the longest common
    subsequence of words. `stemmer` applies the Porter stemmer for English. `tokenizer` is 'rouge'
    (rouge-score's own: runs of a to z and digits, in lower case), 'words' (words of any script,
    characters where a script has no spaces, and single symbols) or 'auto' ('words' for a pair that
    is not mostly in Latin script, which 'rouge' would drop, else 'rouge').
    """

    share: Literal["1", "2", "L"] = "1"
    stemmer: bool = False
    tokenizer: RougeTokenizer = "auto"
    library: ClassVar[str] = "rouge-score"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_settings(self)

    def open(self, context: CallContext) -> ReadyMetric:
        """Load rouge-score; with several references the best F1 counts."""
        rouge_tokenize: Any = import_library("rouge_score.tokenize", package="rouge-score").tokenize
        default = partial(rouge_tokenize, stemmer=get_stemmer() if self.stemmer else None)
        multilingual = partial(_lower_words, stemmed=self.stemmer)
        rule = _lcs_rule if self.share == "L" else _ngram_rule(f"rouge{self.share}")

        def score(candidate: str, reference: str) -> Score:
            tokenize = choose_tokenizer(self.tokenizer, default, multilingual, candidate, reference)
            return rule(tokenize(candidate), tokenize(reference))

        return score_each_pair(
            lambda pair: _with_precision_recall(best_over_references(pair, score))
        )


def _lower_words(text: str, stemmed: bool) -> list[str]:
    words = split_words(text.lower())
    if not stemmed:
        return words
    return [
        get_stemmer().stem(word) if len(word) >= _MIN_STEMMED_LENGTH else word for word in words
    ]


def _with_precision_recall(score: Score) -> Score:
    """Fill in precision and recall of a pair with an empty side: both equal its value."""
    if score.precision is not None:
        return score
    return dataclasses.replace(score, precision=score.value, recall=score.value)


@dataclass(frozen=True)
class _IdentityTokenizer:
    """A tokenizer for rouge-score that takes text which is already tokenized."""

    def tokenize(self, tokens: list[str]) -> list[str]:
        return tokens


def _ngram_rule(name: str) -> TokenRule:
    """Overlap of n-grams, counted by rouge-score."""
    module = import_library("rouge_score.rouge_scorer", package="rouge-score")
    scorer: Any = module.RougeScorer([name], tokenizer=_IdentityTokenizer())

    def rule(candidate: list[str], reference: list[str]) -> Score:
        found = scorer.score(reference, candidate)[name]
        return overlap_score(found.fmeasure, found.precision, found.recall)

    return rule


def _lcs_rule(candidate: list[str], reference: list[str]) -> Score:
    common = lcs_length(candidate, reference)
    precision, recall = common / max(1, len(candidate)), common / max(1, len(reference))
    return overlap_score(harmonic_mean(precision, recall), precision, recall)


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, by a bit-parallel algorithm (Hyyrö 2004).

    One integer holds a row of the dynamic-programming table, so a word of `b` takes one step.
    rouge-score takes one step per cell: seconds for two texts of 2,000 words, against milliseconds.

    >>> lcs_length("a b c d".split(), "b x d".split())
    2
    """
    positions: dict[str, int] = {}
    for index, word in enumerate(a):
        positions[word] = positions.get(word, 0) | 1 << index
    all_bits = (1 << len(a)) - 1
    row = all_bits  # a 0 bit marks a position at which the subsequence grows by one
    for word in b:
        matches = row & positions.get(word, 0)
        row = ((row + matches) | (row - matches)) & all_bits
    return len(a) - row.bit_count()
