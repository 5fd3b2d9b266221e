"""A large run: two workers against one, what it costs to start, and what kills would cost."""

from __future__ import annotations

import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import failures, texts
from evenmatch.uses.scale.large import Outcome, score_files
from evenmatch.uses.scale.processes import Processes

COUNT, METRIC = 20_000, "f_disc"
MEMORY_ROWS, MEMORY_METRIC = 40_000, "align(vectors=hashed(dim=64))"


def run() -> dict[str, Any]:
    candidates, references, source = texts.pairs(COUNT)
    rows = [{"candidate": c, "reference": r} for c, r in zip(candidates, references, strict=True)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        start_up = _timed(folder, rows[:1], workers=1)[0]
        one, found = _timed(folder, rows, workers=1)
        two, _ = _timed(folder, rows, workers=2)
        memory = {str(n): _peak(folder, rows, n) for n in (2_000, MEMORY_ROWS)}
    spent = sum(found.seconds.values())
    return {
        "texts": source,
        "pairs": len(rows),
        "metric": METRIC,
        "start-up seconds": round(start_up, 2),
        "one worker, pairs per second": round(len(rows) / one, 1),
        "two workers, pairs per second": round(len(rows) / two, 1),
        "two workers over one": round(one / two, 3),
        "share of a worker's time": {k: round(v / spent, 5) for k, v in found.seconds.items()},
        "seconds around the workers' work": round(one - spent, 2),
        "peak MB of a worker by rows in a shard": memory,
        "overhead by kills": failures.table(),
    }


def _timed(folder: Path, rows: list[dict[str, str]], *, workers: int) -> tuple[float, Outcome]:
    """Seconds of a whole run, each worker with one thread, and what it came to."""
    given, out = _files(folder, rows)
    start = time.perf_counter()
    found = score_files(str(given), str(out), METRIC, on=Processes(workers, 1), shard_rows=500)
    return time.perf_counter() - start, found


def _peak(folder: Path, rows: list[dict[str, str]], shard_rows: int) -> int:
    """The most memory of any worker so far; so ask for small shards first."""
    many = [rows[n % len(rows)] for n in range(MEMORY_ROWS)]
    given, out = _files(folder, many)
    score_files(str(given), str(out), MEMORY_METRIC, on=Processes(1, 1), shard_rows=shard_rows)
    return round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def _files(folder: Path, rows: list[dict[str, str]]) -> tuple[Path, Path]:
    place = Path(tempfile.mkdtemp(dir=folder))
    given = place / "in.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return given, place / "out.jsonl"
