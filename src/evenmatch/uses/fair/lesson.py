"""What an adapter is trained on, and how long and how hard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evenmatch.data.fair_templates import lesson_pairs
from evenmatch.errors import InputError
from evenmatch.types import Array, Pair
from evenmatch.uses.fair.blindness import gendered_cases
from evenmatch.uses.fair.counterfactuals import Counterfactual, counterfactuals
from evenmatch.vectors.adapter import FACTOR

T = TypeVar("T")
Texts = tuple[str, str]  # a candidate and its reference


@dataclass(frozen=True, slots=True)
class Lesson:
    """Steps, examples of each kind a step, the learning rate, and what counts how much.

    `keep` weighs that sentence pairs keep their scores, `mind` that a wrong gender keeps costing;
    that the two candidates of a pair score alike weighs 1.
    """

    steps: int = 400
    batch: int = 16
    rate: float = 1e-3
    keep: float = 1.0
    mind: float = 1.0
    factor: int = FACTOR
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or not self.rate > 0:
            raise InputError(
                "training takes at least 1 step, 1 example a step and a rate above 0, got "
                f"{self.steps}, {self.batch} and {self.rate}"
            )
        if self.keep < 0 or self.mind < 0:
            raise InputError(f"weights must not be negative, got {self.keep} and {self.mind}")


@dataclass(frozen=True, slots=True)
class Material:
    """What should score alike, and what should keep the score it has."""

    alike: tuple[Counterfactual, ...]
    kept: tuple[Texts, ...]
    minded: tuple[Texts, ...]

    def texts(self) -> Iterable[str]:
        """Every text that is trained on."""
        for each in self.alike:
            yield from (each.original, each.swapped, each.neutral)
        for pair in (*self.kept, *self.minded):
            yield from pair


def material_of(pairs: Sequence[Pair], *, templates: bool = True) -> Material:
    """Sentence pairs as training material, with our own sentences about occupations.

    Scores alike: a sentence and its counterfactual against the neutral one. Kept: the pairs as they
    are. Minded: a counterfactual against what it was made from, and against that one's partner.
    A pair with an empty side teaches nothing and is left out.
    """
    pairs = [p for p in pairs if p.candidate.strip() and all(r.strip() for r in p.references)]
    found = counterfactuals(t for pair in pairs for t in (pair.candidate, *pair.references))
    written = [
        Counterfactual(p.first.candidate, p.second.candidate, p.first.references[0])
        for p in (lesson_pairs() if templates else ())
    ]
    swapped = [(case.wrong.candidate, case.wrong.references[0]) for case in gendered_cases(pairs)]
    # both ways, since a template's first candidate is always the same group
    turned = [
        texts
        for c in (*found, *written)
        for texts in ((c.swapped, c.original), (c.original, c.swapped))
    ]
    return Material(
        # sentences of our own are few beside those of a corpus, and as many are drawn of them
        tuple(_evened(found, written)),
        tuple((pair.candidate, pair.references[0]) for pair in pairs),
        tuple(_evened(swapped, turned)),
    )


def _evened(one: Sequence[T], other: Sequence[T]) -> list[T]:
    """Both lists, the shorter repeated until it is as long."""
    if not one or not other:
        return [*one, *other]
    most = max(len(one), len(other))
    return [each[i % len(each)] for i in range(most) for each in (one, other)]


def drawn(count: int, lesson: Lesson, step: int, kind: int) -> Array:
    """Which examples of a kind a step is shown; the same whenever that step is taken."""
    draw = np.random.default_rng((lesson.seed, step, kind))
    return draw.integers(count, size=lesson.batch)
