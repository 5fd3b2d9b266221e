"""What travels to a worker: specs and settings, never objects.

Workers as the driver of a run sees them, whatever they run on.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from evenmatch.distributed.shards import FileChunk
from evenmatch.errors import DataError


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """What every worker of a run is told once.

    `metrics` are names with their specs, `form` the suffix of the files of scores, `folder` where
    relative paths in specs begin, `tables` the idf tables counted from the whole input.
    """

    metrics: tuple[tuple[str, str], ...]
    suffix: str
    settings: dict[str, Any] = field(default_factory=dict)
    working_dir: str = ""
    idf_tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard to score; with `only`, try those rows and keep nothing."""

    number: int
    first: int
    file: str
    chunk: FileChunk
    data: bytes
    only_rows: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker has loaded its metrics: their signatures, and the seconds that took."""

    signatures: dict[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class ShardDone:
    """A shard's scores as the bytes of a file, with what the record keeps of them."""

    number: int
    data: bytes
    tallies: dict[str, dict[str, Any]]
    flags: dict[str, int]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class ShardFailed:
    """A shard that could not be scored, and why.

    `row` is the offending one, counted from the shard's first, where it is known; `again` says
    whether another try may help.
    """

    number: int
    reason: str
    row: int | None = None
    retryable: bool = True


WorkerReply = WorkerReady | ShardDone | ShardFailed


# A worker that dies before it is ready may be bad luck; a few in a row are not.
_MAX_STARTUP_FAILURES = 3


class WorkerPool(Protocol):
    """Workers of one job; those that die are replaced."""

    def idle_count(self) -> int: ...
    def submit(self, task: ShardTask, /) -> None: ...
    def replies(self) -> list[WorkerReply]: ...


class Runner(Protocol):
    """Opens a pool for a job; the workers are gone when the block ends."""

    def __call__(self, job: WorkerJob, /) -> AbstractContextManager[WorkerPool]: ...


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def thread_environment(threads: int) -> dict[str, str]:
    """Environment variables that keep a worker to its threads, whichever library asks."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "TOKENIZERS_PARALLELISM": "false"}


class StartupMonitor:
    """Counts workers that died before they were ready, and gives up after a few in a row."""

    def __init__(self) -> None:
        self._failures = 0

    def record_success(self) -> None:
        """A worker is ready."""
        self._failures = 0

    def record_failure(self, why: str) -> None:
        """A worker died before it was ready."""
        self._failures += 1
        if self._failures >= _MAX_STARTUP_FAILURES:
            raise DataError(f"workers die before they are ready: {why}")
