from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evenmatch as em
from evenmatch.distributed.pool import (
    ShardFailed,
    ShardTask,
    WorkerJob,
    WorkerPool,
    WorkerReply,
)
from evenmatch.distributed.worker import Worker

METRICS = ["align(vectors=hashed(dim=32), alignment=lsa)", "chrf"]


def records(count: int) -> list[dict[str, Any]]:
    """Pairs that all differ, some with several references, some with an empty side."""
    found = []
    for n in range(count):
        references = [f"a cat {n % 13} sat on {n}", f"the dog {n % 5}"][: 1 + n % 2]
        found.append({"candidate": f"the cat {n} sat" if n % 17 else "", "references": references})
    return found


def write_jsonl(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def expected(rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """What a run in one piece gives, as rows of a file."""
    scores = em.score(
        [row["candidate"] for row in rows], [row["references"] for row in rows], list(metrics)
    )
    return [
        {
            "row": n,
            "metric": name,
            "value": scores[name].segments[n].value,
            "precision": scores[name].segments[n].precision,
            "recall": scores[name].segments[n].recall,
            "flags": sorted(scores[name].segments[n].flags),
        }
        for n in range(len(rows))
        for name in metrics
    ]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@dataclass
class Here:
    """A pool of one worker in this process; `harm` may spoil a task before it is done."""

    harm: Any = None

    @contextmanager
    def __call__(self, job: WorkerJob) -> Iterator[WorkerPool]:
        pool: Any = HerePool(Worker(job), self.harm)
        yield pool


@dataclass
class HerePool:
    worker: Worker
    harm: Any
    task: ShardTask | None = None
    greeted: bool = False

    def idle_count(self) -> int:
        return int(self.greeted and self.task is None)

    def submit(self, task: ShardTask) -> None:
        self.task = task

    def replies(self) -> list[WorkerReply]:
        if not self.greeted:
            self.greeted = True
            return [self.worker.ready]
        assert self.task is not None
        task, self.task = self.task, None
        spoilt: ShardFailed | None = self.harm(task) if self.harm else None
        return [spoilt or self.worker(task)]
