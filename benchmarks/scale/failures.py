"""Cost of killed workers: they die at random, lose their current shard, and restart.

The simulation is compared with the expectation for one worker: with r kills per second and d
seconds to restart, a shard of s seconds takes (exp(rs) - 1) * (1/r + d) on average.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from evenmatch.distributed.run import RETRIES

WORKERS, SHARDS, SEED = 16, 4000, 0
START_UP = 10.0


def table() -> list[dict[str, Any]]:
    """The overhead for several lengths of a shard and rates of kills."""
    return [
        {
            "shard seconds": seconds,
            "kills per worker and hour": kills,
            "simulated": round(overhead(seconds, kills / 3600, START_UP, seed=SEED), 4),
            "expected": round(expectation(seconds, kills / 3600, START_UP), 4),
            "given up": round(given_up(seconds, kills / 3600), 6),
        }
        for seconds in (10, 60, 600)
        for kills in (0.1, 1, 10)
    ]


def expectation(seconds: float, rate: float, start_up: float) -> float:
    """The share of time lost by one worker on average."""
    return math.expm1(rate * seconds) * (1 / rate + start_up) / seconds - 1


def given_up(seconds: float, rate: float) -> float:
    """The share of shards that are killed at every try."""
    return (-math.expm1(-rate * seconds)) ** (RETRIES + 1)


def overhead(seconds: float, rate: float, start_up: float, *, seed: int) -> float:
    """How much longer a run of many shards takes than without a kill."""
    rng = np.random.default_rng(seed)
    free = [0.0] * WORKERS
    end = 0.0
    for _ in range(SHARDS):
        now = heapq.heappop(free)
        while (life := rng.exponential(1 / rate)) < seconds:
            now += life + start_up
        now += seconds
        end = max(end, now)
        heapq.heappush(free, now)
    return end / (math.ceil(SHARDS / WORKERS) * seconds) - 1
