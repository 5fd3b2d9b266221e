"""A worker: builds the metrics of a job once, then scores one shard after another."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from evenmatch.data.rows import Row, row_file, rows_of
from evenmatch.errors import EvenmatchError
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.tally import count_flags
from evenmatch.scoring.together import as_metric, score_together
from evenmatch.types import Metric, Pair, Run, Scores, Totalled
from evenmatch.uses.scale.job import Done, Failed, Job, Ready, Task
from evenmatch.uses.scale.loading import pairs_in
from evenmatch.uses.scale.sums import tally_of
from evenmatch.vectors.tables import keep_text

_TRIAL = [Pair("a short text", ("a short text",))]


class Worker:
    """The metrics of a job, loaded; call it with a task."""

    def __init__(self, job: Job) -> None:
        start = time.perf_counter()
        with suppress(FileNotFoundError, NotADirectoryError):  # another node has other folders
            os.chdir(job.folder or ".")
        for table in job.tables:
            keep_text(table)
        self._job = job
        self._run: Run = make_run(**job.settings)
        self._metrics: list[Metric] = [as_metric(spec) for _, spec in job.metrics]
        tried = score_together(self._metrics, _TRIAL, self._run)  # loads the models
        names = [name for name, _ in job.metrics]
        signatures = {n: s.signature for n, s in zip(names, tried, strict=True)}
        self.ready = Ready(signatures, time.perf_counter() - start)

    def __call__(self, task: Task) -> Done | Failed:
        """The scores of a shard, or why there are none."""
        start = time.perf_counter()
        pairs: list[Pair] = []
        try:
            for pair in pairs_in(task.data, task.cut, task.file):
                pairs.append(pair)  # one by one: what is there tells which row is wrong
        except EvenmatchError as error:
            return Failed(task.number, one_line(error), row=len(pairs), again=False)
        if task.only is not None:
            pairs = pairs[slice(*task.only)]
        read = time.perf_counter()
        try:
            done = self._scored(task, pairs)
        except (EvenmatchError, OSError) as error:
            return Failed(task.number, one_line(error))
        done.seconds["read"] = read - start
        return done

    def _scored(self, task: Task, pairs: Sequence[Pair]) -> Done:
        start = time.perf_counter()
        totals = {}
        found: list[Scores | None] = [None] * len(self._metrics)
        for n, metric in enumerate(self._metrics):
            if isinstance(metric, Totalled):
                found[n], counts = metric.counted(pairs)
                totals[n] = counts.sum(0).tolist()
        others = [n for n, scores in enumerate(found) if scores is None]
        rest = score_together([self._metrics[n] for n in others], pairs, self._run)
        for n, scores in zip(others, rest, strict=True):
            found[n] = scores
        whole = [scores for scores in found if scores is not None]
        scored = time.perf_counter()
        names = [name for name, _ in self._job.metrics]
        data = b"" if task.only else _file(rows_of(task.first, names, whole), self._job.form)
        seconds = {"score": scored - start, "write": time.perf_counter() - scored}
        tallies = {
            name: tally_of(scores, totals.get(n))
            for n, (name, scores) in enumerate(zip(names, whole, strict=True))
        }
        return Done(task.number, data, tallies, dict(count_flags(whole)), seconds)


def one_line(error: BaseException) -> str:
    """An error's words on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _file(rows: Iterator[Row], form: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="evenmatch-") as folder:
        path = Path(folder) / f"part{form}"
        with row_file(str(path)) as write:
            write(list(rows))
        return path.read_bytes()
