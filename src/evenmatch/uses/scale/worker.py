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
from evenmatch.scoring.counted import score_counted
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.tally import count_flags
from evenmatch.scoring.together import as_metric, score_together
from evenmatch.types import Metric, Pair, Run
from evenmatch.uses.scale.job import Done, Failed, Job, Ready, Task
from evenmatch.uses.scale.loading import pairs_in
from evenmatch.uses.scale.packed import PACKED, Counted, packed
from evenmatch.uses.scale.sums import tally_of
from evenmatch.vectors.tables import keep_text

TRIAL = [Pair("a short text", ("a short text",), "a short text")]


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
        tried = score_together(self._metrics, TRIAL, self._run)  # loads the models
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
        found = score_counted(self._metrics, pairs, self._run)
        scored = time.perf_counter()
        names = [name for name, _ in self._job.metrics]
        data = b"" if task.only else self._written(task.first, names, found)
        seconds = {"score": scored - start, "write": time.perf_counter() - scored}
        tallies = {n: tally_of(*own) for n, own in zip(names, found, strict=True)}
        flags = count_flags([scores for scores, _ in found])
        return Done(task.number, data, tallies, dict(flags), seconds)

    def _written(self, first: int, names: Sequence[str], found: Sequence[Counted]) -> bytes:
        if self._job.form == PACKED:
            return packed(found)
        return _file(rows_of(first, names, [scores for scores, _ in found]), self._job.form)


def one_line(error: BaseException) -> str:
    """An error's words on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _file(rows: Iterator[Row], form: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="evenmatch-") as folder:
        path = Path(folder) / f"part{form}"
        with row_file(str(path)) as write:
            write(list(rows))
        return path.read_bytes()
