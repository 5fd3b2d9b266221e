"""What a metric is trained on: pairs of texts as numbers, and the score each should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.data.ratings import RatedSet
from evenmatch.errors import InputError
from evenmatch.types import Array, Pair

FEWEST = 8


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Distinct texts; each example's candidate and reference among them, and its target."""

    texts: tuple[str, ...]
    candidates: Array
    references: Array
    targets: Array

    def __len__(self) -> int:
        return len(self.targets)


def examples_of(pairs: Sequence[Pair], targets: Sequence[float]) -> Examples:
    """Pairs with their targets; of several references the first, and no pair with an empty side."""
    kept = [
        (pair.candidate, pair.references[0], target)
        for pair, target in zip(pairs, targets, strict=True)
        if pair.candidate.strip() and pair.references[0].strip()
    ]
    if len(kept) < FEWEST:
        raise InputError(f"{len(kept)} rated pairs of texts are too few to train on; give {FEWEST}")
    number = {
        text: i for i, text in enumerate(dict.fromkeys(t for c, r, _ in kept for t in (c, r)))
    }
    values = np.array([target for *_, target in kept], dtype=np.float64)
    if values.std() == 0:
        raise InputError(f"all {len(kept)} pairs have the same rating, {values[0]:g}; give others")
    return Examples(
        tuple(number),
        np.array([number[c] for c, _, _ in kept], dtype=np.intp),
        np.array([number[r] for _, r, _ in kept], dtype=np.intp),
        values,
    )


def rated_pairs(sets: Sequence[RatedSet]) -> tuple[list[Pair], list[float]]:
    """Every rated output with its references, and its rating; outputs of people are left out."""
    pairs: list[Pair] = []
    ratings: list[float] = []
    for each in (given.without_people() for given in sets):
        cells = each.cells(rated=True)
        pairs += each.pairs(cells)
        ratings += each.ratings[cells].tolist()
    return pairs, ratings
