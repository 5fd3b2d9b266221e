"""fine_grained: the FG score of keyphrases, which sees partial matches (paper 004).

f1_at: how many of the first k phrases are right; token_match: how many of their words are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.phrase_lists import empty_list_flags, score_flags
from evenmatch.registry import check_settings, register
from evenmatch.scoring.reducers import harmonic_mean
from evenmatch.similarity.strings import Phrase, token_f1, unit_phrases
from evenmatch.types import Alignment, Array, Embedded, Score

# The released evaluation takes a phrase that scores no more than this for a wrong one.
_MIN_SCORE = 0.1


@register("scoring", "fine_grained")
@dataclass(frozen=True)
class FineGrained:
    """The mean of the candidate phrases' scores, less for repeated words and for their number.

    A phrase scores the similarity of its partner. `mode` 'paper' follows Algorithm 1 to the
    letter; 'released', which the published figures come from, differs from it in three points: the
    words of a phrase that was rejected as repetitive are not counted, a phrase that scores 0.1 or
    less scores 0, and of phrases that score alike the later is looked at first. `repetition` and
    `quantity` are the two penalties, to be left out for an ablation. `both_empty` is what two empty
    lists score: 1 in evaluation, 0.5 in the authors' reward; one empty list scores 0.
    """

    mode: Literal["released", "paper"] = "released"
    repetition: bool = True
    quantity: bool = True
    both_empty: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        if missing := empty_list_flags(x, y):
            value = self.both_empty if len(missing) == 2 else 0.0
            return Score(value, flags=score_flags(value, x, y))
        scores = (alignment.rows * similarity).sum(1)
        if self.mode == "released":
            scores = np.where(scores <= _MIN_SCORE, 0.0, scores)
        if self.repetition:
            scores = self._penalize_repetition(scores, unit_phrases(x.units), unit_phrases(y.units))
        value = float(scores.sum()) / len(scores)
        if self.quantity:
            value *= quantity_penalty(len(scores), len(y.weights))
        return Score(value, flags=score_flags(value, x, y))

    def _penalize_repetition(
        self, scores: Array, rows: Sequence[Phrase], cols: Sequence[Phrase]
    ) -> Array:
        """The scores, 0 for a phrase with a word that has come more often than the reference's."""
        room = Counter(word for phrase in cols for word in phrase)
        kept = np.array(scores, dtype=np.float64)
        for i in self._descending_order(kept)[: len(rows)]:
            own = Counter(word for word in rows[i] if word in room)
            repetitive = any(count > room[word] for word, count in own.items())
            if repetitive:
                kept[i] = 0.0
            if not repetitive or self.mode == "paper":
                room.subtract(own)
        return kept

    def _descending_order(self, scores: Array) -> list[int]:
        if self.mode == "paper":
            return [*map(int, np.argsort(-scores, kind="stable"))]
        return [*map(int, np.argsort(scores, kind="stable")[::-1])]

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """Those of the similarity, and 0 and what two empty lists score."""
        edges = (low, high, 0.0, 1.0, self.both_empty)
        return (min(edges), max(edges))


def quantity_penalty(given: int, wanted: int) -> float:
    """How much is left for giving more or fewer phrases than wanted (Algorithm 1, line 15).

    >>> quantity_penalty(1, 3)
    0.5555555555555556
    """
    return 1 - (wanted - given) ** 2 / max(wanted, given) ** 2


Counts: TypeAlias = tuple[float, ...]


