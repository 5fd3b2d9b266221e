"""A worker: builds the metrics of a job once, then scores one shard after another.

The scores of a shard with their counts, as bytes: for uses that go on computing with them.

Scores of a shard as sums, small enough for the record, and those of all shards together.
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
from typing import Any, TypeAlias

import numpy as np

from evenmatch.api import score_with_counts
from evenmatch.data.scores import ScoreRow, score_rows, score_writer
from evenmatch.distributed.messages import ShardDone, ShardFailed, ShardTask, WorkerJob, WorkerReady
from evenmatch.distributed.shards import parse_shard_pairs
from evenmatch.errors import EvenmatchError
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.scoring.streaming import RunningMean, count_flags
from evenmatch.types import Array, Pair, Run, Score, Scores
from evenmatch.vectors.weighting import store_idf_json

WARMUP_PAIRS = [Pair("a short text", ("a short text",), "a short text")]


class Worker:
    """The metrics of a job, loaded; call it with a task."""

    def __init__(self, job: WorkerJob) -> None:
        start = time.perf_counter()
        with suppress(FileNotFoundError, NotADirectoryError):  # another node has other folders
            os.chdir(job.working_dir or ".")
        for table in job.idf_tables:
            store_idf_json(table)
        self._job = job
        self._run: Run = make_run(**job.settings)
        self._metrics: list[Metric] = [as_metric(spec) for _, spec in job.metrics]
        tried = score_metrics(self._metrics, WARMUP_PAIRS, self._run)  # loads the models
        names = [name for name, _ in job.metrics]
        signatures = {n: s.signature for n, s in zip(names, tried, strict=True)}
        self.ready = WorkerReady(signatures, time.perf_counter() - start)

    def __call__(self, task: ShardTask) -> ShardDone | ShardFailed:
        """The scores of a shard, or why there are none."""
        start = time.perf_counter()
        pairs: list[Pair] = []
        try:
            for pair in parse_shard_pairs(task.data, task.chunk, task.file):
                pairs.append(pair)  # one by one: what is there tells which row is wrong
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
        found = score_with_counts(self._metrics, pairs, self._run)
        scored = time.perf_counter()
        names = [name for name, _ in self._job.metrics]
        data = b"" if task.only_rows else self._serialize(task.first, names, found)
        seconds = {"score": scored - start, "write": time.perf_counter() - scored}
        tallies = {n: tally_record(*own) for n, own in zip(names, found, strict=True)}
        flags = count_flags([scores for scores, _ in found])
        return ShardDone(task.number, data, tallies, dict(flags), seconds)

    def _serialize(self, first: int, names: Sequence[str], found: Sequence[CountedScores]) -> bytes:
        if self._job.suffix == PACKED_SUFFIX:
            return pack_scores(found)
        return _row_file_bytes(
            score_rows(first, names, [scores for scores, _ in found]), self._job.suffix
        )


def one_line_message(error: BaseException) -> str:
    """An error's words on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _row_file_bytes(rows: Iterator[ScoreRow], form: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="evenmatch-") as folder:
        path = Path(folder) / f"part{form}"
        with score_writer(str(path)) as write:
            write(list(rows))
        return path.read_bytes()


PACKED_SUFFIX = ".json"


CountedScores: TypeAlias = tuple[Scores, Array | None]


def pack_scores(found: Sequence[CountedScores]) -> bytes:
    """Scores as JSON; every bit of a number stays, also where it is none."""
    return json.dumps([_scores_to_json(scores, counts) for scores, counts in found]).encode()


def unpack_scores(data: bytes) -> list[CountedScores]:
    """What `packed` was given."""
    return [_scores_from_json(own) for own in json.loads(data)]


def _scores_to_json(scores: Scores, counts: Array | None) -> dict[str, Any]:
    return {
        "signature": scores.signature,
        "corpus": scores.corpus,
        "segments": [(s.value, s.precision, s.recall, sorted(s.flags)) for s in scores.segments],
        "counts": None if counts is None else counts.tolist(),
    }


def _scores_from_json(own: dict[str, Any]) -> CountedScores:
    segments = tuple(
        Score(value, precision, recall, frozenset(flags))
        for value, precision, recall, flags in own["segments"]
    )
    counts = None if own["counts"] is None else np.array(own["counts"], dtype=np.float64)
    return Scores(segments, own["signature"], own["corpus"]), counts


def concatenate_scores(metric: Metric, parts: Sequence[CountedScores]) -> CountedScores:
    """One metric's scores of all shards; the corpus score comes from the sum of their counts."""
    segments = tuple(chain.from_iterable(scores.segments for scores, _ in parts))
    tables = [table for _, table in parts if table is not None]
    counts = np.concatenate(tables) if tables else None
    corpus = None
    if isinstance(metric, CorpusMetric) and counts is not None and parts[0][0].corpus is not None:
        corpus = float(metric.score_totals(counts.sum(0)))
    return Scores(segments, parts[0][0].signature, corpus), counts


def tally_record(scores: Scores, counts: Array | None) -> dict[str, Any]:
    """What the record keeps of one metric's scores of a shard."""
    tally = RunningMean().add(scores)
    kept: dict[str, Any] = {
        "count": tally.count,
        "value": tally.value,
        "precision": tally.precision,
        "recall": tally.recall,
        "signature": tally.signature,
    }
    if scores.corpus is not None:
        kept["corpus"] = {"totals": None if counts is None else counts.sum(0).tolist()}
    return kept


def merge_tallies(metric: Metric, kept: Sequence[Mapping[str, Any]]) -> RunningMean:
    """One metric's tally over all shards; the corpus score where counts can be summed."""
    return RunningMean(
        sum(own["count"] for own in kept),
        math.fsum(own["value"] for own in kept),
        _sum_or_none(own["precision"] for own in kept),
        _sum_or_none(own["recall"] for own in kept),
        kept[0]["signature"],
        _corpus_score(metric, kept),
    )


def _corpus_score(metric: Metric, kept: Sequence[Mapping[str, Any]]) -> float | None:
    totals = [own["corpus"]["totals"] for own in kept if "corpus" in own]
    if len(totals) < len(kept) or None in totals or not isinstance(metric, CorpusMetric):
        return None
    return float(metric.score_totals(np.sum(totals, axis=0)))


def _sum_or_none(values: Iterable[float | None]) -> float | None:
    given = list(values)
    known = [value for value in given if value is not None]
    return math.fsum(known) if len(known) == len(given) else None
