"""The driver of a distributed run: sends shards to workers, saves results, retries failures.

`build_run_metrics` prepares the metrics before any shard is sent (specs, signatures, idf tables).
A `Driver` has workers score the missing shards and saves each result in the manifest. The row that
makes a shard fail is found by bisection.
"""

from __future__ import annotations

import errno
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evenmatch.data.scores import ScoreLayout
from evenmatch.distributed.manifest import Manifest
from evenmatch.distributed.pool import (
    Runner,
    ShardDone,
    ShardFailed,
    ShardTask,
    WorkerJob,
    WorkerPool,
    WorkerReady,
)
from evenmatch.distributed.shards import Shard, parse_shard_pairs
from evenmatch.errors import DataError, EvenmatchError, InputError
from evenmatch.protocols import Metric
from evenmatch.registry import CallContext, spec
from evenmatch.registry.opening import count_idf
from evenmatch.scoring.engine import sign_reference_count
from evenmatch.scoring.inputs import warn_of_misreadings
from evenmatch.scoring.metric import as_metric
from evenmatch.types import Pair, Run
from evenmatch.vectors.weighting import load_idf_table

_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LAYOUT_VERSION = 2
_CONTENT_HASH = re.compile(r"sha256:[0-9a-f]{16}\b")


@dataclass
class Driver:
    """Scheduler of one run: pending shards, retries and failures.

    A shard that fails is retried up to `retries` times; then the failing row is searched for. More
    than `max_failures` failed shards stop the run.
    """

    manifest: Manifest
    metrics: RunMetrics
    suffix: str
    run: Run
    shards: Sequence[Shard]
    load: Callable[[Shard], bytes]
    retries: int
    max_failures: int | None
    layout: ScoreLayout = ScoreLayout()

    def __call__(self, on: Runner) -> list[ShardFailure]:
        """Score the shards that are not in the manifest; return those that failed."""
        self._todo = deque(s for s in self.shards if s.number not in self.manifest.done)
        self._in_flight: dict[int, Shard] = {}
        self._tries: Counter[int] = Counter()
        self._searches: dict[int, _RowSearch] = {}
        self._failures: list[ShardFailure] = []
        self._report_progress()
        if self._todo:
            with on(self._job()) as pool:
                self._score_shards(pool)
        return self._failures

    def _job(self) -> WorkerJob:
        names = ("device", "threads", "batch_tokens", "cache")
        settings = {name: getattr(self.run, name) for name in names}
        metrics = self.metrics
        return WorkerJob(
            metrics.specs, self.suffix, settings, os.getcwd(), metrics.idf_tables, self.layout
        )

    def _score_shards(self, pool: WorkerPool) -> None:
        self._dispatch(pool)
        while self._todo or self._in_flight or self._searches:
            finished: list[tuple[Shard, ShardDone]] = []
            for reply in pool.replies():
                if isinstance(reply, WorkerReady):
                    self.metrics.check_signatures(reply.signatures)
                    continue
                shard = self._in_flight.pop(reply.number)
                if reply.number in self._searches:
                    self._narrow(self._searches[reply.number], reply)
                elif isinstance(reply, ShardDone):
                    finished.append((shard, reply))
                else:
                    self._handle_failure(shard, reply)
            # Send new tasks before writing to disk, so that no worker waits while a file is synced.
            self._dispatch(pool)
            for shard, done in finished:
                self._save_shard(shard, done)

    def _dispatch(self, pool: WorkerPool) -> None:
        for number, search in list(self._searches.items()):
            if pool.idle_count() and number not in self._in_flight:
                self._submit(pool, search.shard, search.next_rows)
        while self._todo and pool.idle_count():
            self._submit(pool, self._todo.popleft())

    def _submit(
        self, pool: WorkerPool, shard: Shard, only_rows: tuple[int, int] | None = None
    ) -> None:
        try:
            data = self.load(shard)
        except (EvenmatchError, OSError) as error:
            self._give_up(ShardFailure(shard, " ".join(str(error).split())))
            return
        self._in_flight[shard.number] = shard
        pool.submit(ShardTask(shard, data, only_rows))

    def _handle_failure(self, shard: Shard, reply: ShardFailed) -> None:
        self._tries[shard.number] += 1
        if reply.retryable and self._tries[shard.number] <= self.retries:
            self._todo.append(shard)
        elif reply.row is not None:
            self._give_up(ShardFailure(shard, reply.reason, reply.row))
        else:
            self._searches[shard.number] = _RowSearch(shard, reply.reason, 0, shard.rows)

    def _narrow(self, search: _RowSearch, reply: ShardDone | ShardFailed) -> None:
        """Continue the search with the reply for its `next_rows`."""
        low, middle = search.next_rows
        if isinstance(reply, ShardFailed):
            search.high, search.reason = middle, reply.reason
            if middle - low == 1:
                self._give_up(ShardFailure(search.shard, search.reason, low))
        else:
            search.low = middle
            if middle == search.high:  # no row fails alone
                self._give_up(ShardFailure(search.shard, search.reason))

    def _give_up(self, failure: ShardFailure) -> None:
        self._searches.pop(failure.shard.number, None)
        self._failures.append(failure)
        if self.max_failures is not None and len(self._failures) > self.max_failures:
            count = len(self._failures)
            what = "shard has" if count == 1 else "shards have"
            raise DataError(
                f"{count} {what} failed, more than --max-failures {self.max_failures}; "
                f"the last: {failure}"
            )

    def _save_shard(self, shard: Shard, done: ShardDone) -> None:
        """Save a shard's scores, add it to the manifest, and report progress."""
        self.metrics.check_signatures(
            {name: tally["signature"] for name, tally in done.tallies.items()}
        )
        entry = {
            "form": self.suffix,
            "tallies": done.tallies,
            "flags": done.flags,
            "seconds": {k: round(v, 6) for k, v in done.seconds.items()},
        }
        stored = f"{len(self.manifest.done)} of {len(self.shards)} shards are scored and stored"
        with explain_full_disk(stored):
            self.manifest.add_shard(shard, done.data, entry)
        self._report_progress()

    def _report_progress(self) -> None:
        if self.run.progress is not None:
            last = self.shards[-1]
            done = sum(line["rows"] for line in self.manifest.done.values())
            self.run.progress(done, last.first + last.rows)


