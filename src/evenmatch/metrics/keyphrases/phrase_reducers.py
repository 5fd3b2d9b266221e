"""Reducers for keyphrases: from the alignment of two phrase lists to a score.

`FineGrained` is the FG score of Luo et al. (2021), which gives credit for partial matches. `F1At`
is F1@k, and `TokenMatch` counts matching words. `AveragePrecision`, `Ndcg` and `AlphaNdcg` take
candidate phrases as a ranking. `BestMatch` is semantic F1. `F1At`, `TokenMatch` and `BestMatch`
have a corpus score from counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.scoring.reducers import NO_MATCH, empty_unit_flags, harmonic_mean, ratio
from evenmatch.similarity.strings import Phrase, token_f1, unit_phrases
from evenmatch.types import NO_FLAGS, Alignment, Array, Embedded, Score

# Numbers of one document whose sums over documents give the corpus score.
Counts: TypeAlias = tuple[float, ...]

# The authors' released code counts a phrase with this score or less as wrong.
_MIN_SCORE = 0.1


@register("scoring", "fine_grained")
@dataclass(frozen=True)
class FineGrained:
    """FG: mean score of the candidate phrases, with penalties for repetition and quantity.

    A phrase scores its similarity to its partner. `mode` 'paper' follows the paper's Algorithm 1
    exactly; 'released' follows the authors' code, which produced the published numbers, and differs
    in three points: the words of a phrase rejected as repetitive are not counted, a phrase that
    scores 0.1 or less scores 0, and of phrases with equal scores the later one comes first.
    `repetition` and `quantity` switch the two penalties on, or off for an ablation. `both_empty` is
    the score of two empty lists: 1 in evaluation, 0.5 in the authors' reward; one empty list scores
    0.
    """

    mode: Literal["released", "paper"] = "released"
    repetition: bool = True
    quantity: bool = True
    both_empty: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one document, flagged where a list is empty or nothing matches."""
        if missing := empty_unit_flags(x, y):
            value = self.both_empty if len(missing) == 2 else 0.0
            return Score(value, flags=_score_flags(value, x, y))
        scores = (alignment.rows * similarity).sum(1)
        if self.mode == "released":
            scores = np.where(scores <= _MIN_SCORE, 0.0, scores)
        if self.repetition:
            scores = self._penalize_repetition(scores, unit_phrases(x.units), unit_phrases(y.units))
        value = float(scores.sum()) / len(scores)
        if self.quantity:
            value *= quantity_penalty(len(scores), len(y.weights))
        return Score(value, flags=_score_flags(value, x, y))

    def _penalize_repetition(
        self, scores: Array, rows: Sequence[Phrase], cols: Sequence[Phrase]
    ) -> Array:
        """Set the score of a phrase to 0 if it repeats a word more often than the references do."""
        available = Counter(word for phrase in cols for word in phrase)
        penalized = np.array(scores, dtype=np.float64)
        order = np.argsort(penalized, kind="stable")[::-1]  # of equal scores the later comes first
        if self.mode == "paper":
            order = np.argsort(-penalized, kind="stable")
        for i in order.tolist()[: len(rows)]:
            used = Counter(word for word in rows[i] if word in available)
            repetitive = any(count > available[word] for word, count in used.items())
            if repetitive:
                penalized[i] = 0.0
            if not repetitive or self.mode == "paper":
                available.subtract(used)
        return penalized

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of the similarity, widened to include 0, 1 and `both_empty`."""
        edges = (low, high, 0.0, 1.0, self.both_empty)
        return (min(edges), max(edges))


def quantity_penalty(predicted: int, expected: int) -> float:
    """Factor for predicting more or fewer phrases than expected (Algorithm 1, line 15).

    >>> quantity_penalty(1, 3)
    0.5555555555555556
    """
    return 1 - (expected - predicted) ** 2 / max(expected, predicted) ** 2


@runtime_checkable
class CountingReducer(Protocol):
    """A reducer that scores a corpus from counts summed over its documents."""

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one document, flagged where a list is empty or nothing matches."""
        return self.score_counts(self.count_matches(similarity, alignment, x, y), x, y)

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded, /
    ) -> Counts: ...
    def score_counts(self, counts: Counts, x: Embedded, y: Embedded, /) -> Score: ...
    def score_totals(self, totals: Array, /) -> Array: ...
    def precision_recall(self, totals: Array, /) -> tuple[Array, Array]: ...


