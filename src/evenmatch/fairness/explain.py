"""Explanation of a score difference within a fairness pair by the unit matches that change."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

import numpy as np

from evenmatch.data.fairness_sets import FairnessPair
from evenmatch.data.tables import table_to_text
from evenmatch.protocols import Metric
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.metric import as_metric

_NO_UNIT = "(nothing)"


@dataclass(frozen=True, slots=True)
class UnitDifference:
    """A unit of each candidate, the reference unit it is matched to, and the similarity gained.

    Units that both candidates share are compared with each other. Where the candidates differ, a
    unit is compared with the one at the same place in the other candidate.
    """

    unit_a: str
    partner_a: str
    similarity_a: float
    unit_b: str
    partner_b: str
    similarity_b: float

    @property
    def gap(self) -> float:
        """Similarity gained by the first candidate's unit minus that of the second's."""
        return self.similarity_a - self.similarity_b


@dataclass(frozen=True, slots=True, eq=False)
class PairExplanation:
    """Both alignments of a pair, and the units that differ, the largest difference first."""

    first: Aligned
    second: Aligned
    differences: tuple[UnitDifference, ...]
    total_change: float  # sum of the absolute differences of all units, also of those left out

    @property
    def gap(self) -> float:
        """Score of the first candidate minus score of the second."""
        return self.first.score.value - self.second.score.value

    def summary(self) -> str:
        """Describe the largest difference in one sentence."""
        if not self.differences or not self.differences[0].gap:
            return f"The scores differ by {self.gap:+.4f}; no unit is matched differently."
        most = self.differences[0]
        share = abs(most.gap) / self.total_change
        return (
            f"The scores differ by {self.gap:+.4f}. Largest change ({share:.0%} of the total "
            f'change in similarity): "{most.unit_a}" is matched to "{most.partner_a}" at '
            f'similarity {most.similarity_a:.3f}, "{most.unit_b}" to "{most.partner_b}" at '
            f"{most.similarity_b:.3f}."
        )

    def __str__(self) -> str:
        header = ["first", "matched to", "similarity", "second", "matched to", "similarity", "gap"]
        rows = [
            [
                *(each.unit_a, each.partner_a, f"{each.similarity_a:.3f}"),
                *(each.unit_b, each.partner_b, f"{each.similarity_b:.3f}"),
                f"{each.gap:+.3f}",
            ]
            for each in self.differences
        ]
        return f"{self.summary()}\n\n{table_to_text([header, *rows])}"


def explain_pair(
    pair: FairnessPair, metric: str | Metric = "bertscore", *, most: int = 8
) -> PairExplanation:
    """Explain how an alignment metric scores the two candidates of a pair differently.

    The result holds the `most` units whose similarity gain differs most.
    """
    built = as_metric(metric)
    first, second = (align_texts(p.candidate, p.references[0], built) for p in pair.both)
    differences = sorted(_unit_differences(first, second), key=lambda each: -abs(each.gap))
    total = sum(abs(each.gap) for each in differences)
    return PairExplanation(first, second, tuple(differences[:most]), total)


def _unit_differences(first: Aligned, second: Aligned) -> list[UnitDifference]:
    """Pair the units of both candidates: equal units, and replaced units by position."""
    matcher = SequenceMatcher(None, first.candidate_units, second.candidate_units, autojunk=False)
    return [
        UnitDifference(*_best_match(first, one), *_best_match(second, two))
        for _, i, j, k, m in matcher.get_opcodes()
        for one, two in zip_longest(range(i, j), range(k, m))
    ]


def _best_match(aligned: Aligned, at: int | None) -> tuple[str, str, float]:
    """Return a candidate unit, the reference unit with most of its weight, and its similarity."""
    if at is None:
        return _NO_UNIT, _NO_UNIT, 0.0
    rows = np.asarray(aligned.alignment.rows)[at]
    gained = float((rows * np.asarray(aligned.similarity)[at]).sum())
    if not rows.any():
        return aligned.candidate_units[at], _NO_UNIT, 0.0
    return aligned.candidate_units[at], aligned.reference_units[int(rows.argmax())], gained
