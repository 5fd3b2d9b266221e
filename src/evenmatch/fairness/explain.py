"""Why a metric tells the two candidates of a pair apart: the matches that move its score."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from evenmatch.data.fairness_sets import FairnessPair
from evenmatch.data.tables import table_to_text
from evenmatch.protocols import Metric
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.metric import as_metric

_NO_UNIT = "(nothing)"


@dataclass(frozen=True, slots=True)
class UnitDifference:
    """What one candidate unit, here in both candidates, is matched to and gains in each.

    Units that only one candidate has are beside those that stand in their place in the other.
    """

    unit_a: str
    unit_b: str
    partner_a: str
    partner_b: str
    similarity_a: float
    similarity_b: float

    @property
    def gap(self) -> float:
        """By how much the first candidate's unit is nearer to its partner."""
        return self.similarity_a - self.similarity_b

    @property
    def table_row(self) -> list[str]:
        """The share as a row of a table."""
        first = [self.unit_a, self.partner_a, f"{self.similarity_a:.3f}"]
        second = [self.unit_b, self.partner_b, f"{self.similarity_b:.3f}"]
        return [*first, *second, f"{self.gap:+.3f}"]

    @property
    def same(self) -> bool:
        """Whether it is the same unit with the same partner."""
        return (self.unit_a, self.partner_a) == (self.unit_b, self.partner_b)


@dataclass(frozen=True, slots=True, eq=False)
class PairExplanation:
    """Both alignments of a pair, and the candidate units that make the difference, most first."""

    first: Aligned
    second: Aligned
    differences: tuple[UnitDifference, ...]

    @property
    def gap(self) -> float:
        """By how much the first candidate scores higher."""
        return self.first.score.value - self.second.score.value

    def summary(self) -> str:
        """The difference in a sentence."""
        if not self.differences or not self.differences[0].gap:
            return f"The scores differ by {self.gap:+.4f}; no match of a unit changes."
        most = self.differences[0]
        moved = sum(abs(share.gap) for share in self.differences)
        sides = (
            f'"{unit}" matched to "{partner}" at {similarity:.3f}'
            for unit, partner, similarity in (
                (most.unit_a, most.partner_a, most.similarity_a),
                (most.unit_b, most.partner_b, most.similarity_b),
            )
        )
        share = abs(most.gap) / moved
        return (
            f"The scores differ by {self.gap:+.4f}; {share:.0%} of it: {' against '.join(sides)}."
        )

    def __str__(self) -> str:
        header = ["first", "matched to", "at", "second", "matched to", "at", "gap"]
        rows = [share.table_row for share in self.differences]
        return f"{self.summary()}\n\n{table_to_text([header, *rows])}"


def explain_pair(
    pair: FairnessPair, metric: str | Metric = "bertscore", *, most: int = 8
) -> PairExplanation:
    """The matches of an alignment metric that move its score between the candidates of a pair."""
    built = as_metric(metric)
    first, second = (align_texts(p.candidate, p.references[0], built) for p in pair.both)
    shares = sorted(_unit_differences(first, second), key=lambda share: -abs(share.gap))
    return PairExplanation(first, second, tuple(shares[:most]))


def _unit_differences(first: Aligned, second: Aligned) -> list[UnitDifference]:
    """Units of both candidates side by side: equal ones, and what stands in place of another."""
    a, b = first.candidate_units, second.candidate_units
    found = []
    for _, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for n in range(max(j - i, m - k)):
            one = i + n if i + n < j else None
            two = k + n if k + n < m else None
            found.append(_unit_difference(first, one, second, two))
    return found


def _unit_difference(
    first: Aligned, one: int | None, second: Aligned, two: int | None
) -> UnitDifference:
    left, right = _best_match(first, one), _best_match(second, two)
    return UnitDifference(left[0], right[0], left[1], right[1], left[2], right[2])


def _best_match(aligned: Aligned, at: int | None) -> tuple[str, str, float]:
    """A candidate unit, the reference unit most of its credit comes from, and what it gains."""
    if at is None:
        return _NO_UNIT, _NO_UNIT, 0.0
    rows = np.asarray(aligned.alignment.rows)[at]
    gained = float((rows * np.asarray(aligned.similarity)[at]).sum())
    if not rows.any():
        return aligned.candidate_units[at], _NO_UNIT, 0.0
    return aligned.candidate_units[at], aligned.reference_units[int(rows.argmax())], gained
