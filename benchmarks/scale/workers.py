"""A large run: two workers against one, what it costs to start, and what kills would cost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import texts
from benchmarks.scale import failures
from evenmatch.models.backbone import OpenBackbone
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.types import Pair, Run

COUNT, METRIC, SHARD = 20_000, "f_disc", 500
# One shard of all rows against many: what a row of a shard takes.
MEMORY_ROWS, FEW = 4_000, 250
Rows = Sequence[dict[str, str]]


def run(count: int = COUNT, memory_rows: int = MEMORY_ROWS) -> dict[str, Any]:
    candidates, references, source = texts.pairs(count)
    rows = [{"candidate": c, "reference": r} for c, r in zip(candidates, references, strict=True)]
    start = _measured(rows[:1], workers=1)
    one, two = (_measured(rows, workers=n) for n in (1, 2))
    spent = one["spent"]
    encoding = _encoding(rows[: min(len(rows), 1_000)])
    shares = {
        "reading": spent["read"],
        "encoding": spent["score"] * encoding,
        "aligning and scoring": spent["score"] * (1 - encoding),
        "writing": spent["write"],
    }
    whole = sum(spent.values())
    driver = (one["driver seconds"] - start["driver seconds"]) / len(rows)
    return {
        "texts": source,
        "pairs": len(rows),
        "metric": METRIC,
        "rows in a shard": SHARD,
        "start-up seconds": round(start["seconds"], 2),
        "one worker, pairs per second": round(len(rows) / one["seconds"], 1),
        "two workers, pairs per second": round(len(rows) / two["seconds"], 1),
        "two workers over one": round(one["seconds"] / two["seconds"], 3),
        "share of a worker's time": {k: round(v / whole, 5) for k, v in shares.items()},
        "seconds around the workers' work": round(one["seconds"] - whole, 2),
        "driver milliseconds a pair": round(driver * 1e3, 4),
        "worker milliseconds a pair": round(whole / len(rows) * 1e3, 4),
        "peak MB of a worker by rows in a shard": {
            str(n): round(_measured(rows[:memory_rows], workers=1, shard=n)["worker MB"])
            for n in (FEW, memory_rows)
        },
        "overhead by kills": failures.table(),
    }


def _measured(rows: Rows, *, workers: int, shard: int = SHARD) -> dict[str, Any]:
    """A whole run in a process of its own, each worker with one thread."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.jsonl", Path(folder) / "out.jsonl"
        given.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        asked = [str(given), str(out), METRIC, str(workers), str(shard)]
        command = [sys.executable, "-m", "benchmarks.scale.worker_run", *asked]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _encoding(rows: Rows) -> float:
    """The share of the time of scoring that goes into a model's forward passes."""
    pairs = [Pair(row["candidate"], (row["reference"],)) for row in rows]
    metric, settings = as_metric(METRIC), Run(threads=1)
    score_metrics([metric], pairs[:1], settings)  # loads the model
    start = time.perf_counter()
    with _timed_encoding() as spent:
        score_metrics([metric], pairs, settings)
    return spent[0] / (time.perf_counter() - start)


@contextmanager
def _timed_encoding() -> Iterator[list[float]]:
    plain, spent = OpenBackbone.hidden_states, [0.0]

    def timed(*given: Any) -> Any:
        start = time.perf_counter()
        found = plain(*given)
        spent[0] += time.perf_counter() - start
        return found

    with patch.object(OpenBackbone, "hidden_states", timed):
        yield spent
