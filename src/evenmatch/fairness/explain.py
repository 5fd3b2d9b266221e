"""Explanation of a score difference within a fairness pair: what each unit contributes to it.

A reducer's precision is a sum over the units of the candidate, and its recall a sum over those of
the reference, so each unit has a share in them: its gain times its weight, divided by the total
weight. The value is a function of precision and recall, for example F1. A change of the value is
divided between the two by their Shapley values: the effect of changing one of them, averaged over
both values of the other. Each unit thus contributes its share times a slope, and the contributions
of both sides add up to the difference of the scores. Units of weight 0, such as the special tokens
of `bertscore`, contribute nothing, although others may be matched to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.data.fairness_sets import FairnessPair
from evenmatch.data.tables import table_to_text
from evenmatch.errors import InputError
from evenmatch.fairness.audit import WorstPair
from evenmatch.protocols import Metric, Reducer
from evenmatch.registry.parts import check_arguments, check_at_least
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.metric import AlignMetric, as_metric
from evenmatch.scoring.reducers import (
    Average,
    Nearness,
    PartialPrf,
    Prf,
    Rescale,
    WorstUnits,
    harmonic_mean,
)
from evenmatch.stats.panel import Floats
from evenmatch.types import Array

Side: TypeAlias = Literal["candidate", "reference", "text"]
ValueFunction: TypeAlias = Callable[[float, float], float]

_SIDES: tuple[Side, Side] = ("candidate", "reference")
_NO_UNIT = "(nothing)"
_WHOLE_TEXT = "(empty text)"
_NEGLIGIBLE = 1e-9  # a change of precision or recall whose slope is the derivative


@dataclass(frozen=True, slots=True)
class UnitMatch:
    """A unit, the unit it is matched to, its gain in similarity, its weight, its contribution.

    The weight is its part of the total weight of its text, and the contribution its part of the
    score, up to a constant that both candidates share.
    """

    unit: str = _NO_UNIT
    partner: str = _NO_UNIT
    gain: float = 0.0
    weight: float = 0.0
    contribution: float = 0.0

    def __str__(self) -> str:
        if self.unit == _NO_UNIT:
            return "no unit stands there"
        if self.partner == _NO_UNIT:
            return f'"{self.unit}" is unmatched'
        return f'"{self.unit}" is matched to "{self.partner}" at similarity {self.gain:.3f}'


@dataclass(frozen=True, slots=True)
class UnitDifference:
    """A unit with the first candidate, the same with the second, and the difference they make.

    A unit of a candidate contributes through precision, a unit of a reference through recall. Units
    that both texts share are compared with each other. Where the texts differ, a unit is compared
    with the one at the same place in the other text.
    """

    side: Side
    first: UnitMatch
    second: UnitMatch

    @property
    def gap(self) -> float:
        """Contribution to the score of the first candidate minus that of the second."""
        return self.first.contribution - self.second.contribution


@dataclass(frozen=True, slots=True, eq=False)
class PairExplanation:
    """Both alignments of a pair, and the contributions to their difference, the largest first.

    `differences` may be cut to the largest; `precision` and `recall` are the sums over all units of
    the candidates and of the references, and `total_change` the sum without signs.
    """

    first: Aligned
    second: Aligned
    differences: tuple[UnitDifference, ...]
    precision: float
    recall: float
    total_change: float

    @property
    def gap(self) -> float:
        """Score of the first candidate minus score of the second."""
        return self.first.score.value - self.second.score.value

    def summary(self) -> str:
        """Describe the largest contribution in a few sentences."""
        if not self.differences or not self.differences[0].gap:
            return f"The scores differ by {self.gap:+.4f}; no unit contributes to it."
        most = self.differences[0]
        share = abs(most.gap) / self.total_change
        first, second = most.first, most.second
        return (
            f"The scores differ by {self.gap:+.4f}: {self.precision:+.4f} through precision and "
            f"{self.recall:+.4f} through recall. Largest contribution: {most.gap:+.4f} "
            f"({share:.0%} of all changes), because in the {most.side} {first}; with the other "
            f"candidate {second}."
        )

    def __str__(self) -> str:
        each_side = ["matched to", "similarity", "weight", "part of score"]
        header = ["side", "first", *each_side, "second", *each_side, "difference"]
        rows = [
            [
                each.side,
                *_match_cells(each.first),
                *_match_cells(each.second),
                f"{each.gap:+.4f}",
            ]
            for each in self.differences
        ]
        return f"{self.summary()}\n\n{table_to_text([header, *rows])}"


@check_arguments
def explain_pair(
    pair: FairnessPair | WorstPair, metric: str | Metric = "bertscore", *, most: int = 8
) -> PairExplanation:
    """Explain how an alignment metric scores the two candidates of a pair differently.

    `pair` is a result of `make_fairness_pair`, one of a `FairnessSet`, or one of the pairs with the
    largest differences that an audit reports (`Audit.worst`). The result holds the `most` largest
    contributions; 0 keeps all of them, and then they add up to the difference of the scores.
    """
    check_at_least(0, most=most)
    if isinstance(pair, WorstPair):
        pair = pair.pair
    built = as_metric(metric)
    if not isinstance(built, AlignMetric):
        raise InputError(
            f"{metric!s:.60} is no alignment metric; explain a metric such as bertscore or f_disc"
        )
    first, second = (align_texts(p.candidate, p.references[0], built) for p in pair.both)
    return explain_alignments(first, second, built.scoring, most=most)


@check_arguments
def explain_alignments(
    first: Aligned, second: Aligned, scoring: Reducer, *, most: int = 0
) -> PairExplanation:
    """Explain the difference between the scores that a reducer gives to two alignments."""
    shares = [unit_shares(aligned, scoring) for aligned in (first, second)]
    sums = [(float(rows.sum()), float(cols.sum())) for rows, cols in shares]
    value = value_function(scoring)
    slopes = _shapley_slopes(value, *sums)
    found: list[UnitDifference] = []
    for at, side in enumerate(_SIDES):
        one, two = (
            list(_unit_matches(aligned, each[at] * slopes[at], at))
            for aligned, each in zip((first, second), shares, strict=True)
        )
        found += _unit_differences(side, one, two)
    precision, recall = (sum(d.gap for d in found if d.side == side) for side in _SIDES)
    # an empty text has a score of its own, which no unit contributes to
    rest = [
        aligned.score.value - value(*both)
        for aligned, both in zip((first, second), sums, strict=True)
    ]
    if abs(rest[0] - rest[1]) > _NEGLIGIBLE:
        one_text, other_text = (UnitMatch(_WHOLE_TEXT, contribution=part) for part in rest)
        found.append(UnitDifference("text", one_text, other_text))
    total = sum(abs(each.gap) for each in found)
    found.sort(key=lambda each: -abs(each.gap))
    kept = tuple(found[:most] if most else found)
    return PairExplanation(first, second, kept, precision, recall, total)


@check_arguments
def unit_shares(aligned: Aligned, scoring: Reducer) -> tuple[Floats, Floats]:
    """Return the shares of the candidate's units in precision and of the reference's in recall.

    Before rescaling, precision and recall are the sums. `nearness` has minus the distance instead
    of precision, and no recall.
    """
    if isinstance(scoring, Rescale):
        return unit_shares(aligned, scoring.base)
    gains, weights = _gains(aligned), _weights(aligned)
    if not all(weight.sum() > 0 for weight in weights):
        return np.zeros(len(weights[0])), np.zeros(len(weights[1]))
    rows, cols = (gain * weight / weight.sum() for gain, weight in zip(gains, weights, strict=True))
    if isinstance(scoring, Prf | Average):
        return rows, cols
    if isinstance(scoring, Nearness):
        return rows, np.zeros_like(cols)
    if isinstance(scoring, WorstUnits):
        rows, cols = (
            _worst_shares(gain, np.flatnonzero(weight > 0), scoring)
            for gain, weight in zip(gains, weights, strict=True)
        )
        return rows, cols
    if isinstance(scoring, PartialPrf):
        similarity = np.asarray(aligned.similarity, dtype=np.float64)
        unmatched = weights[0] * np.maximum(1 - np.asarray(aligned.alignment.rows).sum(1), 0.0)
        likeness = (similarity.max(1) - scoring.new) / (scoring.repeated - scoring.new)
        again = unmatched * likeness.clip(0.0, 1.0)
        gained = gains[0] * weights[0] + scoring.credit * (unmatched - again)
        return gained / (weights[0].sum() + (scoring.penalty - 1) * again.sum()), cols
    raise _unknown_reducer(scoring)


def value_function(scoring: Reducer) -> ValueFunction:
    """Return the function that computes a reducer's value from precision and recall."""
    if isinstance(scoring, Rescale):
        base, low = value_function(scoring.base), scoring.low
        return lambda precision, recall: (base(precision, recall) - low) / (1 - low)
    if isinstance(scoring, Average):
        return lambda precision, recall: (precision + recall) / 2
    if isinstance(scoring, Nearness):
        if scoring.linear:
            return lambda nearness, _: 1 - max(0.0, -nearness)
        return lambda nearness, _: 1 / (1 + max(0.0, -nearness))
    if isinstance(scoring, Prf | WorstUnits | PartialPrf):
        return harmonic_mean
    raise _unknown_reducer(scoring)


