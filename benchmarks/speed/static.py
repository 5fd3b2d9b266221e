"""Pairs per second of `f_static`, which runs no model, against `bertscore`."""

from __future__ import annotations

from functools import partial
from typing import Any

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns

COUNT, REPEATS, THREADS = 1000, 5, 2


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    candidates, references, source = texts.pairs(COUNT)
    rivals = {
        name: partial(em.score, candidates, references, name) for name in ("f_static", "bertscore")
    }
    for name in rivals:
        em.score(candidates[:20], references[:20], name)
    seconds = take_turns(rivals, REPEATS)
    return {
        "texts": source,
        "pairs": COUNT,
        "threads": THREADS,
        "repeats": REPEATS,
        "pairs per second": {name: round(COUNT / median(s), 1) for name, s in seconds.items()},
        "times bertscore": ratio(seconds["bertscore"], seconds["f_static"]),
        "times bertscore, round by round": [
            round(b / a, 1) for a, b in zip(seconds["f_static"], seconds["bertscore"], strict=True)
        ],
    }