@register("scoring", "f1_at")
@dataclass(frozen=True)
class F1At(CountingReducer):
    """F1@k of the candidate phrases, with the similarity to its partner as a phrase's credit.

    `k` is a number, 'M' for all phrases, 'O' for as many as the reference has, or 'G' for all but
    at least as many as the reference has. `pad` adds wrong phrases up to `k`, so that precision is
    over `k`; without it, precision is over the phrases there are. `average` defines the corpus
    score: 'macro' is F1 of mean precision and mean recall, 'mean' is the mean of the documents' F1,
    and 'micro' is F1 over all phrases of all documents. `report` makes precision or recall the
    score instead of F1. One or two empty sides score 0, as in published evaluations.
    """

    k: int | Literal["M", "G", "O"] = "M"
    pad: bool = True
    average: Literal["macro", "mean", "micro"] = "macro"
    report: Literal["f1", "precision", "recall"] = "f1"

    def __post_init__(self) -> None:
        check_settings(self)
        if isinstance(self.k, int) and self.k < 1:
            raise InputError(f"f1_at's k must be at least 1, or 'M', 'G' or 'O', got {self.k}")

    def score_counts(self, counts: Counts, x: Embedded, y: Embedded) -> Score:
        """Score one document from its counts."""
        precision, recall, f1 = counts[:3]
        value = {"f1": f1, "precision": precision, "recall": recall}[self.report]
        return Score(value, precision, recall, _score_flags(value, x, y))

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> Counts:
        """(precision, recall, F1, 1, correct, precision's denominator, reference phrases)."""
        predicted, expected = len(x.weights), len(y.weights)
        taken, denominator = self._cutoff(predicted, expected)
        if taken < predicted:
            credit = _ranked_credit(similarity, alignment)[:taken]
        else:
            credit = _credit(similarity, alignment)
        # Clipped at the number of references, since a many-to-one alignment credits a reference
        # more than once.
        correct = min(float(credit.sum()), float(expected))
        precision = correct / denominator if denominator else 0.0
        recall = correct / expected if expected else 0.0
        f1 = harmonic_mean(precision, recall)
        return (precision, recall, f1, 1.0, correct, denominator, expected)

    def _cutoff(self, predicted: int, expected: int) -> tuple[int, int]:
        """The number of phrases that count, and the denominator of precision."""
        if not predicted or self.k in ("M", "G"):
            at_least = max(predicted, expected) if predicted and self.k == "G" else predicted
            return predicted, at_least
        k = expected if self.k == "O" else int(self.k)
        return k, k if self.pad else min(k, predicted)

    def score_totals(self, totals: Array) -> Array:
        """Corpus score from the summed counts of its documents."""
        precision, recall = self.precision_recall(totals)
        if self.report != "f1":
            return precision if self.report == "precision" else recall
        if self.average == "mean":
            return ratio(totals[..., 2], totals[..., 3])
        return ratio(2 * precision * recall, precision + recall)

    def precision_recall(self, totals: Array) -> tuple[Array, Array]:
        """Precision and recall of a corpus: means over documents, or over all phrases if micro."""
        documents, correct = totals[..., 3], totals[..., 4]
        if self.average == "micro":
            return ratio(correct, totals[..., 5]), ratio(correct, totals[..., 6])
        return ratio(totals[..., 0], documents), ratio(totals[..., 1], documents)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1, or to the highest similarity if that is above 1."""
        return (0.0, max(high, 1.0))


def _credit(similarity: Array, alignment: Alignment) -> Array:
    """The credit of each candidate phrase; a negative one would be worse than a wrong phrase."""
    return np.maximum((alignment.rows * similarity).sum(1), 0.0)


def _ranked_credit(similarity: Array, alignment: Alignment) -> Array:
    """The same, but of several phrases with identical similarities, the first get the credit.

    A solver may give a partner to any one of them, even to one beyond a cutoff.
    """
    credit = _credit(similarity, alignment)
    groups: dict[bytes, list[int]] = {}
    for row, values in enumerate(similarity):
        groups.setdefault(values.tobytes(), []).append(row)
    for rows in groups.values():
        credit[rows] = np.sort(credit[rows])[::-1]
    return credit


@register("scoring", "average_precision")
@dataclass(frozen=True)
class AveragePrecision:
    """Average precision of the ranked candidate phrases; its mean over documents is MAP.

    The precision at the rank of each correct phrase, summed and divided by the number of reference
    phrases: those not found count as 0. `k` cuts the ranking off; 'M' takes all phrases. A document
    with an empty side scores 0.
    """

    k: int | Literal["M"] = "M"

    def __post_init__(self) -> None:
        check_settings(self)
        _check_cutoff(self.k)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one document, flagged where a list is empty or nothing matches."""
        credit = _ranked_credit(similarity, alignment)[: None if self.k == "M" else self.k]
        precisions = credit.cumsum() / np.arange(1, len(credit) + 1)
        expected = len(y.weights)
        value = min(float((precisions * credit).sum()) / expected, 1.0) if expected else 0.0
        return Score(value, flags=_score_flags(value, x, y))

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1."""
        return (0.0, 1.0)


@register("scoring", "ndcg")
@dataclass(frozen=True)
class Ndcg:
    """NDCG of the ranked candidate phrases: credit discounted by log2(rank + 1), over the ideal's.

    `ideal` 'gold' is a ranking that begins with all reference phrases (Meng et al. 2021);
    'predictions' is the best order of the candidate's own phrases (Chan et al. 2019, KPEval), which
    does not count phrases that are missing. `k` cuts both rankings off; 'M' takes all phrases. A
    document with an empty side scores 0.
    """

    k: int | Literal["M"] = "M"
    ideal: Literal["gold", "predictions"] = "gold"

    def __post_init__(self) -> None:
        check_settings(self)
        _check_cutoff(self.k)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one document, flagged where a list is empty or nothing matches."""
        credit = _ranked_credit(similarity, alignment)
        best = np.sort(credit)[::-1] if self.ideal == "predictions" else np.ones(len(y.weights))
        value = _normalized_gain(credit, best, self.k)
        return Score(value, flags=_score_flags(value, x, y))

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1."""
        return (0.0, 1.0)


@register("scoring", "alpha_ndcg")
@dataclass(frozen=True)
class AlphaNdcg:
    """α-NDCG: a candidate phrase gains less from a reference phrase that others before it match.

    Every positive similarity is a match, so that a phrase can match several references; the gain
    from a reference is multiplied by 1 - `alpha` for each match before. The ideal ranking is the
    candidate's phrases in greedy order, as in Chan et al. (2019) and KPEval. `k` cuts both rankings
    off; 'M' takes all phrases. A document with an empty side scores 0.
    """

    alpha: float = 0.5
    k: int | Literal["M"] = "M"

    def __post_init__(self) -> None:
        check_settings(self)
        _check_cutoff(self.k)
        if not 0 <= self.alpha <= 1:
            raise InputError(f"alpha_ndcg's alpha must be from 0 to 1, got {self.alpha}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one document, flagged where a list is empty or nothing matches."""
        matches = np.asarray(similarity) > 0
        before: Array = np.cumsum(matches, axis=0) - matches
        gains = (matches * (1 - self.alpha) ** before).sum(1)
        value = _normalized_gain(gains, self._ideal_gains(matches), self.k)
        return Score(value, flags=_score_flags(value, x, y))

    def _ideal_gains(self, matches: Array) -> Array:
        """The gains of the phrases in greedy order: at each rank the one that gains most."""
        left, factors = list(range(len(matches))), np.ones(matches.shape[1])
        found = []
        for _ in range(len(matches) if self.k == "M" else min(self.k, len(matches))):
            gains = matches[left] @ factors
            best = left.pop(int(gains.argmax()))
            found.append(float(gains.max()))
            factors = np.where(matches[best], factors * (1 - self.alpha), factors)
        return np.array(found)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1."""
        return (0.0, 1.0)


def _normalized_gain(gains: Array, ideal: Array, k: int | Literal["M"]) -> float:
    """Discounted cumulative gain over that of an ideal ranking, at most 1; 0 without an ideal."""
    sums = [
        float((each / np.log2(np.arange(2, len(each) + 2))).sum())
        for each in (gains[: None if k == "M" else k], ideal[: None if k == "M" else k])
    ]
    return min(sums[0] / sums[1], 1.0) if sums[1] > 0 else 0.0


def _check_cutoff(k: int | Literal["M"]) -> None:
    if isinstance(k, int) and k < 1:
        raise InputError(f"k must be at least 1, or 'M', got {k}")


@register("scoring", "best_match")
@dataclass(frozen=True)
class BestMatch(CountingReducer):
    """Precision, recall and F1 of the best matches of each phrase, with corpus scores.

    Precision is the mean similarity of the candidate phrases to their partners, and recall that of
    the reference phrases. With `greedy`, several phrases may have the same partner. Corpus scores
    are means over documents. A document with an empty side scores 0.
    """

    def score_counts(self, counts: Counts, x: Embedded, y: Embedded) -> Score:
        """Score one document from its counts."""
        precision, recall, value, _ = counts
        return Score(value, precision, recall, _score_flags(value, x, y))

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> Counts:
        """(precision, recall, F1, 1)."""
        if not len(x.weights) or not len(y.weights):
            return (0.0, 0.0, 0.0, 1.0)
        precision = float((alignment.rows * similarity).sum(1).mean())
        recall = float((alignment.cols * similarity).sum(0).mean())
        return (precision, recall, harmonic_mean(precision, recall), 1.0)

    def score_totals(self, totals: Array) -> Array:
        """Mean F1 of the documents."""
        return ratio(totals[..., 2], totals[..., 3])

    def precision_recall(self, totals: Array) -> tuple[Array, Array]:
        """Mean precision and mean recall of the documents."""
        return ratio(totals[..., 0], totals[..., 3]), ratio(totals[..., 1], totals[..., 3])

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1, or to the highest similarity if that is above 1."""
        return (0.0, max(high, 1.0))


