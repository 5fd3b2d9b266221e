"""Pairs per second of `f_static`, which runs no model, against `bertscore`."""

from __future__ import annotations

from functools import partial
from typing import Any

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns

COUNT, REPEATS = 1000, 5
# `bertscore` gains from a second thread, `f_static` does not.
THREADS = {"one thread": 1, "two threads": 2}


def run() -> dict[str, Any]:
    candidates, references, source = texts.pairs(COUNT)
    found: dict[str, Any] = {"texts": source, "pairs": COUNT, "repeats": REPEATS}
    return found | {name: measure(candidates, references, n) for name, n in THREADS.items()}


def measure(candidates: list[str], references: list[str], threads: int) -> dict[str, Any]:
    rivals = {
        name: partial(em.score, candidates, references, name, threads=threads)
        for name in ("f_static", "bertscore")
    }
    for name in rivals:
        em.score(candidates[:20], references[:20], name, threads=threads)
    seconds = take_turns(rivals, REPEATS)
    return {
        "pairs per second": {name: round(COUNT / median(s), 1) for name, s in seconds.items()},
        "times bertscore": ratio(seconds["bertscore"], seconds["f_static"]),
        "times bertscore, round by round": [
            round(b / a, 1) for a, b in zip(seconds["f_static"], seconds["bertscore"], strict=True)
        ],
    }
