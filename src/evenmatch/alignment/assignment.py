"""Alignments that give each unit at most one partner: greedy matching and linear assignment.

These are the shortest examples of a solver. A one-to-one solver that can miss the greatest total
similarity sets `exact=False` in its alignments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.registry import register
from evenmatch.types import Alignment, Problem


@register("alignment", "greedy")
@dataclass(frozen=True)
class Greedy:
    """Each unit takes its most similar partner; partners may be taken more than once (BERTScore).

    Ties go to the lower index.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem; rows and columns choose independently."""
        return [self._solve_one(p) for p in problems]

    def _solve_one(self, problem: Problem) -> Alignment:
        similarity = np.asarray(problem.similarity)
        m, n = similarity.shape
        rows, cols = np.zeros((m, n)), np.zeros((m, n))
        if m and n:
            rows[np.arange(m), similarity.argmax(1)] = 1.0
            cols[similarity.argmax(0), np.arange(n)] = 1.0
        return Alignment(rows, cols)


@register("alignment", "lsa")
@dataclass(frozen=True)
class Lsa:
    """The one-to-one alignment with the greatest total similarity: min(m, n) pairs (F_DISC).

    The remaining units of the longer side stay unmatched and get no credit.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem exactly, with SciPy's shortest augmenting paths."""
        from scipy.optimize import linear_sum_assignment

        alignments = []
        for problem in problems:
            similarity = np.asarray(problem.similarity)
            plan = np.zeros(similarity.shape)
            plan[linear_sum_assignment(similarity, maximize=True)] = 1.0
            alignments.append(Alignment(plan, plan))
        return alignments