def _unknown_reducer(scoring: object) -> InputError:
    return InputError(
        f"cannot explain the scores of {type(scoring).__name__}; use prf, average, rescale, worst, "
        "partial_prf or nearness"
    )


def _shapley_slopes(
    value: ValueFunction, one: tuple[float, float], other: tuple[float, float]
) -> tuple[float, float]:
    """Return how much the value changes per unit of precision and of recall, between two points."""

    def slope(part: int, fixed: float) -> float:
        start, end = one[part], other[part]
        if abs(start - end) < _NEGLIGIBLE:  # the derivative
            start, end = start + 1e-6, start - 1e-6
        values = [value(fixed, x) if part else value(x, fixed) for x in (start, end)]
        return (values[0] - values[1]) / (start - end)

    precision, recall = (
        (slope(part, one[1 - part]) + slope(part, other[1 - part])) / 2 for part in (0, 1)
    )
    return precision, recall


def _gains(aligned: Aligned) -> tuple[Floats, Floats]:
    """Return the similarity that each unit of both texts gains from its partners."""
    similarity = np.asarray(aligned.similarity, dtype=np.float64)
    shape = len(aligned.candidate_units), len(aligned.reference_units)
    similarity = similarity.reshape(shape)
    rows, cols = (
        np.asarray(part, dtype=np.float64).reshape(shape)
        for part in (aligned.alignment.rows, aligned.alignment.cols)
    )
    return (rows * similarity).sum(1), (cols * similarity).sum(0)


