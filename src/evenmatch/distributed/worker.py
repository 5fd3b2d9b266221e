"""A worker: builds the metrics of a job once, then scores one shard after another.

Scores are sent back as a file of rows, or packed with their counts as JSON (`pack_scores`) for
callers that compute with them. Sums of the scores (`tally_record`) go into the manifest, from which
`merge_tallies` computes the means of the whole run.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.scores import score_writer, scored_pairs
from evenmatch.distributed.pool import ShardDone, ShardFailed, ShardTask, WorkerJob, WorkerReady
from evenmatch.distributed.shards import parse_shard_pairs
from evenmatch.errors import EvenmatchError
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.scoring.engine import merge_signatures
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import TRIAL_PAIRS, as_metric, score_metrics
from evenmatch.scoring.streaming import RunningMean, count_flags
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.vectors.weighting import store_idf_json

PACKED_SUFFIX = ".json"


class Worker:
    """Loads the metrics of a job; called with a task, it scores a shard."""

    def __init__(self, job: WorkerJob) -> None:
        start = time.perf_counter()
        with suppress(FileNotFoundError, NotADirectoryError):  # may not exist on another node
            os.chdir(job.working_dir or ".")
        for table in job.idf_tables:
            store_idf_json(table)
        self._names = [name for name, _ in job.metrics]
        self._suffix, self._layout = job.suffix, job.layout
        self._run: Run = make_run(**job.settings)
        self._metrics: list[Metric] = [as_metric(spec) for _, spec in job.metrics]
        scored = score_metrics(self._metrics, TRIAL_PAIRS, self._run)  # loads the models
        signatures = {n: s.signature for n, s in zip(self._names, scored, strict=True)}
        self.ready = WorkerReady(signatures, time.perf_counter() - start)

    def __call__(self, task: ShardTask) -> ShardDone | ShardFailed:
        """Score a shard, or return the reason why it failed."""
        start, number = time.perf_counter(), task.shard.number
        pairs: list[Pair] = []
        try:
            for pair in parse_shard_pairs(task.data, task.shard):
                pairs.append(pair)  # one by one, so that len(pairs) is the row of an error
        except EvenmatchError as error:
            return ShardFailed(number, one_line_message(error), row=len(pairs), retryable=False)
        if task.only_rows is not None:
            pairs = pairs[slice(*task.only_rows)]
        read = time.perf_counter()
        try:
            found = score_metrics(self._metrics, pairs, self._run)
            scored = time.perf_counter()
            data = b"" if task.only_rows else self._serialize(task.shard.first, pairs, found)
        except (EvenmatchError, OSError) as error:
            return ShardFailed(number, one_line_message(error))
        written = time.perf_counter()
        seconds = {"score": scored - read, "write": written - scored, "read": read - start}
        tallies = {n: tally_record(scores) for n, scores in zip(self._names, found, strict=True)}
        return ShardDone(number, data, tallies, dict(count_flags(found)), seconds)

    def _serialize(self, first: int, pairs: Sequence[Pair], found: Sequence[Scores]) -> bytes:
        if self._suffix == PACKED_SUFFIX:
            return pack_scores(found)
        with tempfile.TemporaryDirectory(prefix="evenmatch-") as folder:
            path = Path(folder) / f"part{self._suffix}"
            with score_writer(str(path), self._layout) as write:
                write(list(scored_pairs(first, self._names, found, pairs)))
            return path.read_bytes()


def one_line_message(error: BaseException) -> str:
    """Message of an error on one line; its class name if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def pack_scores(found: Sequence[Scores]) -> bytes:
    """Serialise scores as JSON, without loss of precision; NaN and infinity are preserved."""
    return json.dumps(
        [
            {
                "signature": scores.signature,
                "corpus": scores.corpus,
                "segments": [
                    (s.value, s.precision, s.recall, sorted(s.flags)) for s in scores.segments
                ],
                "counts": None if scores.counts is None else scores.counts.tolist(),
            }
            for scores in found
        ]
    ).encode()


def unpack_scores(data: bytes) -> list[Scores]:
    """Inverse of `pack_scores`."""
    found = []
    for record in json.loads(data):
        segments = tuple(
            Score(value, precision, recall, frozenset(flags))
            for value, precision, recall, flags in record["segments"]
        )
        counts = None if record["counts"] is None else np.array(record["counts"], dtype=np.float64)
        found.append(Scores(segments, record["signature"], record["corpus"], counts))
    return found


def concatenate_scores(metric: Metric, parts: Sequence[Scores]) -> Scores:
    """Concatenate the scores of all shards; the corpus score is computed from summed counts."""
    segments = tuple(chain.from_iterable(scores.segments for scores in parts))
    tables = [scores.counts for scores in parts if scores.counts is not None]
    counts = np.concatenate(tables) if tables else None
    corpus = None
    if isinstance(metric, CorpusMetric) and counts is not None and parts[0].corpus is not None:
        corpus = float(metric.score_totals(counts.sum(0)))
    signature = merge_signatures(scores.signature for scores in parts)
    return Scores(segments, signature, corpus, counts)


def tally_record(scores: Scores) -> dict[str, Any]:
    """Sums of one metric's scores of a shard, for the manifest."""
    record = dataclasses.asdict(RunningMean().add(scores))
    if record.pop("corpus") is not None:
        counts = scores.counts
        record["corpus"] = {"totals": None if counts is None else counts.sum(0).tolist()}
    return record


def merge_tallies(metric: Metric, tallies: Sequence[Mapping[str, Any]]) -> RunningMean:
    """Merge one metric's tallies of all shards; the corpus score is set if all have counts."""
    if not tallies:
        return RunningMean()
    totals = [tally.get("corpus", {}).get("totals") for tally in tallies]
    corpus = None
    if isinstance(metric, CorpusMetric) and None not in totals:
        corpus = float(metric.score_totals(np.sum(totals, axis=0)))
    return RunningMean(
        sum(tally["count"] for tally in tallies),
        math.fsum(tally["value"] for tally in tallies),
        _sum_or_none(tally["precision"] for tally in tallies),
        _sum_or_none(tally["recall"] for tally in tallies),
        merge_signatures(tally["signature"] for tally in tallies),
        corpus,
    )


def _sum_or_none(values: Iterable[float | None]) -> float | None:
    given = list(values)
    known = [value for value in given if value is not None]
    return math.fsum(known) if len(known) == len(given) else None
