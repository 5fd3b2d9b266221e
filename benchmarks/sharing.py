"""Many metrics in one pass against one alone, and what each alignment costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from evenmatch.types import Run
from evenmatch.vectors.pretrained import Pretrained

COUNT, REPEATS = 600, 5
USUAL, MARKS = 27, 2  # units a side; opening and closing tokens, which are no units
TOKEN_METRICS = ("bertscore", "f_disc", "f_cont")
APPROXIMATIONS = ("lisa_rowmask", "lisa_recursive", "lisa_topk", "lisa_auction")


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(2)
    candidates, references, source = _usual_pairs()
    em.score(candidates[:50], references[:50], list(TOKEN_METRICS))
    together = {str(n): _together(candidates, references, n) for n in (1, 2)}
    encoding = _encoding(candidates, references)
    matrices = [m for m in _similarities(candidates, references) if m.size]
    return {
        "texts": source,
        "pairs": len(candidates),
        "metrics": list(TOKEN_METRICS),
        "mean units a side": round(float(np.mean([m.shape for m in matrices])), 1),
        "approximations": list(APPROXIMATIONS),
        "together over bertscore alone, by threads": together,
        "share of the encoder's time": {
            name: round(min(_timed(name, matrices) for _ in range(REPEATS)) / encoding, 5)
            for name in ("greedy", "lsa", "emd")
        },
        "microseconds per pair by size": {
            name: {str(n): round(_by_size(name, n), 1) for n in (8, 16, 32, 64, 128, 256)}
            for name in ("greedy", "lsa", "emd", "sinkhorn")
        },
    }


def _together(candidates: list[str], references: list[str], threads: int) -> dict[str, float]:
    """All exact metrics, and all there are, over one; only encoding uses more than one thread."""

    def scored(*metrics: str) -> Callable[[], object]:
        return lambda: em.score(candidates, references, list(metrics), threads=threads)

    rivals = {
        "one": scored("bertscore"),
        "exact": scored(*TOKEN_METRICS),
        "all": scored(*TOKEN_METRICS, *APPROXIMATIONS),
    }
    seconds = take_turns(rivals, REPEATS)
    return {name: ratio(seconds[name], seconds["one"]) for name in ("exact", "all")}


def _usual_pairs() -> tuple[list[str], list[str], str]:
    """Pairs of USUAL units a side in the mean: the longest are left out until it is so."""
    candidates, references, source = texts.pairs(COUNT + COUNT // 10)
    lengths = [
        [len(keys) - MARKS for keys in Pretrained("minilm").keys(side)]
        for side in (candidates, references)
    ]
    sizes = np.array(lengths).mean(0)
    order = np.argsort(sizes)
    means = np.cumsum(sizes[order]) / np.arange(1, len(sizes) + 1)
    kept = sorted(order[means <= USUAL])
    return [candidates[i] for i in kept], [references[i] for i in kept], source


def _encoding(candidates: list[str], references: list[str]) -> float:
    body, unique = Pretrained("minilm"), list(dict.fromkeys([*candidates, *references]))
    turns = take_turns({"encode": lambda: body.encode(unique, [4], Run())}, REPEATS)
    return median(turns["encode"])


def _similarities(candidates: list[str], references: list[str]) -> list[Any]:
    """The matrices that these texts really give, which are easier to align than random ones."""
    encoder, cut, compare = em.Transformer(), em.Pieces(), em.Cosine()
    sides = [encoder([cut(text) for text in side]) for side in (candidates, references)]
    return [compare(x, y).astype(float) for x, y in zip(*sides, strict=True)]


def _by_size(solver: str, n: int) -> float:
    rng = np.random.default_rng(n)
    matrices = [rng.random((n, n)) for _ in range(max(4, 2000 // n))]
    return 1e6 * min(_timed(solver, matrices) for _ in range(3)) / len(matrices)


def _timed(solver: str, matrices: list[Any]) -> float:
    """Seconds for the solver as metrics call it: matrices and masses are ready."""
    solve = em.build(solver)
    problems = [em.Problem(m, np.ones(m.shape[0]), np.ones(m.shape[1])) for m in matrices]
    solve(problems[:1])
    start = time.perf_counter()
    solve(problems)
    return time.perf_counter() - start
