"""Many metrics in one pass against one alone, and what each alignment costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from evenmatch.alignment.assignment import solver_threads
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.registry import CallContext
from evenmatch.types import Run

COUNT, REPEATS = 600, 5
TURNS = 9  # of whole calls: encoding alone differs by a tenth from one to the next
USUAL, MARKS = 27, 2  # units a side; opening and closing tokens, which are no units
TOKEN_METRICS = ("bertscore", "f_disc", "f_cont")
APPROXIMATIONS = ("lisa_rowmask", "lisa_recursive", "lisa_topk", "lisa_auction")
SOLVERS = (
    *("greedy", "mutual", "lsa", "partial", "emd", "sinkhorn", "unbalanced"),
    *("row_mask", "recursive", "topk", "auction"),
)
LAST_ONLY = ("moverscore", "eot")  # these read the last layer, as their authors do


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(2)
    candidates, references, source = _usual_pairs()
    # all of them, so that solvers which come as machine code are loaded by then
    em.score(candidates, references, [*TOKEN_METRICS, *APPROXIMATIONS, *LAST_ONLY])
    together = {str(n): _together(candidates, references, n) for n in (1, 2)}
    matrices = [m for m in _similarities(candidates, references) if m.size]
    return {
        "texts": source,
        "pairs": len(candidates),
        "metrics": list(TOKEN_METRICS),
        "mean units a side": round(float(np.mean([m.shape for m in matrices])), 1),
        "approximations": list(APPROXIMATIONS),
        "last layer only": list(LAST_ONLY),
        "together over bertscore alone, by threads": together,
        "share of the encoder's time, by its threads": _shares(candidates, references, matrices),
        "microseconds per pair by size": {
            name: {str(n): round(_by_size(name, n), 1) for n in (8, 16, 32, 64, 128, 256)}
            for name in SOLVERS
        },
    }


def _together(candidates: list[str], references: list[str], threads: int) -> dict[str, float]:
    """Several metrics over `bertscore` on the same layer, all else being equal.

    'exact' and 'all' are at the layer that agrees best with people, which is the default; 'last'
    are all at the last layer, so that those which read no other can be among them.
    """

    def scored(*metrics: str) -> Callable[[], object]:
        return lambda: em.score(candidates, references, list(metrics), threads=threads)

    at_last = [f"{name}(layer='last')" for name in (*TOKEN_METRICS, *APPROXIMATIONS)]
    rivals = {
        "one": scored("bertscore"),
        "exact": scored(*TOKEN_METRICS),
        "all": scored(*TOKEN_METRICS, *APPROXIMATIONS),
        "one at last": scored(at_last[0]),
        "last": scored(*at_last, *LAST_ONLY),
    }
    seconds = take_turns(rivals, TURNS)
    over = {"exact": "one", "all": "one", "last": "one at last"}
    return {name: ratio(seconds[name], seconds[one]) for name, one in over.items()}


def _usual_pairs() -> tuple[list[str], list[str], str]:
    """Pairs of USUAL units a side in the mean: the longest are left out until it is so."""
    candidates, references, source = texts.pairs(COUNT + COUNT // 10)
    lengths = [
        [len(keys) - MARKS for keys in PretrainedBackbone("minilm").open().token_ids(side)]
        for side in (candidates, references)
    ]
    sizes = np.array(lengths).mean(0)
    order = np.argsort(sizes)
    means = np.cumsum(sizes[order]) / np.arange(1, len(sizes) + 1)
    kept = sorted(order[means <= USUAL])
    return [candidates[i] for i in kept], [references[i] for i in kept], source


def _shares(
    candidates: list[str], references: list[str], matrices: list[Any]
) -> dict[str, dict[str, float]]:
    """What aligning takes of the time to encode, by turns, so that both meet the same machine."""
    body, unique = PretrainedBackbone("minilm"), list(dict.fromkeys([*candidates, *references]))
    encoders = {
        str(n): partial(body.open(CallContext(Run(threads=n))).encode, unique, [4]) for n in (1, 2)
    }
    names = ("greedy", "mutual", "lsa", "partial", "emd", "unbalanced")
    solvers = {
        f"{name} {n}": _on(int(n), _solving(name, matrices)) for name in names for n in encoders
    }
    turns = take_turns({**encoders, **solvers}, TURNS)

    def share(name: str, n: str) -> float:
        pairs = zip(turns[f"{name} {n}"], turns[n], strict=True)
        return round(median([solving / encoding for solving, encoding in pairs]), 5)

    return {name: {n: share(name, n) for n in encoders} for name in names}


def _on(threads: int, work: Callable[[], object]) -> Callable[[], object]:
    """The work as a call with so many threads does it."""

    def done() -> object:
        with solver_threads(threads):
            return work()

    return done


def _similarities(candidates: list[str], references: list[str]) -> list[Any]:
    """The matrices that these texts really give, which are easier to align than random ones."""
    encoder, cut, compare = em.Transformer(), em.Pieces(), em.Cosine()
    sides = [encoder([cut(text) for text in side]) for side in (candidates, references)]
    return [compare(x, y).astype(float) for x, y in zip(*sides, strict=True)]


def _by_size(solver: str, n: int) -> float:
    rng = np.random.default_rng(n)
    matrices = [rng.random((n, n)) for _ in range(max(4, 2000 // n))]
    seconds = take_turns({solver: _solving(solver, matrices)}, 3)[solver]
    return 1e6 * min(seconds) / len(matrices)


def _solving(solver: str, matrices: list[Any]) -> Callable[[], object]:
    """The solver as metrics call it: matrices and masses are ready."""
    solve = em.build(solver)
    problems = [em.Problem(m, np.ones(m.shape[0]), np.ones(m.shape[1])) for m in matrices]
    solve(problems[:1])
    return lambda: solve(problems)
