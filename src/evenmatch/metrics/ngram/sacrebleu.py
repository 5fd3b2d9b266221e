"""BLEU, chrF and TER as sacrebleu defines them, for sentences and for the corpus.

Scores range from 0 to 1, where sacrebleu multiplies by 100 (TER may exceed 1). Several references
are treated as in sacrebleu: BLEU pools their n-grams, chrF takes the best of them, and TER divides
the fewest edits by their mean length.

The functions `*_from_totals` are sacrebleu's corpus formulas over arrays. Significance tests use
them to score thousands of resampled corpora at once, each a row of counts summed over segments.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from evenmatch.errors import InputError, MissingExtraError
from evenmatch.metrics.ngram.edit_rate import count_edits
from evenmatch.metrics.ngram.tokens import LibraryMetric, import_library, library_version
from evenmatch.registry import CallContext, part_settings, register
from evenmatch.registry.parts import check_at_most
from evenmatch.scoring.engine import Chunk, ChunkScores, EngineMetric, ReadyMetric
from evenmatch.scoring.reducers import empty_score, empty_side_flags, overlap_score, ratio
from evenmatch.types import Array, Pair, Score

# A cell of TER's table counts as several of an alignment's: every shift computes the table again.
_CELL_COST = 10


# Several Chinese or Japanese characters, or Thai or Lao letters, in a row.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]{4}|[\u0e00-\u0eff]{8}")


@register("metric", "bleu")
@dataclass(frozen=True)
class Bleu(LibraryMetric, EngineMetric):
    """BLEU by sacrebleu: n-gram precision of the candidate, with a brevity penalty.

    `tokenizer` is sacrebleu's: '13a' reads a Chinese clause as one word, so use 'zh' for Chinese,
    'char' for other text without spaces, and 'none' for text that is already tokenized. `lowercase`
    ignores case. `smoothing` is the method for orders without a match. `order` is the longest
    n-gram counted; a sentence score leaves out orders longer than the sentence, as sacrebleu does,
    and the corpus score does not.
    """

    tokenizer: Literal["13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab"] = "13a"
    lowercase: bool = False
    smoothing: Literal["exp", "floor", "add-k", "none"] = "exp"
    order: int = 4
    library: ClassVar[str] = "sacrebleu"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"bleu's order must be at least 1, got {self.order}")
        check_at_most(1000, order=self.order)

    def open(self, context: CallContext) -> ReadyMetric:
        """Load sacrebleu's scorer."""
        ready = _open_overlap(self, self._scorer())

        def score_chunk(chunk: Chunk) -> ChunkScores:
            _warn_of_unspaced_text(chunk.pairs, self.tokenizer)
            return ready.score_chunk(chunk)

        return replace(ready, score_chunk=score_chunk) if self.tokenizer == "13a" else ready

    def resolve(self, context: CallContext) -> tuple[Bleu, tuple[str, ...]]:
        """Return the metric with the fields of sacrebleu's signature."""
        value = {"floor": f"[{_FLOOR_COUNT:.2f}]", "add-k": "[1.00]"}.get(self.smoothing, "")
        case = "lc" if self.lowercase else "mixed"
        fields = f"case:{case}|eff:no|tok:{self.tokenizer}|smooth:{self.smoothing}{value}"
        return self, _sacrebleu_facts(fields)

    def score_totals(self, totals: Array) -> Array:
        """Corpus score of each row of totals."""
        return bleu_from_totals(totals, order=self.order, smoothing=self.smoothing)

    def _scorer(self) -> Any:
        make = import_library("sacrebleu.metrics.bleu", package="sacrebleu").BLEU
        try:
            return make(
                lowercase=self.lowercase,
                force=True,  # no warning about text that looks tokenized
                tokenize=self.tokenizer,
                smooth_method=self.smoothing,
                max_ngram_order=self.order,
                effective_order=True,  # for sentences; the corpus score is `score_totals`
            )
        except RuntimeError:
            language = self.tokenizer.removesuffix("-mecab")
            raise MissingExtraError(
                f"bleu's tokenizer {self.tokenizer!r} needs mecab; "
                f"install it with: pip install 'sacrebleu[{language}]'"
            ) from None