@register("scoring", "f1_at")
@dataclass(frozen=True)
class F1At:
    """F1 of the first `k` candidate phrases; similarity is credit, 1 for a phrase that is right.

    `k` is a number; 'M' for all phrases; 'O' for as many as the reference has; 'G' for all, but
    at least as many as the reference has. With `pad` fewer than `k` phrases are made up to it by
    wrong ones, so precision is over `k`; without, over those there are. `average` says what the
    score of many documents is: 'macro', F of mean precision and mean recall; 'mean', the mean of
    the documents' F; 'micro', F over all phrases of all documents together. An empty side
    scores 0, and so do two, as in published evaluations.
    """

    k: int | Literal["M", "G", "O"] = "M"
    pad: bool = True
    average: Literal["macro", "mean", "micro"] = "macro"

    def __post_init__(self) -> None:
        check_settings(self)
        if isinstance(self.k, int) and self.k < 1:
            raise InputError(f"f1_at's k must be at least 1, or 'M', 'G' or 'O', got {self.k}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        return self.score_counts(self.count_matches(similarity, alignment, x, y), x, y)

    def score_counts(self, tally: Counts, x: Embedded, y: Embedded) -> Score:
        """The score of one document from its tally."""
        precision, recall, value = tally[:3]
        return Score(value, precision, recall, score_flags(value, x, y))

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> Counts:
        """Precision, recall and F, 1 for the document, and the counts behind the first two."""
        given, wanted = len(x.weights), len(y.weights)
        taken, over = self._cutoff(given, wanted)
        gained = (alignment.rows * similarity).sum(1)
        if taken < given:
            gained = _credit_first(gained, similarity)[:taken]
        # A credit below 0 would be worse than a wrong phrase.
        # A many-to-one alignment credits a reference more than once; recall stays at most 1.
        right = min(float(np.maximum(gained, 0.0).sum()), float(wanted))
        precision = right / over if over else 0.0
        recall = right / wanted if wanted else 0.0
        return (precision, recall, harmonic_mean(precision, recall), 1.0, right, over, wanted)

    def _cutoff(self, given: int, wanted: int) -> tuple[int, int]:
        """How many phrases are looked at, and over how many precision is."""
        if not given or self.k in ("M", "G"):
            return given, max(given, wanted) if given and self.k == "G" else given
        k = wanted if self.k == "O" else int(self.k)
        return k, k if self.pad else min(k, given)

    def score_totals(self, totals: Array) -> Array:
        """The score of many documents, from the sum of their tallies."""
        documents, right = totals[..., 3], totals[..., 4]
        if self.average == "mean":
            return _ratio(totals[..., 2], documents)
        if self.average == "micro":
            parts = (right, totals[..., 5]), (right, totals[..., 6])
        else:
            parts = (totals[..., 0], documents), (totals[..., 1], documents)
        precision, recall = (_ratio(*part) for part in parts)
        return _ratio(2 * precision * recall, precision + recall)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0, to 1 or to the highest similarity."""
        return (0.0, max(high, 1.0))


def _credit_first(gained: Array, similarity: Array) -> Array:
    """What each phrase gains, where of phrases that compare alike the first gain first.

    A solver may give a partner to any one of several equal phrases, even to one that is cut off.
    """
    alike: dict[bytes, list[int]] = {}
    for row, values in enumerate(similarity):
        alike.setdefault(values.tobytes(), []).append(row)
    gained = np.array(gained)
    for rows in alike.values():
        gained[rows] = np.sort(gained[rows])[::-1]
    return gained


@register("scoring", "token_match")
@dataclass(frozen=True)
class TokenMatch:
    """How many words of each candidate phrase its most similar reference phrase has.

    Value, precision and recall are the mean over phrases of token F, precision and recall
    (paper 004, table 2); over many documents all phrases count alike. A candidate without phrases
    has none to count, and scores as under `fine_grained`.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        return self.score_counts(self.count_matches(similarity, alignment, x, y), x, y)

    def score_counts(self, tally: Counts, x: Embedded, y: Embedded) -> Score:
        """The score of one document from its tally."""
        if missing := empty_list_flags(x, y):
            value = float(len(missing) == 2)
            return Score(value, value, value, score_flags(value, x, y))
        value, precision, recall = tally[:3]
        count = max(tally[3], 1.0)  # units that are no phrases have no words to share
        mean = value / count
        return Score(mean, precision / count, recall / count, score_flags(mean, x, y))

    def count_matches(
        self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded
    ) -> Counts:
        """Token F, precision and recall summed over the candidate's phrases, and their number."""
        rows, cols = unit_phrases(x.units), unit_phrases(y.units)
        if not rows or not cols:
            return (0.0, 0.0, 0.0, float(len(rows)))
        best = [cols[int(j)] for j in np.asarray(alignment.rows).argmax(1)]
        found = [(token_f1(p, q), len(p), len(q)) for p, q in zip(rows, best, strict=True)]
        sums = np.array([(f, *_token_precision_recall(f, p, q)) for f, p, q in found]).sum(0)
        return (*map(float, sums), float(len(rows)))

    def score_totals(self, totals: Array) -> Array:
        """The mean token F over all phrases of all documents."""
        return _ratio(totals[..., 0], totals[..., 3])

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """Shares of words, whatever the similarity."""
        return (0.0, 1.0)


def _token_precision_recall(f: float, p: int, q: int) -> tuple[float, float]:
    shared = f * (p + q) / 2
    return shared / max(p, 1), shared / max(q, 1)


def _ratio(part: Array, whole: Array) -> Array:
    """The quotient, and 0 where there is nothing to divide by."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
