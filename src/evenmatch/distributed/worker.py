"""A worker: builds the metrics of a job once, then scores one shard after another.

Scores are sent back as a file of rows, or packed with their counts as JSON (`pack_scores`) for
callers that compute with them. Sums of the scores (`tally_record`) go into the manifest, from which
`merge_tallies` computes the means of the whole run.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.scores import ScoreRow, score_rows, score_writer
from evenmatch.distributed.messages import ShardDone, ShardFailed, ShardTask, WorkerJob, WorkerReady
from evenmatch.distributed.shards import parse_shard_pairs
from evenmatch.errors import EvenmatchError
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.scoring.streaming import RunningMean, count_flags
from evenmatch.types import Pair, Run, Score, Scores
from evenmatch.vectors.weighting import store_idf_json

WARMUP_PAIRS = [Pair("a short text", ("a short text",), "a short text")]
PACKED_SUFFIX = ".json"


class Worker:
    """Loads the metrics of a job; called with a task, it scores a shard."""

    def __init__(self, job: WorkerJob) -> None:
        start = time.perf_counter()
        with suppress(FileNotFoundError, NotADirectoryError):  # may not exist on another node
            os.chdir(job.working_dir or ".")
        for table in job.idf_tables:
            store_idf_json(table)
        self._job = job
        self._run: Run = make_run(**job.settings)
        self._metrics: list[Metric] = [as_metric(spec) for _, spec in job.metrics]
        scored = score_metrics(self._metrics, WARMUP_PAIRS, self._run)  # loads the models
        names = [name for name, _ in job.metrics]
        signatures = {n: s.signature for n, s in zip(names, scored, strict=True)}
        self.ready = WorkerReady(signatures, time.perf_counter() - start)

    def __call__(self, task: ShardTask) -> ShardDone | ShardFailed:
        """Score a shard, or return the reason why it failed."""
        start = time.perf_counter()
        pairs: list[Pair] = []
        try:
            for pair in parse_shard_pairs(task.data, task.chunk, task.file):
                pairs.append(pair)  # one by one, so that len(pairs) is the row of an error
        except EvenmatchError as error:
            return ShardFailed(
                task.number, one_line_message(error), row=len(pairs), retryable=False
            )
        if task.only_rows is not None:
            pairs = pairs[slice(*task.only_rows)]
        read = time.perf_counter()
        try:
            done = self._score(task, pairs)
        except (EvenmatchError, OSError) as error:
            return ShardFailed(task.number, one_line_message(error))
        done.seconds["read"] = read - start
        return done

    def _score(self, task: ShardTask, pairs: Sequence[Pair]) -> ShardDone:
        start = time.perf_counter()
        found = score_metrics(self._metrics, pairs, self._run)
        scored = time.perf_counter()
        names = [name for name, _ in self._job.metrics]
        data = b"" if task.only_rows else self._serialize(task.first, names, found)
        seconds = {"score": scored - start, "write": time.perf_counter() - scored}
        tallies = {n: tally_record(scores) for n, scores in zip(names, found, strict=True)}
        flags = count_flags(found)
        return ShardDone(task.number, data, tallies, dict(flags), seconds)

    def _serialize(self, first: int, names: Sequence[str], found: Sequence[Scores]) -> bytes:
        if self._job.suffix == PACKED_SUFFIX:
            return pack_scores(found)
        return _row_file_bytes(score_rows(first, names, found), self._job.suffix)


def one_line_message(error: BaseException) -> str:
    """Message of an error on one line; its class name if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def pack_scores(found: Sequence[Scores]) -> bytes:
    """Serialise scores as JSON, without loss of precision; NaN and infinity are preserved."""
    return json.dumps([_scores_to_json(scores) for scores in found]).encode()


def unpack_scores(data: bytes) -> list[Scores]:
    """Inverse of `pack_scores`."""
    return [_scores_from_json(record) for record in json.loads(data)]


def concatenate_scores(metric: Metric, parts: Sequence[Scores]) -> Scores:
    """Concatenate the scores of all shards; the corpus score is computed from summed counts."""
    segments = tuple(chain.from_iterable(scores.segments for scores in parts))
    tables = [scores.counts for scores in parts if scores.counts is not None]
    counts = np.concatenate(tables) if tables else None
    corpus = None
    if isinstance(metric, CorpusMetric) and counts is not None and parts[0].corpus is not None:
        corpus = float(metric.score_totals(counts.sum(0)))
    return Scores(segments, parts[0].signature, corpus, counts)


def tally_record(scores: Scores) -> dict[str, Any]:
    """Sums of one metric's scores of a shard, for the manifest."""
    tally = RunningMean().add(scores)
    record: dict[str, Any] = {
        "count": tally.count,
        "value": tally.value,
        "precision": tally.precision,
        "recall": tally.recall,
        "signature": tally.signature,
    }
    if scores.corpus is not None:
        counts = scores.counts
        record["corpus"] = {"totals": None if counts is None else counts.sum(0).tolist()}
    return record


def merge_tallies(metric: Metric, tallies: Sequence[Mapping[str, Any]]) -> RunningMean:
    """Merge one metric's tallies of all shards; the corpus score is set if all have counts."""
    return RunningMean(
        sum(tally["count"] for tally in tallies),
        math.fsum(tally["value"] for tally in tallies),
        _sum_or_none(tally["precision"] for tally in tallies),
        _sum_or_none(tally["recall"] for tally in tallies),
        tallies[0]["signature"],
        _corpus_score(metric, tallies),
    )


def _row_file_bytes(rows: Iterator[ScoreRow], suffix: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="evenmatch-") as folder:
        path = Path(folder) / f"part{suffix}"
        with score_writer(str(path)) as write:
            write(list(rows))
        return path.read_bytes()


def _scores_to_json(scores: Scores) -> dict[str, Any]:
    return {
        "signature": scores.signature,
        "corpus": scores.corpus,
        "segments": [(s.value, s.precision, s.recall, sorted(s.flags)) for s in scores.segments],
        "counts": None if scores.counts is None else scores.counts.tolist(),
    }


def _scores_from_json(record: dict[str, Any]) -> Scores:
    segments = tuple(
        Score(value, precision, recall, frozenset(flags))
        for value, precision, recall, flags in record["segments"]
    )
    counts = None if record["counts"] is None else np.array(record["counts"], dtype=np.float64)
    return Scores(segments, record["signature"], record["corpus"], counts)


def _corpus_score(metric: Metric, tallies: Sequence[Mapping[str, Any]]) -> float | None:
    totals = [tally["corpus"]["totals"] for tally in tallies if "corpus" in tally]
    if len(totals) < len(tallies) or None in totals or not isinstance(metric, CorpusMetric):
        return None
    return float(metric.score_totals(np.sum(totals, axis=0)))


def _sum_or_none(values: Iterable[float | None]) -> float | None:
    given = list(values)
    known = [value for value in given if value is not None]
    return math.fsum(known) if len(known) == len(given) else None