@register("scoring", "token_match")
@dataclass(frozen=True)
class TokenMatch(CountingReducer):
    """Token F1, precision and recall of each candidate phrase and its partner, averaged.

    This is table 2 of Luo et al. (2021). In the corpus score all phrases of all documents count
    equally. If a list is empty, the document scores as under `fine_grained`; a document without
    candidate phrases adds nothing to the corpus score.
    """

    def score_counts(self, counts: Counts, x: Embedded, y: Embedded) -> Score:
        """Score one document from its counts."""
        if missing := empty_unit_flags(x, y):
            value = float(len(missing) == 2)
            return Score(value, value, value, _score_flags(value, x, y))
        value, precision, recall = counts[:3]
        count = max(counts[3], 1.0)  # units that are not phrases have no words to match
        mean = value / count
        return Score(mean, precision / count, recall / count, _score_flags(mean, x, y))

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> Counts:
        """Token F1, precision and recall summed over the candidate's phrases, and their number."""
        rows, cols = unit_phrases(x.units), unit_phrases(y.units)
        if not rows or not cols:
            return (0.0, 0.0, 0.0, float(len(rows)))
        best = [cols[int(j)] for j in np.asarray(alignment.rows).argmax(1)]
        found = [(token_f1(p, q), len(p), len(q)) for p, q in zip(rows, best, strict=True)]
        sums = np.array([(f, *_token_precision_recall(f, p, q)) for f, p, q in found]).sum(0)
        return (*map(float, sums), float(len(rows)))

    def score_totals(self, totals: Array) -> Array:
        """Mean token F1 over all phrases of all documents."""
        return ratio(totals[..., 0], totals[..., 3])

    def precision_recall(self, totals: Array) -> tuple[Array, Array]:
        """Mean token precision and recall over all phrases of all documents."""
        return ratio(totals[..., 1], totals[..., 3]), ratio(totals[..., 2], totals[..., 3])

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1, independent of the similarity."""
        return (0.0, 1.0)


def _token_precision_recall(f: float, p: int, q: int) -> tuple[float, float]:
    shared = f * (p + q) / 2
    return shared / max(p, 1), shared / max(q, 1)


def _score_flags(value: float, x: Embedded, y: Embedded) -> frozenset[str]:
    """Flags of both sides and for empty lists; `no_match` if there are none and the value is 0."""
    flags = empty_unit_flags(x, y) | x.flags | y.flags
    return flags or (NO_FLAGS if value else NO_MATCH)
