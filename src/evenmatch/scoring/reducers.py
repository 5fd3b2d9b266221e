"""Reducers: turn an alignment into a score.

`Prf` is the standard one: precision, recall and F1 of any alignment. The other reducers change
how gains are averaged or scaled. A unit's gain is the similarity to its partners, weighted by its
share of each. After the reducers come the formulas they share, and then the rules for empty texts
that metrics without an alignment follow as well.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.protocols import BoundedReducer, Reducer, Similarity
from evenmatch.registry import check_settings, register
from evenmatch.similarity.vectors import similarity_bounds
from evenmatch.types import NO_FLAGS, Alignment, Array, Embedded, Pair, Score

NO_MATCH = frozenset({"no_match"})


@register("scoring", "prf")
@dataclass(frozen=True)
class Prf:
    """Precision over candidate units, recall over reference units, and F1 as the value.

    An empty side scores 0 and two empty sides score 1. Units of weight 0 count as absent.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one pair, flagged where a side is empty or nothing matches."""
        rows, cols = total_weight(x.weights), total_weight(y.weights)
        if not (rows > 0 and cols > 0):
            return zero_weight_score(x, y)
        gained, covered = weighted_gains(similarity, alignment, x.weights, y.weights)
        precision, recall = float(gained) / rows, float(covered) / cols
        flags = combine_flags(x, y) if precision or recall else combine_flags(x, y) | NO_MATCH
        return Score(harmonic_mean(precision, recall), precision, recall, flags)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """From 0 to 1, or to the highest similarity if that is above 1."""
        return (0.0, max(high, 1.0))


@register("scoring", "rescale")
@dataclass(frozen=True)
class Rescale:
    """Another reducer's scores, rescaled linearly so that `low` becomes 0 and 1 stays 1."""

    low: float
    base: Reducer = Prf()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.low >= 1:
            raise InputError(f"rescale's low must be below 1, got {self.low}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Rescale value, precision and recall separately, as bert_score does.

        Scores of pairs with an empty side are not rescaled.
        """
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
        """The rescaled bounds of the inner reducer, widened to include 0 and 1 (empty sides)."""
        if not isinstance(self.base, BoundedReducer):
            return (-math.inf, math.inf)
        low, high = self.base.score_bounds(low, high)
        return (min(self._rescale(low), 0.0), max(self._rescale(high), 1.0))

    def _rescale(self, value: float) -> float:
        return (value - self.low) / (1 - self.low)


@register("scoring", "unweighted")
@dataclass(frozen=True)
class Unweighted:
    """Another reducer's scores with every unit weighted 1, special tokens and padding included.

    The text of LiSAScore (Mander & Phillips 2024) counts padding like this; its code does not.
    """

    base: Reducer = Prf()

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one pair by the inner reducer, with weights of 1."""
        equal = (dataclasses.replace(e, weights=np.ones(len(e.weights))) for e in (x, y))
        return self.base(similarity, alignment, *equal)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of the inner reducer."""
        if not isinstance(self.base, BoundedReducer):
            return (-math.inf, math.inf)
        return self.base.score_bounds(low, high)


@register("scoring", "average")
@dataclass(frozen=True)
class Average:
    """Arithmetic mean of precision and recall, which may be negative, unlike F1.

    For two texts of one unit each it is their similarity. Empty sides score as under `prf`.
    """

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one pair, with the flags of `prf`."""
        score = Prf()(similarity, alignment, x, y)
        assert score.precision is not None
        assert score.recall is not None
        return dataclasses.replace(score, value=(score.precision + score.recall) / 2)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of the similarity, widened to include 0 and 1 (empty sides)."""
        return (min(low, 0.0), max(high, 1.0))


@register("scoring", "worst")
@dataclass(frozen=True)
class WorstUnits:
    """Precision, recall and F1 over the worst-matched units of each side.

    A mean over all units hides one wrong name in a long sentence; this does not. `share` is the
    fraction of units that count, those with the lowest gains, and at least one on each side. Units
    of weight 0 are left out and the others count equally. Empty sides score as under `prf`.
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 < self.share <= 1:
            raise InputError(f"worst's share must be above 0 and at most 1, got {self.share}")

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one pair, with the flags of `prf`."""
        whole = Prf()(similarity, alignment, x, y)
        weighted = np.asarray(x.weights) > 0, np.asarray(y.weights) > 0
        if not (weighted[0].any() and weighted[1].any()):
            return whole
        gained = (alignment.rows * similarity).sum(-1)[weighted[0]]
        covered = (alignment.cols * similarity).sum(-2)[weighted[1]]
        precision, recall = self._mean_of_lowest(gained), self._mean_of_lowest(covered)
        return Score(harmonic_mean(precision, recall), precision, recall, whole.flags)

    def _mean_of_lowest(self, gains: Array) -> float:
        return float(np.sort(gains)[: self.count(len(gains))].mean())

    def count(self, units: int) -> int:
        """Return how many of so many units count."""
        # 0.2 × 15 is 3.0000000000000004 in floating point and must not be rounded up to 4.
        return max(1, math.ceil(self.share * units - 1e-9))

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of `prf`."""
        return Prf().score_bounds(low, high)


@register("scoring", "partial_prf")
@dataclass(frozen=True)
class PartialPrf:
    """Precision, recall and F1 that tell new content from repetition, for partial alignments.

    Candidate unit i gains gᵢ = Σⱼ rows[i, j] s[i, j] and is unmatched to the extent
    uᵢ = 1 - Σⱼ rows[i, j]. The more it resembles a unit of the reference all the same, the more it
    repeats what is matched already: qᵢ rises from 0 to 1 while maxⱼ s[i, j] rises from `new` to
    `repeated`. With weights wᵢ,

        precision = Σᵢ wᵢ (gᵢ + credit uᵢ (1 - qᵢ)) / Σᵢ wᵢ (1 + (penalty - 1) uᵢ qᵢ)

    so that new content counts like a match of similarity `credit`, and repetition like `penalty`
    units without any. Recall is that of `prf`, and the value is F1; empty sides score as under
    `prf`. The defaults suit cosines of the embedded encoder.
    """

    credit: float = 0.5
    penalty: float = 2.0
    new: float = 0.6
    repeated: float = 0.8

    def __post_init__(self) -> None:
        check_settings(self)
        if not 0 <= self.credit <= 1:
            raise InputError(f"partial_prf's credit must be from 0 to 1, got {self.credit}")
        if self.penalty < 1:
            raise InputError(f"partial_prf's penalty must be at least 1, got {self.penalty}")
        if self.repeated <= self.new:
            raise InputError(
                f"partial_prf's repeated must be above new, got {self.repeated} and {self.new}"
            )

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one pair, with the flags of `prf`; without any match it scores 0."""
        rows, cols = total_weight(x.weights), total_weight(y.weights)
        if not (rows > 0 and cols > 0):
            return zero_weight_score(x, y)
        gained, covered = weighted_gains(similarity, alignment, x.weights, y.weights)
        unmatched = x.weights * np.maximum(1 - np.add.reduce(alignment.rows, 1), 0.0)
        likeness = np.maximum.reduce(similarity, 1) - self.new
        again = float(np.dot(unmatched, (likeness / (self.repeated - self.new)).clip(0.0, 1.0)))
        credited = self.credit * (total_weight(unmatched) - again)
        precision = (float(gained) + credited) / (rows + (self.penalty - 1) * again)
        recall = float(covered) / cols
        flags = combine_flags(x, y) if gained or covered else combine_flags(x, y) | NO_MATCH
        return Score(harmonic_mean(precision, recall), precision, recall, flags)

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The bounds of `prf`."""
        return Prf().score_bounds(low, high)


@register("scoring", "nearness")
@dataclass(frozen=True)
class Nearness:
    """1 / (1 + d), where d is the mean distance over which mass is transported.

    The similarity must be a negative distance, such as `euclidean`. `linear` scores 1 - d instead.
    Precision and recall would be equal, so there are none. Empty sides score as under `prf`.
    """

    linear: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, similarity: Array, alignment: Alignment, x: Embedded, y: Embedded) -> Score:
        """Score one pair, flagged where a side is empty."""
        rows, cols = total_weight(x.weights), total_weight(y.weights)
        if not (rows > 0 and cols > 0):
            score = zero_weight_score(x, y)
            return Score(score.value, flags=score.flags)
        moved, _ = weighted_gains(similarity, alignment, x.weights, y.weights)
        return Score(self._from_distance(max(0.0, -float(moved) / rows)), flags=combine_flags(x, y))

    def score_bounds(self, low: float, high: float) -> tuple[float, float]:
        """The score at the largest distance (or 0, for an empty side) up to 1."""
        return (min(self._from_distance(-low), 0.0), 1.0)

    def _from_distance(self, distance: float) -> float:
        return 1 - distance if self.linear else 1 / (1 + distance)


