"""fine_grained: the FG score of keyphrases, which sees partial matches (paper 004)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenmatch.registry import check_settings, register
from evenmatch.scoring.keyphrase_empty import empty_flags, odd
from evenmatch.similarity.strings import Phrase, phrases_of
from evenmatch.types import Alignment, Array, Embedded, Score

# The released evaluation takes a phrase that scores no more than this for a wrong one.
_LEAST = 0.1


@register("reducer", "fine_grained")
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
        if missing := empty_flags(x, y):
            value = self.both_empty if len(missing) == 2 else 0.0
            return Score(value, flags=odd(value, x, y))
        scores = (alignment.rows * similarity).sum(1)
        if self.mode == "released":
            scores = np.where(scores <= _LEAST, 0.0, scores)
        if self.repetition:
            scores = self._unrepeated(scores, phrases_of(x.units), phrases_of(y.units))
        value = float(scores.sum()) / len(scores)
        if self.quantity:
            value *= quantity_penalty(len(scores), len(y.weights))
        return Score(value, flags=odd(value, x, y))

    def _unrepeated(self, scores: Array, rows: Sequence[Phrase], cols: Sequence[Phrase]) -> Array:
        """The scores, 0 for a phrase with a word that has come more often than the reference's."""
        room = Counter(word for phrase in cols for word in phrase)
        kept = np.array(scores, dtype=np.float64)
        for i in self._order(kept)[: len(rows)]:
            own = Counter(word for word in rows[i] if word in room)
            repetitive = any(count > room[word] for word, count in own.items())
            if repetitive:
                kept[i] = 0.0
            if not repetitive or self.mode == "paper":
                room.subtract(own)
        return kept

    def _order(self, scores: Array) -> list[int]:
        if self.mode == "paper":
            return [*map(int, np.argsort(-scores, kind="stable"))]
        return [*map(int, np.argsort(scores, kind="stable")[::-1])]

    def bounds_within(self, low: float, high: float) -> tuple[float, float]:
        """Those of the similarity, and 0 and what two empty lists score."""
        edges = (low, high, 0.0, 1.0, self.both_empty)
        return (min(edges), max(edges))


def quantity_penalty(given: int, wanted: int) -> float:
    """How much is left for giving more or fewer phrases than wanted (Algorithm 1, line 15).

    >>> quantity_penalty(1, 3)
    0.5555555555555556
    """
    return 1 - (wanted - given) ** 2 / max(wanted, given) ** 2
