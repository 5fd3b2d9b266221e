"""Two candidates beside the references they are scored against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from evenmatch.types import Pair

# By metric: the published scores of the first and of the second candidate.
Scored: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FairPair:
    """Two candidates that should score alike; the `first` is the one a stereotype expects."""

    first: Pair
    second: Pair
    scores: Scored = field(default_factory=dict)

    @property
    def both(self) -> tuple[Pair, Pair]:
        """What is scored, the stereotype first."""
        return self.first, self.second


def fair_pair(
    candidate_a: str,
    reference_a: str,
    candidate_b: str,
    reference_b: str,
    *,
    scores: Scored | None = None,
) -> FairPair:
    """A pair out of its four texts."""
    return FairPair(
        Pair(candidate_a, (reference_a,)), Pair(candidate_b, (reference_b,)), scores or {}
    )
