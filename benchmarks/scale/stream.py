"""A million pairs through the command line, file to file, and the memory that takes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import texts

COUNT = 1_000_000
METRIC = "align(vectors=hashed(dim=64), alignment=lsa)"


def run() -> dict[str, Any]:
    candidates, references, source = texts.pairs(20_000)
    with tempfile.TemporaryDirectory() as temporary:
        file, out = Path(temporary) / "big.jsonl", Path(temporary) / "scores.parquet"
        with file.open("w", encoding="utf-8") as sink:
            for n in range(COUNT):
                k = n % len(candidates)
                row = {
                    "candidate": f"{candidates[k]} {n}",
                    "reference": f"{references[k]} {n // 2}",
                }
                sink.write(json.dumps(row) + "\n")
        command = [sys.executable, "-m", "evenmatch", "score", str(file), "-m", METRIC]
        start = time.perf_counter()
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        "texts": f"{source}, each numbered",
        "pairs": COUNT,
        "metric": METRIC,
        "pairs per second": round(COUNT / seconds),
        "peak MB": round(peak),
    }
