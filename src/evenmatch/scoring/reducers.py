"""prf: the one formula that turns any alignment into precision, recall and F.

average: precision and recall added and halved, where an F would hide what is below 0.

worst: how well the worst-matched units of each side are matched.

The rules of a row that every n-gram metric keeps: empty sides, flags, the best reference.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import BoundedReducer, Reducer
from evenmatch.registry import check_settings, register
from evenmatch.types import NO_FLAGS, Alignment, Array, Embedded, Pair, Score


def precision_recall(
    similarity: Array, alignment: Alignment, row_weights: Array, col_weights: Array
) -> tuple[Array, Array]:
    """The weighted mean of what each side's units gain from their partners.

    Units are the last dimensions, so a stack of pairs of one size gives a number for each. A torch
    similarity keeps its gradient; the alignment is a constant to it.
    """
    gained, covered = weighted_gains(similarity, alignment, row_weights, col_weights)
    return gained / row_weights.sum(-1), covered / col_weights.sum(-1)


def weighted_gains(
    similarity: Array, alignment: Alignment, row_weights: Array, col_weights: Array
) -> tuple[Array, Array]:
    """What each side's units gain from their partners, times their weights, in all."""
    dot = np.vecdot if isinstance(similarity, np.ndarray) else _row_dot
    gained = dot(row_weights, dot(alignment.rows, similarity))
    covered = dot(col_weights, dot(alignment.cols.mT, similarity.mT))
    return gained, covered


def _row_dot(x: Array, y: Array) -> Array:
    """What numpy's `vecdot` gives in half the time, for tensors and their gradients."""
    return (x * y).sum(-1)


def total_weight(weights: Array) -> float:
    """Their sum; by the ufunc itself, since on a few numbers the method takes twice as long."""
    return float(np.add.reduce(weights))


def harmonic_mean(precision: float, recall: float) -> float:
    """2PR / (P + R), and 0 where one of them is not above 0.

    With one of them negative the formula has no meaning and no bound: -0.19 and 0.2 give -7.6.
    """
    positive = precision > 0 and recall > 0
    return 2 * precision * recall / (precision + recall) if positive else 0.0


def combine_flags(x: Embedded, y: Embedded) -> frozenset[str]:
    """What was odd about either text."""
    return x.flags | y.flags if x.flags or y.flags else NO_FLAGS


def zero_weight_score(x: Embedded, y: Embedded) -> Score:
    """The score of two texts one of which has nothing that counts, so there is nothing to align.

    An empty side scores 0, two empty sides 1. Units that count for nothing are as good as absent.
    """
    missing = _empty_unit_flags(x, y)
    value = 1.0 if len(missing) == 2 else 0.0
    return Score(value, value, value, combine_flags(x, y) | (missing or {"no_match"}))


@register("scoring", "prf")
@dataclass(frozen=True)
class Prf:
    """Precision over the candidate's units, recall over the reference's, and their F as value.

    An empty side scores 0, two empty sides 1. Units that count for nothing are as good as absent.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        rows, cols = total_weight(x.weights), total_weight(y.weights)
        if not (rows > 0 and cols > 0):
            return zero_weight_score(x, y)
        gained, covered = weighted_gains(similarity, alignment, x.weights, y.weights)
        precision, recall = float(gained) / rows, float(covered) / cols
        flags = combine_flags(x, y) if precision or recall else combine_flags(x, y) | {"no_match"}
        return Score(harmonic_mean(precision, recall), precision, recall, flags)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0, to 1 or to the highest similarity."""
        return (0.0, max(high, 1.0))


def _empty_unit_flags(x: Embedded, y: Embedded) -> frozenset[str]:
    sides = {"empty_candidate": x, "empty_reference": y}
    return frozenset(flag for flag, side in sides.items() if len(side.weights) == 0)


@register("scoring", "rescale")
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
            self._rescale(score.value),
            None if precision is None else self._rescale(precision),
            None if recall is None else self._rescale(recall),
            score.flags,
        )

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of the score within, stretched; empty sides stay at 0 and 1."""
        if not isinstance(self.base, BoundedReducer):
            return (-math.inf, math.inf)
        low, high = self.base.score_bounds(low, high)
        return (min(self._rescale(low), 0.0), max(self._rescale(high), 1.0))

    def _rescale(self, value: float) -> float:
        return (value - self.low) / (1 - self.low)


@register("scoring", "average")
@dataclass(frozen=True)
class Average:
    """The mean of precision and recall; of two texts of one unit it is their similarity.

    Unlike an F it may be negative. Empty sides score as under `prf`.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        score = Prf()(similarity, alignment, x, y)
        assert score.precision is not None
        assert score.recall is not None
        return dataclasses.replace(score, value=(score.precision + score.recall) / 2)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """Those of the similarity, and 0 and 1 for empty sides."""
        return (min(low, 0.0), max(high, 1.0))