@dataclass(frozen=True, slots=True)
class ShardFailure:
    """A shard that failed for good, the reason, and the row at fault if it was found."""

    shard: Shard
    reason: str
    row: int | None = None

    def __str__(self) -> str:
        """One-line description."""
        at = "" if self.row is None else f", at {self.shard.describe_rows(self.row, self.row + 1)}"
        return f"{self.shard} failed{at}: {self.reason}"


@dataclass
class _RowSearch:
    """Bisection for the failing row of a shard, which is at `low` or later and before `high`.

    A score depends on its pair alone, so a row that fails among others also fails alone. The last
    step tries row `low` alone.
    """

    shard: Shard
    reason: str
    low: int
    high: int

    @property
    def next_rows(self) -> tuple[int, int]:
        """The rows to try next: the first half of the interval."""
        return self.low, max(self.low + 1, (self.low + self.high) // 2)


@contextmanager
def explain_full_disk(stored: str, name: str = "") -> Iterator[None]:
    """Convert the error of a full disk to a `DataError` that says what is stored already."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL_ERRNOS:
            raise
        raise DataError(
            f"{name or error.filename}: {(error.strerror or '').lower()}; {stored}; "
            "free disk space and continue with --resume"
        ) from None


def manifest_header(wanted: RunMetrics, form: str, shard_rows: int, run: Run) -> dict[str, Any]:
    """First line of a manifest: the settings that must be equal for a run to be resumed."""
    return {
        "layout": _LAYOUT_VERSION,
        "metrics": wanted.signatures,
        "form": form,
        "shard_rows": shard_rows,
        "vectors": "compact" if run.cache and not run.cache.exact else "exact",
    }


@dataclass(frozen=True)
class RunMetrics:
    """Metrics by name, with the specs, signatures and idf tables that workers need."""

    metrics: Mapping[str, Metric]

    @cached_property
    def signatures(self) -> Mapping[str, str]:
        """The signatures that the metrics have in this process."""
        return {name: part.signature for name, part in self.metrics.items()}

    @property
    def specs(self) -> tuple[tuple[str, str], ...]:
        """Name and spec of each metric."""
        return tuple((name, spec(part)) for name, part in self.metrics.items())

    @property
    def idf_tables(self) -> tuple[str, ...]:
        """The idf tables that the specs refer to by content hash, as JSON."""
        found: list[str] = []
        for name in dict.fromkeys(_CONTENT_HASH.findall(" ".join(s for _, s in self.specs))):
            with suppress(DataError):  # the hash may be that of a model
                found.append(load_idf_table(name).to_json())
        return tuple(found)

    def check_signatures(self, theirs: Mapping[str, str]) -> None:
        """Raise `DataError` if a worker has another version of evenmatch or another model."""
        for name, expected in self.signatures.items():
            if not sign_reference_count(theirs[name]).startswith(expected):
                raise DataError(
                    f"a worker computes {name} as {theirs[name]}, expected {expected}; give every "
                    "worker the same version of evenmatch and the same models, and idf a table"
                )


def build_run_metrics(
    names: Sequence[str], shards: Sequence[Shard], load: Callable[[Shard], bytes]
) -> RunMetrics:
    """Build the metrics; idf is counted over the whole input where a metric needs it."""
    if not names:
        raise InputError("the list of metrics is empty; give at least one")
    parts = {name: fit_idf(as_metric(name), _ShardPairs(shards, load)) for name in names}
    sample: list[Pair] = []
    with suppress(InputError, DataError):  # workers report an invalid row
        for pair in _ShardPairs(shards[:1], load):
            sample.append(pair)
    if sample:
        warn_of_misreadings(list(parts.values()), sample)
    return RunMetrics(parts)


def fit_idf(metric: Metric, pairs: Iterable[Pair]) -> Metric:
    """Count the idf of a metric in these pairs, if it needs it."""
    counted: Metric = count_idf(metric, CallContext(pairs=pairs))
    return counted


@dataclass(frozen=True)
class _ShardPairs:
    """Iterable over all pairs of shards, as often as wanted."""

    shards: Sequence[Shard]
    load: Callable[[Shard], bytes]

    def __iter__(self) -> Iterator[Pair]:
        for shard in self.shards:
            yield from parse_shard_pairs(self.load(shard), shard)
