"""Scores of an arm by its seeds: the mean, its interval, and what two arms differ by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from evenmatch.stats.intervals import Interval
from evenmatch.stats.swaps import p_value
from evenmatch.uses.keyphrases.resampling import (
    Drawn,
    interval,
    mean_of_seeds,
    swapped_differences,
)

CONFIDENCE = 0.95


class Seeded(Protocol):
    """An arm: its seeds, and by metric what each of them scores on the same resampled tests."""

    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def drawn(self) -> Mapping[str, tuple[Drawn, ...]]: ...


def mean_over_seeds(arm: Seeded, metric: str) -> Interval:
    """The mean over seeds, with the bounds that resampled tests give it."""
    value, draws = mean_of_seeds(arm.drawn[metric])
    return Interval(value, *interval(draws, CONFIDENCE))


def gap(one: Seeded, other: Seeded, metric: str) -> Interval:
    """The mean difference of two arms on the same tests and seeds."""
    shared = shared_seeds(one, other)
    (a, a_draws), (b, b_draws) = (
        mean_of_seeds([each.drawn[metric][each.seeds.index(seed)] for seed in shared])
        for each in (one, other)
    )
    return Interval(a - b, *interval(a_draws - b_draws, CONFIDENCE))


def swapping_p(one: Seeded, other: Seeded, metric: str) -> float:
    """The p-value of no difference for these seeds, by swapping the arms' outputs test by test.

    A test is swapped for all seeds at once, since they share its difficulty.
    """
    pairs = [
        [each.drawn[metric][each.seeds.index(seed)] for each in (one, other)]
        for seed in shared_seeds(one, other)
    ]
    value = float(np.mean([a.value - b.value for a, b in pairs]))
    draws = np.mean([swapped_differences(a, b) for a, b in pairs], axis=0)
    return p_value(draws, value, "two-sided")


def seed_gaps(one: Seeded, other: Seeded, metric: str) -> list[float]:
    """The difference of two arms, seed by seed."""
    values = [
        {seed: drawn.value for seed, drawn in zip(each.seeds, each.drawn[metric], strict=True)}
        for each in (one, other)
    ]
    return [values[0][seed] - values[1][seed] for seed in shared_seeds(one, other)]


def shared_seeds(one: Seeded, other: Seeded) -> list[int]:
    """The seeds that both arms were run with."""
    return [seed for seed in one.seeds if seed in other.seeds]


def cell(found: Interval, *, signed: bool = False, times: float = 1.0, places: int = 3) -> str:
    """A number and its bounds as a table shows them.

    >>> cell(Interval(0.125, 0.1, 0.15), times=100, places=1, signed=True)
    '+12.5 [+10.0, +15.0]'
    """
    form = f"{'+' if signed else ''}.{places}f"
    value, low, high = (f"{times * n:{form}}" for n in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"
