"""Intervals and paired tests of many scores at once: every draw of documents serves them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.stats.arrays import Floats, blocks
from evenmatch.stats.resampling import drawn
from evenmatch.stats.swaps import p_value
from evenmatch.types import Array


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One score of many: its value, on resampled documents, and what it rests on."""

    value: float
    draws: Floats
    total: Floats
    moved: Floats  # sums over the documents that each trial swaps
    score: Callable[[Array], Array]


def draw(
    counts: Mapping[Any, Array],
    scores: Mapping[Any, Callable[[Array], Array]],
    *,
    resamples: int,
    trials: int,
    seed: int,
) -> dict[Any, Drawn]:
    """Every score with its resamples, and with its share of what `trials` swaps would move."""
    stack = np.concatenate([*counts.values()], axis=1)
    again = _weighted(stack, resamples, seed, drawn)
    moved = _weighted(stack, trials, seed, _kept)
    found, start = {}, 0
    for key, own in counts.items():
        part = slice(start, start + own.shape[1])
        start = part.stop
        total = own.sum(0)
        found[key] = Drawn(
            float(scores[key](total)),
            scores[key](again[:, part]),
            total,
            moved[:, part],
            scores[key],
        )
    return found


def _weighted(
    stack: Floats, times: int, seed: int, weights: Callable[[int, int, np.random.Generator], Floats]
) -> Floats:
    """Sums of the rows under random weights, so many times."""
    rng = np.random.default_rng(seed)
    sums = np.empty((times, stack.shape[1]))
    for some in blocks(times, len(stack)):
        sums[some] = weights(len(stack), some.stop - some.start, rng) @ stack
    return sums


def _kept(count: int, times: int, rng: np.random.Generator) -> Floats:
    return rng.integers(2, size=(times, count), dtype=np.uint8).astype(np.float64)


def interval(draws: Floats, confidence: float) -> tuple[float, float]:
    """The bounds that hold so much of the draws."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_p(one: Drawn, two: Drawn) -> float:
    """The p-value of no difference: resamples as far from the difference as 0 is (Koehn 2004)."""
    value = one.value - two.value
    return p_value(one.draws - two.draws - value, value, "two-sided")


def randomisation_p(one: Drawn, two: Drawn) -> float:
    """The p-value of no difference, by swapping outputs (Riezler & Maxwell 2005)."""
    return p_value(swapped_differences(one, two), one.value - two.value, "two-sided")


def swapped_differences(one: Drawn, two: Drawn) -> Floats:
    """What the difference would be, had the outputs been swapped as each trial says."""
    swapped = two.total + one.moved - two.moved
    found: Floats = one.score(swapped) - two.score(one.total + two.total - swapped)
    return found


def mean_of_seeds(several: Sequence[Drawn]) -> tuple[float, Floats]:
    """The mean value of scores, and of their resamples, which saw the same documents."""
    return (
        float(np.mean([each.value for each in several])),
        np.mean([each.draws for each in several], axis=0),
    )
