"""sharing_out: pairs that a program holds, scored by workers in place of its own process.

What stays between calls of one program: its pairs as shards, its workers.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from evenmatch.distributed.driver import (
    RunMetrics,
    ShardCheckpointer,
    fit_idf,
    manifest_header,
    worker_settings,
)
from evenmatch.distributed.manifest import Manifest, open_manifest
from evenmatch.distributed.messages import Runner, WorkerJob, WorkerPool
from evenmatch.distributed.run import RETRIES, SHARD_ROWS
from evenmatch.distributed.shards import FileChunk, Shard, hash_content
from evenmatch.distributed.worker import (
    PACKED_SUFFIX,
    WARMUP_PAIRS,
    CountedScores,
    concatenate_scores,
    unpack_scores,
)
from evenmatch.errors import DataError, InputError
from evenmatch.protocols import CorpusMetric, Metric, RunAwareMetric
from evenmatch.registry import spec
from evenmatch.scoring.inputs import check_pairs
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Pair, Run


@contextmanager
def worker_session(
    on: Runner,
    *,
    parts: str = "",
    shard_rows: int = SHARD_ROWS,
    retries: int = RETRIES,
    max_failures: int | None = None,
) -> Iterator[WorkerSession]:
    """What the run setting `on` takes, for as long as the block runs.

    Workers stay from one call to the next while the metrics are the same. With a folder `parts`
    finished shards are kept there, and a later run does only what is missing.
    """
    if shard_rows < 1:
        raise InputError(f"a shard holds at least 1 row, got {shard_rows}")
    with ExitStack() as stack:
        folder = parts or stack.enter_context(tempfile.TemporaryDirectory(prefix="evenmatch-"))
        held = stack.enter_context(PersistentRunner(on))
        yield WorkerSession(held, folder, shard_rows, retries, max_failures)


@dataclass(frozen=True)
class WorkerSession:
    """Scores pairs by workers; a metric must have a spec, since specs travel and objects do not."""

    runner: Runner
    folder: str
    shard_rows: int
    retries: int
    max_failures: int | None

    def score_metrics(
        self, metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run
    ) -> list[CountedScores]:
        """Each metric's scores of the pairs, with counts where it has them, as a local run's."""
        check_pairs(pairs)
        named = {spec(metric): metric for metric in metrics}
        if not named:
            return []
        _check_corpus_scores(named)
        wanted = RunMetrics.from_metrics(
            {name: fit_idf(metric, pairs) for name, metric in named.items()}
        )
        own = self._score_shards(wanted, PairShards(pairs, self.shard_rows), run)
        found = {
            name: concatenate_scores(metric, [part[n] for part in own])
            for n, (name, metric) in enumerate(wanted.metrics.items())
        }
        return [found[spec(metric)] for metric in metrics]

    def _score_shards(
        self, wanted: RunMetrics, cut: PairShards, run: Run
    ) -> list[list[CountedScores]]:
        """The parts of all shards, in order."""
        header, shards = manifest_header(wanted, PACKED_SUFFIX, self.shard_rows, run), cut.shards()
        job = WorkerJob(
            wanted.specs, PACKED_SUFFIX, worker_settings(run), os.getcwd(), wanted.idf_tables
        )
        with open_manifest(
            self._call_folder(header, shards), header, shards, resume=True
        ) as manifest:
            keeper = ShardCheckpointer(manifest, wanted, PACKED_SUFFIX, run, shards)
            failures = keeper.score_missing(
                self.runner, job, cut.load, self.retries, self.max_failures
            )
            if failures:
                raise DataError(f"{len(failures)} of {len(shards)} shards failed: {failures[0]}")
            return [_read_part(manifest, shard) for shard in shards]

    def _call_folder(self, header: Mapping[str, object], shards: Sequence[Shard]) -> Path:
        """A folder for these pairs and metrics alone, so that one folder serves many calls."""
        content = json.dumps([header, [shard.chunk.content_hash for shard in shards]])
        return Path(self.folder) / hash_content(content.encode())


def _read_part(manifest: Manifest, shard: Shard) -> list[CountedScores]:
    return unpack_scores(manifest.part_path(shard.number, PACKED_SUFFIX).read_bytes())


def _check_corpus_scores(metrics: Mapping[str, Metric]) -> None:
    """Refuse what shards cannot give: a corpus score that is no function of summed counts."""
    for name, metric in metrics.items():
        if isinstance(metric, AlignMetric | RunAwareMetric | CorpusMetric):
            continue
        if metric(WARMUP_PAIRS).corpus is not None:
            raise InputError(
                f"the corpus score of {name} cannot be put together from shards; "
                "score it without --on"
            )


_PSEUDO_FILE = "pairs.jsonl"  # of no file: it says how the bytes are read, and stands in messages


@dataclass(frozen=True)
class PairShards:
    """Pairs cut into shards of so many rows; their bytes are made when they are asked for."""

    pairs: Sequence[Pair]
    rows: int

    def shards(self) -> list[Shard]:
        """The plan, as of a file of lines."""
        found = []
        for number, first in enumerate(range(0, len(self.pairs), self.rows)):
            count, data = min(self.rows, len(self.pairs) - first), self._bytes(first)
            cut = FileChunk(first, count, (first, count), hash_content(data))
            found.append(Shard(number, first, _PSEUDO_FILE, cut))
        return found

    def load(self, shard: Shard) -> bytes:
        """The bytes of a shard."""
        return self._bytes(shard.first)

    def _bytes(self, first: int) -> bytes:
        rows = self.pairs[first : first + self.rows]
        return "\n".join(map(_pair_json, rows)).encode()


def _pair_json(pair: Pair) -> str:
    record = {"candidate": pair.candidate, "references": pair.references, "source": pair.source}
    return json.dumps(record)


class PersistentRunner:
    """A runner whose workers stay after a job, for the next one if it is the same."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._open: tuple[WorkerJob, WorkerPool] | None = None
        self._stack = ExitStack()

    @contextmanager
    def __call__(self, job: WorkerJob) -> Iterator[WorkerPool]:
        """The pool of this job; those of another are ended."""
        if self._open is None or self._open[0] != job:
            self._close()
            self._open = job, self._stack.enter_context(self._runner(job))
        well = False
        try:
            yield self._open[1]
            well = True
        finally:
            if not well:  # workers are at shards that nobody waits for any more
                self._close()

    def _close(self) -> None:
        self._open = None
        self._stack.close()

    def __enter__(self) -> PersistentRunner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()