@register("scoring", "worst")
@dataclass(frozen=True)
class WorstUnits:
    """Precision and recall over the `share` of units that gain least, and their F as value.

    A mean forgives one wrong name in a long sentence; this does not. At least one unit counts on
    each side, units without weight do not, and the others count the same. Empty sides score as
    under `prf`.
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 < self.share <= 1:
            raise InputError(f"worst's share must be above 0 and at most 1, got {self.share}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        whole = Prf()(similarity, alignment, x, y)
        weighed = np.asarray(x.weights) > 0, np.asarray(y.weights) > 0
        if not (weighed[0].any() and weighed[1].any()):
            return whole
        gained = (alignment.rows * similarity).sum(-1)[weighed[0]]
        covered = (alignment.cols * similarity).sum(-2)[weighed[1]]
        precision, recall = self._mean_of_lowest(gained), self._mean_of_lowest(covered)
        return Score(harmonic_mean(precision, recall), precision, recall, whole.flags)

    def _mean_of_lowest(self, gains: Array) -> float:
        # 0.2 × 15 is 3.0000000000000004, which is not to become 4
        count = max(1, math.ceil(self.share * len(gains) - 1e-9))
        return float(np.sort(gains)[:count].mean())

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """As under `prf`."""
        return Prf().score_bounds(low, high)


NO_MATCH = frozenset({"no_match"})


def empty_side_flags(pair: Pair) -> frozenset[str]:
    """Which sides are empty; the reference is where it is the one an empty candidate equals."""
    bare = [not reference.strip() for reference in pair.references]
    empty = not pair.candidate.strip()
    found = {"empty_candidate"} if empty else set()
    if all(bare) or (empty and any(bare)):
        found.add("empty_reference")
    return frozenset(found) if found else NO_FLAGS


def empty_text_flags(candidate: str, reference: str) -> frozenset[str]:
    """Which of two texts are empty."""
    return empty_side_flags(Pair(candidate, (reference,)))


def empty_score(pair: Pair) -> Score | None:
    """0 for an empty side and 1 for two, flagged; None where both sides hold text."""
    found = empty_side_flags(pair)
    return Score(float(len(found) == 2), flags=found) if found else None


def overlap_score(
    value: float, precision: float | None = None, recall: float | None = None
) -> Score:
    """A score of two sides that hold text, flagged where they have nothing in common."""
    return Score(value, precision, recall, NO_FLAGS if value else NO_MATCH)


def best_over_references(pair: Pair, score: Callable[[str, str], Score]) -> Score:
    """The highest score of the candidate over its references; ties go to the first."""
    if found := empty_score(pair):
        return found
    # An empty reference beside a full one scores 0, so it can be passed over.
    full = [reference for reference in pair.references if reference.strip()]
    return max((score(pair.candidate, r) for r in full), key=lambda each: each.value)


@register("scoring", "nearness")
@dataclass(frozen=True)
class Nearness:
    """1 / (1 + the mean distance that mass is moved over), or 1 less that distance.

    The similarity is less the distance, as `euclidean` has it. Precision and recall would be the
    same, so there are none. Empty sides score as under `prf`. `linear` takes the distance from 1.
    """

    linear: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """The score with flags for what was odd about the pair."""
        rows, cols = total_weight(x.weights), total_weight(y.weights)
        if not (rows > 0 and cols > 0):
            score = zero_weight_score(x, y)
            return Score(score.value, flags=score.flags)
        moved, _ = weighted_gains(similarity, alignment, x.weights, y.weights)
        return Score(self._from_distance(max(0.0, -float(moved) / rows)), flags=combine_flags(x, y))

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """Those of the distance, and 0 and 1 for empty sides."""
        return (min(self._from_distance(-low), 0.0), 1.0)

    def _from_distance(self, distance: float) -> float:
        return 1 - distance if self.linear else 1 / (1 + distance)
