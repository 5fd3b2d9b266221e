"""rouge1, rouge2 and rougeL as rouge-score defines them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from evenmatch.metrics.ngram.tokens import (
    choose_tokenizer,
    import_library,
    library_version,
    split_words,
)
from evenmatch.registry import check_settings, make_signature, register
from evenmatch.registry.parts import with_settings_of
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.reducers import best_over_references, harmonic_mean, overlap_score
from evenmatch.types import Pair, Score, Scores
from evenmatch.units.keyphrases import get_stemmer

RougeTokenizer = Literal["auto", "rouge", "words"]


TokenRule = Callable[[list[str], list[str]], Score]  # candidate's and reference's tokens


_MIN_STEMMED_LENGTH = 4  # rouge-score leaves shorter words as they are


@register("metric", "rouge")
@dataclass(frozen=True)
class Rouge:
    """ROUGE by rouge-score: what candidate and reference share; the value is F.

    `share` says what is shared: '1' words, '2' pairs of neighbouring words, 'L' the longest common
    subsequence of words. `stemmer` takes English words back to their stems (Porter). `tokenizer`
    says what a word is: 'rouge' is rouge-score's own cut, runs of a to z and digits in lower case;
    'words' takes words of any script, characters where a script has no spaces, and single symbols;
    'auto' is 'rouge', but 'words' for a pair that is not mostly Latin, since 'rouge' would drop
    what it says.
    """

    share: Literal["1", "2", "L"] = "1"
    stemmer: bool = False
    tokenizer: RougeTokenizer = "auto"
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """F as value, with precision and recall; the best reference counts."""
        rule = _lcs_rule if self.share == "L" else _ngram_rule(f"rouge{self.share}")
        segments = _score_segments(pairs, rule, self.tokenizer, self.stemmer)
        return Scores(segments, self.signature)

    def sources(self) -> tuple[str, ...]:
        """The library with its version."""
        return (library_version("rouge-score"),)

    @property
    def signature(self) -> str:
        """The recipe, with the library's version."""
        return make_signature(self)


@register("metric", "rouge1")
@with_settings_of(Rouge, "share")
def rouge1(**settings: Any) -> Rouge:
    """ROUGE-1: words that candidate and reference share (see `rouge`)."""
    return Rouge("1", **settings)


@register("metric", "rouge2")
@with_settings_of(Rouge, "share")
def rouge2(**settings: Any) -> Rouge:
    """ROUGE-2: pairs of neighbouring words that both share; of one word there is none, so 0."""
    return Rouge("2", **settings)


@register("metric", "rougeL")
@with_settings_of(Rouge, "share")
def rougeL(**settings: Any) -> Rouge:
    """ROUGE-L: the longest common subsequence of words in the whole text, whatever its lines."""
    return Rouge("L", **settings)


def _score_segments(
    pairs: Sequence[Pair], rule: TokenRule, tokenizer: RougeTokenizer, stemmed: bool
) -> tuple[Score, ...]:
    check_pairs(pairs)
    tokenize: Any = import_library("rouge_score.tokenize", package="rouge-score").tokenize
    usual = partial(tokenize, stemmer=get_stemmer() if stemmed else None)
    ours = partial(_lower_words, stemmed=stemmed)

    def score(candidate: str, reference: str) -> Score:
        cut = choose_tokenizer(tokenizer, usual, ours, candidate, reference)
        return rule(cut(candidate), cut(reference))

    return tuple(_with_precision_recall(best_over_references(pair, score)) for pair in pairs)


def _lower_words(text: str, stemmed: bool) -> list[str]:
    found = split_words(text.lower())
    if not stemmed:
        return found
    return [
        get_stemmer().stem(word) if len(word) >= _MIN_STEMMED_LENGTH else word for word in found
    ]


def _with_precision_recall(score: Score) -> Score:
    """An empty side's score with precision and recall, which are its value."""
    if score.precision is not None:
        return score
    return dataclasses.replace(score, precision=score.value, recall=score.value)


@dataclass(frozen=True)
class _IdentityTokenizer:
    """What rouge-score calls a tokenizer, for text that is cut already."""

    def tokenize(self, tokens: list[str]) -> list[str]:
        return tokens


def _ngram_rule(name: str) -> TokenRule:
    """The n-grams both sides share, counted by rouge-score."""
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
    """The length of the longest common subsequence, one row of its table in the bits of a number.

    rouge-score's own table takes a step per cell, seconds for two texts of 2,000 words; this takes
    one per word of `b`, milliseconds for the same (Hyyrö 2004).

    >>> lcs_length("a b c d".split(), "b x d".split())
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