@register("metric", "chrf")
@dataclass(frozen=True)
class Chrf(LibraryMetric, EngineMetric):
    """chrF by sacrebleu: F-score of character n-grams, with more weight on recall.

    `char_order` is the longest character n-gram counted. `word_order` adds word n-grams: 2 gives
    chrF++. `beta` is the weight of recall relative to precision. `lowercase` ignores case.
    `whitespace` counts spaces as characters. `eps_smoothing` counts orders longer than a text as 0
    instead of leaving them out.
    """

    char_order: int = 6
    word_order: int = 0
    beta: float = 2.0
    lowercase: bool = False
    whitespace: bool = False
    eps_smoothing: bool = False
    library: ClassVar[str] = "sacrebleu"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.char_order < 1 or self.word_order < 0 or self.beta <= 0:
            raise InputError(
                "chrf needs a char_order of at least 1, a word_order of at least 0 and a beta "
                f"above 0, got {self.char_order}, {self.word_order} and {self.beta}"
            )
        check_at_most(1000, char_order=self.char_order, word_order=self.word_order)

    def open(self, context: CallContext) -> ReadyMetric:
        """Load sacrebleu's scorer."""
        make = import_library("sacrebleu.metrics.chrf", package="sacrebleu").CHRF
        return _open_overlap(self, make(**part_settings(self)))

    def resolve(self, context: CallContext) -> tuple[Chrf, tuple[str, ...]]:
        """Return the metric with the fields of sacrebleu's signature."""
        case, eff = "lc" if self.lowercase else "mixed", _yes_no(not self.eps_smoothing)
        orders = f"nc:{self.char_order}|nw:{self.word_order}"
        fields = f"case:{case}|eff:{eff}|{orders}|space:{_yes_no(self.whitespace)}"
        return self, _sacrebleu_facts(fields)

    def score_totals(self, totals: Array) -> Array:
        """Corpus score of each row of totals."""
        return chrf_from_totals(totals, beta=self.beta, eps_smoothing=self.eps_smoothing)


@register("metric", "ter")
@dataclass(frozen=True)
class Ter(LibraryMetric, EngineMetric):
    """TER by sacrebleu: word edits and shifts per word of the reference; 0 is best.

    An empty candidate needs one edit per word, so it scores 1; so does any text if the reference is
    empty. Two empty texts score 0. `normalized` separates punctuation from words. `no_punct`
    removes punctuation. `asian_support` applies both to Chinese, Japanese and Korean as well.
    `case_sensitive` distinguishes upper and lower case.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False
    higher_is_better: ClassVar[bool] = False
    library: ClassVar[str] = "sacrebleu"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    def open(self, context: CallContext) -> ReadyMetric:
        """Load sacrebleu's scorer."""
        make = import_library("sacrebleu.metrics.ter", package="sacrebleu").TER
        scorer = make(**part_settings(self))
        split = cache(lambda text: scorer._preprocess_segment(text).split())
        # sacrebleu processes references twice, which matters for text like `&amp;quot;`.
        split_reference = cache(lambda text: split(scorer._preprocess_segment(text)))

        @cache
        def edits(own: str, other: str) -> int:
            words, target = split(own), split_reference(other)
            context.run.check(len(words) * len(target) * _CELL_COST)
            return count_edits(words, target)

        def count(pair: Pair) -> tuple[float, float]:
            lengths = [len(split_reference(reference)) for reference in pair.references]
            fewest = min(edits(pair.candidate, reference) for reference in pair.references)
            return fewest, sum(lengths) / len(lengths)

        def score(pair: Pair, counts: Sequence[float]) -> Score:
            return Score(_unit_score(scorer, counts), flags=empty_side_flags(pair))

        return _open_counts(self, count, score)

    def resolve(self, context: CallContext) -> tuple[Ter, tuple[str, ...]]:
        """Return the metric with the fields of sacrebleu's signature."""
        case, norm = "mixed" if self.case_sensitive else "lc", _yes_no(self.normalized)
        rest = f"punct:{_yes_no(not self.no_punct)}|asian:{_yes_no(self.asian_support)}"
        return self, _sacrebleu_facts(f"case:{case}|tok:tercom|norm:{norm}|{rest}")

    def score_totals(self, totals: Array) -> Array:
        """Corpus score of each row of totals."""
        return ter_from_totals(totals)


def _sacrebleu_facts(fields: str) -> tuple[str, ...]:
    """The library's version and the fields of its signature; the engine sets nrefs in each call."""
    version = library_version("sacrebleu")
    return version, f"nrefs:var|{fields}|version:{version.split()[-1]}"


def _yes_no(setting: bool) -> str:
    return "yes" if setting else "no"


def _warn_of_unspaced_text(pairs: Sequence[Pair], tokenizer: str) -> None:
    """Warn if most of several references are in a script without spaces between words."""
    unspaced = sum(bool(_UNSPACED.search(pair.references[0])) for pair in pairs)
    if unspaced > max(2, len(pairs) / 2):
        warnings.warn(
            f"the references look like text without spaces, and bleu's tokenizer {tokenizer!r} "
            "reads a clause of it as one word; use bleu(tokenizer='zh') for Chinese, or "
            "'ja-mecab' or 'char'",
            stacklevel=2,
        )


