"""How time and memory grow with the number of pairs and with their length."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from typing import Any

from benchmarks import texts
from benchmarks.clock import ratio, take_turns
from benchmarks.speed import peers

COUNTS, LENGTHS = (1000, 4000, 16000), (16, 32, 64, 128, 256, 510)
_PROGRAM = """
import json, resource, sys, time
from benchmarks import texts
import evenmatch as em
candidates, references, _ = texts.pairs(int(sys.argv[1]))
start = time.perf_counter()
em.score(candidates, references, ["bertscore", "f_disc", "f_cont"], threads=2)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"pairs per second": round(len(candidates) / seconds, 1), "peak MB": round(peak)}))
"""


def run() -> dict[str, Any]:
    by_count = {str(n): _process(n) for n in COUNTS}
    peaks = [by_count[str(n)]["peak MB"] for n in COUNTS]
    return {
        "by number of pairs": by_count,
        "memory of 4000 pairs over 1000": round(peaks[1] / peaks[0], 3),
        "memory of 16000 pairs over 4000": round(peaks[2] / peaks[1], 3),
        "times bert_score by tokens per text": {str(n): _by_length(n) for n in LENGTHS},
    }


def _process(count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(count)], check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _by_length(length: int) -> float:
    """How many times faster than bert_score on texts of about that many tokens."""
    words = " ".join(texts.pairs(2000)[0]).split()
    size = max(4, round(length / 1.3))
    stretches = [" ".join(words[i : i + size]) for i in range(0, len(words) - size, size)]
    count = max(8, min(200, 8000 // length))
    candidates, references = stretches[:count], stretches[count : 2 * count]
    ours, theirs = (make(candidates, references) for make in (peers.evenmatch, peers.bert_score))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours()
        seconds = take_turns({"ours": ours, "theirs": theirs}, 3)
    return ratio(seconds["theirs"], seconds["ours"])
