"""Pools of workers, and the messages between the driver and its workers.

Messages contain specs and settings, never metric objects. A `Runner` (`Processes` or `Ray`) opens a
`WorkerPool`, which sends tasks to idle workers and replaces workers that die. A `WorkerBackend`
starts workers and carries messages: local processes (`processes.py`) or Ray actors
(`ray_cluster.py`). The driver does not depend on where the workers run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from evenmatch.data.scores import ScoreLayout
from evenmatch.distributed.shards import Shard
from evenmatch.errors import DataError, EvenmatchError

# One worker may die at startup by chance; several in a row indicate a permanent error.
_MAX_STARTUP_FAILURES = 3


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """The job of a run, sent to each worker once.

    `metrics` are names with their specs, `suffix` and `layout` are those of the score files,
    `working_dir` is the base of relative paths in specs, `idf_tables` are counted over the whole
    input.
    """

    metrics: tuple[tuple[str, str], ...]
    suffix: str
    settings: dict[str, Any] = field(default_factory=dict)
    working_dir: str = ""
    idf_tables: tuple[str, ...] = ()
    layout: ScoreLayout = ScoreLayout()


@dataclass(frozen=True, slots=True)
class ShardTask:
    """A shard to score; with `only_rows`, score only those rows and return no data."""

    shard: Shard
    data: bytes
    only_rows: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker has loaded its metrics: their signatures, and the loading time in seconds."""

    signatures: dict[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class ShardDone:
    """A shard's scores as the bytes of a file, with their summary for the manifest."""

    number: int
    data: bytes
    tallies: dict[str, dict[str, Any]]
    flags: dict[str, int]
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class ShardFailed:
    """A shard that could not be scored, and the reason.

    `row` is the invalid row, counted from the first row of the shard, or None if it is not known.
    `retryable` says whether another attempt may succeed.
    """

    number: int
    reason: str
    row: int | None = None
    retryable: bool = True


WorkerReply: TypeAlias = WorkerReady | ShardDone | ShardFailed


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """A worker ended without a reply, and the reason."""

    reason: str


BackendMessage: TypeAlias = WorkerReply | EvenmatchError | WorkerDied


class WorkerBackend(Protocol):
    """Starts workers and carries messages; a worker is any hashable object of the backend.

    `receive` waits for a message from at least one worker. An `EvenmatchError` instead of a reply
    means that the worker cannot load its metrics.
    """

    def start(self) -> Any: ...
    def send(self, worker: Any, task: ShardTask, /) -> None: ...
    def receive(self, workers: Collection[Any], /) -> list[tuple[Any, BackendMessage]]: ...
    def stop(self, worker: Any, /) -> None: ...


@dataclass
class _WorkerState:
    ready: bool = False
    task: ShardTask | None = None


class WorkerPool:
    """The workers of one job, started by a backend; workers that die are replaced."""

    def __init__(self, backend: WorkerBackend, size: int) -> None:
        self._backend, self._size = backend, size
        self._workers: dict[Any, _WorkerState] = {}
        self._startup_failures = 0  # in a row

    def idle_count(self) -> int:
        """Return the number of workers without a task."""
        return len(self._idle_workers())

    def submit(self, task: ShardTask) -> None:
        """Send a task to an idle worker."""
        worker = self._idle_workers()[0]
        self._workers[worker].task = task
        self._backend.send(worker, task)

    def replies(self) -> list[WorkerReply]:
        """Wait for at least one reply and return all; replace workers that died."""
        found: list[WorkerReply] = []
        for worker, message in self._backend.receive(self._workers.keys()):
            if isinstance(message, EvenmatchError):
                raise message
            if isinstance(message, WorkerDied):
                found += self._remove_dead(worker, message.reason)
                continue
            if isinstance(message, WorkerReady):
                self._workers[worker].ready = True
                self._startup_failures = 0
            else:
                self._workers[worker].task = None
            found.append(message)
        self.start_missing()
        return found

    def start_missing(self) -> None:
        while len(self._workers) < self._size:
            self._workers[self._backend.start()] = _WorkerState()

    def close(self) -> None:
        for worker in self._workers:
            self._backend.stop(worker)

    def _idle_workers(self) -> list[Any]:
        return [w for w, state in self._workers.items() if state.ready and state.task is None]

    def _remove_dead(self, worker: Any, why: str) -> list[ShardFailed]:
        """Remove a worker that died, and return the failure of its task if it had one."""
        state = self._workers.pop(worker)
        self._backend.stop(worker)
        if not state.ready:
            self._startup_failures += 1
            if self._startup_failures >= _MAX_STARTUP_FAILURES:
                raise DataError(f"workers fail to start: {why}")
        return [] if state.task is None else [ShardFailed(state.task.shard.number, why)]


# Opens a pool for a job; the workers are stopped when the block ends.
Runner: TypeAlias = Callable[[WorkerJob], AbstractContextManager[WorkerPool]]


@contextmanager
def open_pool(backend: WorkerBackend, workers: int) -> Iterator[WorkerPool]:
    """Open a pool of so many workers; they are stopped at the end of the block."""
    pool = WorkerPool(backend, workers)
    try:
        pool.start_missing()
        yield pool
    finally:
        pool.close()


def available_cores() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def thread_environment(threads: int) -> dict[str, str]:
    """Environment variables that limit the threads of every numerical library of a worker."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "TOKENIZERS_PARALLELISM": "false"}
