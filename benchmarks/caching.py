"""A warm cache against a cold one, each end to end in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import texts

COUNTS = (2000, 8000)
_PROGRAM = """
import json, sys
import evenmatch as em
candidates, references = json.load(open(sys.argv[1]))
cache = None if sys.argv[2] == "none" else em.Cache(sys.argv[3], exact=sys.argv[2] == "exact")
scores = em.score(candidates, references, "bertscore", cache=cache, threads=2)
json.dump([s.value for s in scores.segments], open(sys.argv[4], "w"))
"""


def run() -> dict[str, Any]:
    source = texts.pairs(1)[2]
    by_count = {str(count): _by_count(count) for count in COUNTS}
    return {"texts": source, "metric": "bertscore", "by number of pairs": by_count}


def _by_count(count: int) -> dict[str, Any]:
    candidates, references, _ = texts.pairs(count)
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "texts.json").write_text(json.dumps([candidates, references]))
        plain = _process(folder, "none")[1]
        for form in ("compact", "exact"):
            cold, _ = _process(folder, form)
            warm, values = min(_process(folder, form) for _ in range(3))
            differences = [abs(a - b) for a, b in zip(plain, values, strict=True)]
            result[form] = {
                "cold over warm": round(cold / warm, 1),
                "warm seconds": round(warm, 2),
                "largest difference from no cache": max(differences),
            }
    return result


def _process(folder: Path, form: str) -> tuple[float, list[float]]:
    arguments = [str(folder / "texts.json"), form, str(folder / form), str(folder / "out.json")]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], check=True)
    seconds = time.perf_counter() - start
    values: list[float] = json.loads((folder / "out.json").read_text())
    return seconds, values