def _weights(aligned: Aligned) -> tuple[Floats, Floats]:
    one, other = (
        np.asarray(given, dtype=np.float64) if len(given) else np.ones(len(units))
        for given, units in (
            (aligned.candidate_weights, aligned.candidate_units),
            (aligned.reference_weights, aligned.reference_units),
        )
    )
    return one, other


def _worst_shares(gains: Floats, weighted: Array, scoring: WorstUnits) -> Floats:
    """Return the shares in the mean over the worst units with a weight; the others have none."""
    shares = np.zeros(len(gains))
    worst = weighted[np.argsort(gains[weighted], kind="stable")]
    chosen = worst[: scoring.count(len(weighted))]
    shares[chosen] = gains[chosen] / len(chosen)
    return shares


def _unit_matches(aligned: Aligned, contributions: Floats, at: int) -> Iterator[UnitMatch]:
    """Yield the units of the candidate (0) or of the reference (1) with what they contribute."""
    units = (aligned.candidate_units, aligned.reference_units)
    gains, weights = _gains(aligned)[at], _weights(aligned)[at]
    credit = np.asarray(aligned.alignment.cols).T if at else np.asarray(aligned.alignment.rows)
    total = weights.sum() or 1.0
    for i, unit in enumerate(units[at]):
        partner = units[1 - at][int(credit[i].argmax())] if credit[i].any() else _NO_UNIT
        yield UnitMatch(
            unit, partner, float(gains[i]), float(weights[i] / total), float(contributions[i])
        )


def _unit_differences(
    side: Side, one: Sequence[UnitMatch], two: Sequence[UnitMatch]
) -> Iterator[UnitDifference]:
    """Pair the units of two texts: equal units, and replaced units by position."""
    names = [[match.unit for match in matches] for matches in (one, two)]
    matcher = SequenceMatcher(None, names[0], names[1], autojunk=False)
    for _, i, j, k, m in matcher.get_opcodes():
        for first, second in zip_longest(one[i:j], two[k:m], fillvalue=UnitMatch()):
            yield UnitDifference(side, first, second)


def _match_cells(match: UnitMatch) -> list[str]:
    numbers = (match.gain, match.weight, match.contribution)
    return [
        match.unit,
        match.partner,
        *(f"{number:.3f}" for number in numbers[:2]),
        f"{numbers[2]:.4f}",
    ]