def reducer_bounds(reducer: Reducer, similarity: Similarity) -> tuple[float, float]:
    """The range of a reducer's scores; infinite where one of the two declares no bounds."""
    if isinstance(reducer, BoundedReducer):
        return reducer.score_bounds(*similarity_bounds(similarity))
    return (-math.inf, math.inf)


# Formulas that reducers share


def precision_recall(
    similarity: Array, alignment: Alignment, row_weights: Array, col_weights: Array
) -> tuple[Array, Array]:
    """Weighted mean gain of the candidate's units and of the reference's units.

    Units are in the last dimensions, so a stack of pairs of equal size gives one number per pair.
    A torch similarity keeps its gradient; the alignment is treated as constant.
    """
    gained, covered = weighted_gains(similarity, alignment, row_weights, col_weights)
    return gained / row_weights.sum(-1), covered / col_weights.sum(-1)


def weighted_gains(
    similarity: Array, alignment: Alignment, row_weights: Array, col_weights: Array
) -> tuple[Array, Array]:
    """Sum of gains times weights, over the candidate's units and over the reference's units."""
    rows, cols = alignment.rows, alignment.cols * similarity
    if isinstance(similarity, np.ndarray):  # ufuncs take half the time of the methods
        gained = np.vecdot(row_weights, np.vecdot(rows, similarity))
        return gained, np.vecdot(col_weights, np.add.reduce(cols, -2))
    gained = (row_weights * (rows * similarity).sum(-1)).sum(-1)
    return gained, (col_weights * cols.sum(-2)).sum(-1)


