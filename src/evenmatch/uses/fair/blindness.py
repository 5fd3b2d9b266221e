"""Whether a metric still minds a wrong gender: fair is not blind.

Where the reference itself says "he", a candidate that says "she" is wrong, and must go on costing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.fair_terms import Term, own_terms
from evenmatch.errors import InputError
from evenmatch.scoring.together import score_together
from evenmatch.types import Metric, Pair, Run
from evenmatch.uses.fair.counterfactuals import swap

_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Case:
    """A reference that names a group; a candidate that agrees with it, and one that does not."""

    right: Pair
    wrong: Pair


def gendered_cases(pairs: Sequence[Pair], terms: Sequence[Term] = ()) -> list[Case]:
    """The pairs whose two sides speak of the same one group, beside the candidate swapped."""
    words = tuple(terms) or own_terms()
    found = []
    for pair in pairs:
        groups = groups_of(pair.candidate, words)
        if len(groups) == 1 and groups == groups_of(pair.references[0], words):
            wrong = Pair(swap(pair.candidate, words), pair.references)
            found.append(Case(pair, wrong))
    return found


def groups_of(text: str, terms: Sequence[Term]) -> frozenset[int]:
    """Which of the two groups a text speaks of: 0, 1, both or none.

    >>> sorted(groups_of("He met a woman.", own_terms()))
    [0, 1]
    """
    said = set(_WORD.findall(text))
    low = {word.lower() for word in said}
    return frozenset(
        side
        for term in terms
        for side, word in enumerate((term.one, term.other))
        if (word in said if term.name else word.lower() in low)
    )


def penalties(metrics: Sequence[Metric], cases: Sequence[Case], run: Run) -> list[float]:
    """By how much each metric scores wrong candidates below right ones, on average."""
    if not cases:
        raise InputError("no pair speaks of one group on both sides; give pairs that do")
    texts = [pair for case in cases for pair in (case.right, case.wrong)]
    every = [
        np.array([s.value for s in own.segments]) for own in score_together(metrics, texts, run)
    ]
    return [float((values[::2] - values[1::2]).mean()) for values in every]
