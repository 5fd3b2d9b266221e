"""A warm cache against a cold one, each end to end in a process of its own.

Processes may write bytecode, also where PYTHONDONTWRITEBYTECODE is set: without that, each of them
would compile all sources, which takes a tenth of a second and happens to no installed package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import texts
from benchmarks.clock import median

COUNTS = (2000, 8000, 16000)
FORMS = ("compact", "exact")
ROUNDS, WARM = 3, 3
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
    """Each form by turns, cold in a folder of its own and then warm in the same, round by round."""
    candidates, references, _ = texts.pairs(count)
    cold: dict[str, list[float]] = {form: [] for form in FORMS}
    warm: dict[str, list[float]] = {form: [] for form in FORMS}
    values: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "texts.json").write_text(json.dumps([candidates, references]))
        plain = _process(folder, "none")[1]
        for _ in range(ROUNDS):
            for form in FORMS:
                shutil.rmtree(folder / form, ignore_errors=True)
                cold[form].append(_process(folder, form)[0])
                for _ in range(WARM):
                    seconds, values[form] = _process(folder, form)
                    warm[form].append(seconds)
    return {
        form: {
            "cold over warm": round(median(cold[form]) / median(warm[form]), 1),
            "by round": [
                round(one / median(warm[form][k * WARM : (k + 1) * WARM]), 1)
                for k, one in enumerate(cold[form])
            ],
            "warm seconds": round(median(warm[form]), 2),
            "largest difference from no cache": max(
                abs(a - b) for a, b in zip(plain, values[form], strict=True)
            ),
        }
        for form in FORMS
    }


def _process(folder: Path, form: str) -> tuple[float, list[float]]:
    arguments = [str(folder / "texts.json"), form, str(folder / form), str(folder / "out.json")]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _PROGRAM, *arguments], check=True, env=environment)
    seconds = time.perf_counter() - start
    values: list[float] = json.loads((folder / "out.json").read_text())
    return seconds, values
