"""Timing on a noisy machine: programs alternate within a run, and medians are reported."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def take_turns(rivals: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each program per round; a round runs all, in alternating order."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(repeats):
        order = list(rivals) if turn % 2 == 0 else list(rivals)[::-1]
        for name in order:
            start = time.perf_counter()
            rivals[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> float:
    """The median over rounds of how many times longer `slow` took."""
    return round(statistics.median(s / f for s, f in zip(slow, fast, strict=True)), 3)


def median(seconds: list[float]) -> float:
    return statistics.median(seconds)