def _open_overlap(metric: Bleu | Chrf, scorer: Any) -> ReadyMetric:
    """Open a metric that counts with sacrebleu's scorer."""

    def count(pair: Pair) -> Sequence[float]:
        references = [[reference] for reference in pair.references]
        counts: Sequence[float] = scorer._extract_corpus_statistics([pair.candidate], references)[0]
        return counts

    def score(pair: Pair, counts: Sequence[float]) -> Score:
        # Rounding in the logarithms can give a perfect score slightly above 1.
        return empty_score(pair) or overlap_score(min(1.0, _unit_score(scorer, counts)))

    return _open_counts(metric, count, score)


def _open_counts(
    metric: Bleu | Chrf | Ter,
    count: Callable[[Pair], Sequence[float]],
    score: Callable[[Pair, Sequence[float]], Score],
) -> ReadyMetric:
    """Open a metric whose segment and corpus scores are computed from the same counts.

    sacrebleu's public functions would count twice, and counting takes nearly all the time.
    """

    def score_chunk(chunk: Chunk) -> ChunkScores:
        counts = [count(pair) for pair in chunk.checked_pairs()]
        scores = [score(pair, own) for pair, own in zip(chunk.pairs, counts, strict=True)]
        return scores, np.array([list(own) for own in counts], dtype=np.float64)

    return ReadyMetric(score_chunk, metric.score_totals)


def _unit_score(scorer: Any, counts: Sequence[float]) -> float:
    return float(scorer._aggregate_and_compute([counts]).score) / 100


_FLOOR_COUNT = 0.1  # 'floor' smoothing counts this for no match
_EPSILON = 1e-16  # eps smoothing takes this for an order longer than the text


def bleu_from_totals(totals: Array, *, order: int, smoothing: str) -> Array:
    """Corpus BLEU of totals (…, counts).

    Counts are candidate length, reference length, matches by order and n-grams by order.

    >>> bleu_from_totals(np.array([3.0, 3.0, 3.0, 2.0, 3.0, 2.0]), order=2, smoothing="none").item()
    1.0
    """
    length, reference_length = totals[..., 0], totals[..., 1]
    matches, ngrams = totals[..., 2 : 2 + order], totals[..., 2 + order :]
    any_match = matches.any(-1)
    if smoothing == "add-k":
        added = (np.arange(order) > 0).astype(np.float64)
        matches, ngrams = matches + added, ngrams + added
    unmatched = (matches == 0) & (ngrams > 0)
    if smoothing == "exp":
        # Each further order without a match counts half as much as the one before.
        matches = np.where(unmatched, 0.5 ** np.cumsum(unmatched, -1), matches)
    elif smoothing == "floor":
        matches = np.where(unmatched, _FLOOR_COUNT, matches)
    brevity_penalty = np.minimum(1.0, np.exp(1 - ratio(reference_length, length)))
    score = brevity_penalty * np.exp(_log(ratio(matches, ngrams)).mean(-1))
    return np.where(any_match & (length > 0), np.minimum(1.0, score), 0.0)


def chrf_from_totals(totals: Array, *, beta: float, eps_smoothing: bool) -> Array:
    """Corpus chrF of totals (…, counts).

    Counts are, for each order, n-grams of the candidate, n-grams of the reference and matches.

    >>> chrf_from_totals(np.array([4.0, 4.0, 2.0]), beta=2.0, eps_smoothing=False).item()
    0.5
    """
    candidate, reference, matches = (totals[..., start::3] for start in range(3))
    if eps_smoothing:
        precision = np.where(candidate > 0, ratio(matches, candidate), _EPSILON)
        recall = np.where(reference > 0, ratio(matches, reference), _EPSILON)
        each = _weighted_f(precision, recall, beta)
        return np.where(precision + recall > 0, each, _EPSILON).mean(-1)
    has_order = (candidate > 0) & (reference > 0)
    orders = has_order.sum(-1)
    precision = ratio(np.where(has_order, ratio(matches, candidate), 0.0).sum(-1), orders)
    recall = ratio(np.where(has_order, ratio(matches, reference), 0.0).sum(-1), orders)
    return np.minimum(1.0, _weighted_f(precision, recall, beta))


def ter_from_totals(totals: Array) -> Array:
    """Corpus TER of totals (…, 2): edits and mean reference length; 1 for edits of empty text.

    >>> ter_from_totals(np.array([[1.0, 4.0], [2.0, 0.0], [0.0, 0.0]]))
    array([0.25, 1.  , 0.  ])
    """
    edits, length = totals[..., 0], totals[..., 1]
    return np.where(length > 0, ratio(edits, length), (edits > 0).astype(np.float64))


def _weighted_f(precision: Array, recall: Array, beta: float) -> Array:
    return ratio((1 + beta**2) * precision * recall, beta**2 * precision + recall)


def _log(share: Array) -> Array:
    """Elementwise logarithm, without numpy's warning for 0."""
    return np.where(share > 0, np.log(np.where(share > 0, share, 1.0)), -np.inf)