def total_weight(weights: Array) -> float:
    """Sum of weights; for a few numbers the ufunc takes half the time of the `sum` method."""
    return float(np.add.reduce(weights))


def harmonic_mean(precision: float, recall: float) -> float:
    """F1, 2PR / (P + R); 0 unless both are above 0.

    With a negative number the formula has no meaning and no bound: -0.19 and 0.2 give -7.6.
    """
    positive = precision > 0 and recall > 0
    return 2 * precision * recall / (precision + recall) if positive else 0.0


def harmonic_mean_torch(precision: Any, recall: Any) -> Any:
    """Compute `harmonic_mean` of tensors, with a gradient where both are above 0."""
    undefined = (precision <= 0) | (recall <= 0)
    total = (precision + recall).masked_fill(undefined, 1.0)
    return (2 * precision * recall / total).masked_fill(undefined, 0.0)


def ratio(part: Array, whole: Array) -> Array:
    """Elementwise quotient; 0 where the divisor is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)


def zero_weight_score(x: Embedded, y: Embedded) -> Score:
    """Score of a pair in which a side has no units, or only units of weight 0.

    Two sides without units score 1. Everything else scores 0.
    """
    missing = empty_unit_flags(x, y)
    value = 1.0 if len(missing) == 2 else 0.0
    return Score(value, value, value, combine_flags(x, y) | (missing or NO_MATCH))


def empty_unit_flags(x: Embedded, y: Embedded) -> frozenset[str]:
    """Flags for the sides that have no units."""
    sides = {"empty_candidate": x, "empty_reference": y}
    return frozenset(flag for flag, side in sides.items() if len(side.weights) == 0)


def combine_flags(x: Embedded, y: Embedded) -> frozenset[str]:
    """The flags of both texts."""
    return x.flags | y.flags if x.flags or y.flags else NO_FLAGS


# Rules for empty texts and several references, for metrics that score texts without an alignment


def empty_side_flags(pair: Pair) -> frozenset[str]:
    """Flags for the empty sides of a pair.

    The reference side is empty if all references are, or if the candidate and any reference are.
    """
    blank = [not reference.strip() for reference in pair.references]
    empty = not pair.candidate.strip()
    flags = {"empty_candidate"} if empty else set()
    if all(blank) or (empty and any(blank)):
        flags.add("empty_reference")
    return frozenset(flags) if flags else NO_FLAGS


def empty_text_flags(candidate: str, reference: str) -> frozenset[str]:
    """Flags for the empty ones among a candidate and one reference."""
    return empty_side_flags(Pair(candidate, (reference,)))


def empty_score(pair: Pair) -> Score | None:
    """The flagged score 0 for one empty side and 1 for two; None if both sides hold text."""
    flags = empty_side_flags(pair)
    return Score(float(len(flags) == 2), flags=flags) if flags else None


def overlap_score(
    value: float, precision: float | None = None, recall: float | None = None
) -> Score:
    """Score of two non-empty texts, flagged `no_match` if the value is 0."""
    return Score(value, precision, recall, NO_FLAGS if value else NO_MATCH)


def best_over_references(pair: Pair, score: Callable[[str, str], Score]) -> Score:
    """Highest score of the candidate over its references; the first one on a tie."""
    if found := empty_score(pair):
        return found
    # An empty reference beside a non-empty one would score 0, so it can be skipped.
    references = [reference for reference in pair.references if reference.strip()]
    return max((score(pair.candidate, r) for r in references), key=lambda each: each.value)
