"""Workers as the driver of a run sees them, whatever they run on."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from typing import Protocol

from evenmatch.errors import DataError
from evenmatch.uses.scale.job import Job, Reply, Task

# A worker that dies before it is ready may be bad luck; a few in a row are not.
_MOST_DEATHS_AT_START = 3


class Pool(Protocol):
    """Workers of one job; those that die are replaced."""

    def idle(self) -> int: ...
    def give(self, task: Task, /) -> None: ...
    def replies(self) -> list[Reply]: ...


class Runner(Protocol):
    """Opens a pool for a job; the workers are gone when the block ends."""

    def __call__(self, job: Job, /) -> AbstractContextManager[Pool]: ...


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def thread_environment(threads: int) -> dict[str, str]:
    """Environment variables that keep a worker to its threads, whichever library asks."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "TOKENIZERS_PARALLELISM": "false"}


class Starts:
    """Counts workers that died before they were ready, and gives up after a few in a row."""

    def __init__(self) -> None:
        self._deaths = 0

    def went_well(self) -> None:
        """A worker is ready."""
        self._deaths = 0

    def died(self, why: str) -> None:
        """A worker died before it was ready."""
        self._deaths += 1
        if self._deaths >= _MOST_DEATHS_AT_START:
            raise DataError(f"workers die before they are ready: {why}")
