"""Messages between the driver and its workers, and the protocols of worker pools.

Messages contain specs and settings, never metric objects. A `Runner` (`Processes` or `Ray`) opens a
`WorkerPool`; the driver does not depend on where the workers run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from evenmatch.data.scores import ScoreLayout
from evenmatch.distributed.shards import Shard


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


class WorkerPool(Protocol):
    """The workers of one job; workers that die are replaced.

    `submit` sends a task to an idle worker; `replies` waits for at least one event.
    """

    def idle_count(self) -> int: ...
    def submit(self, task: ShardTask, /) -> None: ...
    def replies(self) -> list[WorkerReply]: ...


# Opens a pool for a job; the workers are stopped when the block ends.
Runner: TypeAlias = Callable[[WorkerJob], AbstractContextManager[WorkerPool]]
