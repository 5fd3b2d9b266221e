"""prf: the one formula that turns any alignment into precision, recall and F."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import NO_FLAGS, Alignment, Array, Bounding, Embedded, Reducer, Score


def precision_recall(
    similarity: Array, alignment: Alignment, row_weights: Array, col_weights: Array
) -> tuple[Array, Array]:
    """The weighted mean of what each side's units gain from their partners.

    Units are the last dimensions, so a stack of pairs of one size gives a number for each. A torch
    similarity keeps its gradient; the alignment is a constant to it.
    """
    gained, covered = gains(similarity, alignment, row_weights, col_weights)
    return gained / row_weights.sum(-1), covered / col_weights.sum(-1)


def gains(
    similarity: Array, alignment: Alignment, row_weights: Array, col_weights: Array
) -> tuple[Array, Array]:
    """What each side's units gain from their partners, times their weights, in all."""
    dot = np.vecdot if isinstance(similarity, np.ndarray) else _dot
    gained = dot(row_weights, dot(alignment.rows, similarity))
    covered = dot(col_weights, dot(alignment.cols.mT, similarity.mT))
    return gained, covered


def _dot(x: Array, y: Array) -> Array:
    """What numpy's `vecdot` gives in half the time, for tensors and their gradients."""
    return (x * y).sum(-1)


def total(weights: Array) -> float:
    """Their sum; by the ufunc itself, since on a few numbers the method takes twice as long."""
    return float(np.add.reduce(weights))


def harmonic(precision: float, recall: float) -> float:
    """2PR / (P + R), and 0 where one of them is not above 0.

    With one of them negative the formula has no meaning and no bound: -0.19 and 0.2 give -7.6.
    """
    positive = precision > 0 and recall > 0
    return 2 * precision * recall / (precision + recall) if positive else 0.0


def flags_of(x: Embedded, y: Embedded) -> frozenset[str]:
    """What was odd about either text."""
    return x.flags | y.flags if x.flags or y.flags else NO_FLAGS


def without_weight(x: Embedded, y: Embedded) -> Score:
    """The score of two texts one of which has nothing that counts, so there is nothing to align.

    An empty side scores 0, two empty sides 1. Units that count for nothing are as good as absent.
    """
    missing = _empty(x, y)
    value = 1.0 if len(missing) == 2 else 0.0
    return Score(value, value, value, flags_of(x, y) | (missing or {"no_match"}))


@register("reducer", "prf")
@dataclass(frozen=True)
class Prf:
    """Precision over the candidate's units, recall over the reference's, and their F as value.

    An empty side scores 0, two empty sides 1. Units that count for nothing are as good as absent.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        rows, cols = total(x.weights), total(y.weights)
        if not (rows > 0 and cols > 0):
            return without_weight(x, y)
        gained, covered = gains(similarity, alignment, x.weights, y.weights)
        precision, recall = float(gained) / rows, float(covered) / cols
        flags = flags_of(x, y) if precision or recall else flags_of(x, y) | {"no_match"}
        return Score(harmonic(precision, recall), precision, recall, flags)

    def bounds_within(self, low: float, high: float) -> tuple[float, float]:
        """From 0, to 1 or to the highest similarity."""
        return (0.0, max(high, 1.0))


def _empty(x: Embedded, y: Embedded) -> frozenset[str]:
    sides = {"empty_candidate": x, "empty_reference": y}
    return frozenset(flag for flag, side in sides.items() if len(side.weights) == 0)


@register("reducer", "rescale")
@dataclass(frozen=True)
class Rescale:
    """Another score on a stretched scale: `low` becomes 0 and 1 stays 1."""

    low: float
    base: Reducer = Prf()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.low >= 1:
            raise InputError(f"rescale's low must be below 1, got {self.low}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Each of the three numbers on its own, as bert_score does; empty sides stay."""
        score = self.base(similarity, alignment, x, y)
        if score.flags & {"empty_candidate", "empty_reference"}:
            return score
        precision, recall = score.precision, score.recall
        return Score(
            self._stretched(score.value),
            None if precision is None else self._stretched(precision),
            None if recall is None else self._stretched(recall),
            score.flags,
        )

    def bounds_within(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of the score within, stretched; empty sides stay at 0 and 1."""
        if not isinstance(self.base, Bounding):
            return (-math.inf, math.inf)
        low, high = self.base.bounds_within(low, high)
        return (min(self._stretched(low), 0.0), max(self._stretched(high), 1.0))

    def _stretched(self, value: float) -> float:
        return (value - self.low) / (1 - self.low)
