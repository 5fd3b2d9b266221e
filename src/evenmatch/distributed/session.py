"""Worker sessions: score pairs that are in memory by workers (`worker_session`).

A session is the value of the run setting `on`. Pairs are split into shards as if they came from a
file, and workers stay alive between calls (`PersistentRunner`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenmatch.distributed.driver import Driver, RunMetrics, fit_idf, manifest_header
from evenmatch.distributed.manifest import open_manifest
from evenmatch.distributed.pool import Runner, WorkerJob, WorkerPool
from evenmatch.distributed.run import RETRIES, SHARD_ROWS
from evenmatch.distributed.shards import hash_content, make_shard, pairs_to_jsonl
from evenmatch.distributed.worker import (
    PACKED_SUFFIX,
    concatenate_scores,
    unpack_scores,
)
from evenmatch.errors import DataError, InputError
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.registry import spec
from evenmatch.registry.opening import Openable
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.metric import TRIAL_PAIRS
from evenmatch.types import Pair, Run, Scores

_PSEUDO_FILE = "pairs.jsonl"  # no real file: it sets the format of shards and appears in messages


@contextmanager
def worker_session(
    on: Runner,
    *,
    parts: str = "",
    shard_rows: int = SHARD_ROWS,
    retries: int = RETRIES,
    max_failures: int | None = None,
) -> Iterator[WorkerSession]:
    """Open a session for the run setting `on`; it is closed at the end of the block.

    Workers are reused from call to call while the metrics are the same. With a folder `parts`,
    finished shards are stored there, and a later run scores only the missing ones.
    """
    if shard_rows < 1:
        raise InputError(f"shard_rows must be at least 1, got {shard_rows}")
    with ExitStack() as stack:
        folder = parts or stack.enter_context(tempfile.TemporaryDirectory(prefix="evenmatch-"))
        runner = stack.enter_context(closing(PersistentRunner(on)))
        yield WorkerSession(runner, folder, shard_rows, retries, max_failures)


@dataclass(frozen=True)
class WorkerSession:
    """Scores pairs by workers; metrics must have a spec, because workers are sent specs."""

    runner: Runner
    folder: str
    shard_rows: int
    retries: int
    max_failures: int | None

    def score_metrics(
        self, metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run
    ) -> list[Scores]:
        """Score the pairs with each metric; counts are included where a metric has them.

        The scores are equal to those of a local run.
        """
        check_pairs(pairs)
        named = {spec(metric): metric for metric in metrics}
        if not named:
            return []
        _check_corpus_scores(named)
        run_metrics = RunMetrics({name: fit_idf(metric, pairs) for name, metric in named.items()})
        parts = self._score_shards(run_metrics, pairs, run)
        found = {
            name: concatenate_scores(metric, [part[n] for part in parts])
            for n, (name, metric) in enumerate(run_metrics.metrics.items())
        }
        return [found[spec(metric)] for metric in metrics]

    def _score_shards(
        self, metrics: RunMetrics, pairs: Sequence[Pair], run: Run
    ) -> list[list[Scores]]:
        """Score all shards and return their parts in order."""
        header = manifest_header(metrics, PACKED_SUFFIX, self.shard_rows, run)
        size = self.shard_rows
        shards = [
            make_shard(number, first, _PSEUDO_FILE, pairs[first : first + size])
            for number, first in enumerate(range(0, len(pairs), size))
        ]
        # A subfolder for these pairs and metrics, so that one folder can serve many calls.
        content = json.dumps([header, [shard.content_hash for shard in shards]])
        folder = Path(self.folder) / hash_content(content.encode())
        with open_manifest(folder, header, shards, resume=True) as manifest:
            driver = Driver(
                manifest,
                metrics,
                PACKED_SUFFIX,
                run,
                shards,
                lambda shard: pairs_to_jsonl(pairs[shard.first : shard.first + shard.rows]),
                self.retries,
                self.max_failures,
            )
            failures = driver(self.runner)
            if failures:
                raise DataError(f"{len(failures)} of {len(shards)} shards failed: {failures[0]}")
            parts = [manifest.part_path(shard.number, PACKED_SUFFIX) for shard in shards]
            return [unpack_scores(part.read_bytes()) for part in parts]


class PersistentRunner:
    """A runner that keeps its workers after a job and reuses them if the next job is equal."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._open: tuple[WorkerJob, WorkerPool] | None = None
        self._stack = ExitStack()

    @contextmanager
    def __call__(self, job: WorkerJob) -> Iterator[WorkerPool]:
        """Return the pool of this job; the pool of another job is closed."""
        if self._open is None or self._open[0] != job:
            self.close()
            self._open = job, self._stack.enter_context(self._runner(job))
        succeeded = False
        try:
            yield self._open[1]
            succeeded = True
        finally:
            if not succeeded:  # workers may still be scoring shards whose results are not needed
                self.close()

    def close(self) -> None:
        """Stop the workers."""
        self._open = None
        self._stack.close()


def _check_corpus_scores(metrics: Mapping[str, Metric]) -> None:
    """Raise `InputError` for a corpus score that cannot be computed from summed counts."""
    for name, metric in metrics.items():
        summable = isinstance(metric, CorpusMetric | Openable)
        if not summable and metric(TRIAL_PAIRS).corpus is not None:
            raise InputError(
                f"the corpus score of {name} cannot be computed from shards; score it without --on"
            )
