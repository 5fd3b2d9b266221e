"""What the approximations of assignment cost and what they lose, beside the exact one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.alignment.assign import Lsa
from evenmatch.errors import InputError
from evenmatch.registry import build
from evenmatch.similarity.cosine import Cosine
from evenmatch.types import Alignment, Array, Encoder, Problem, Solver, Splitter
from evenmatch.units.pieces import Pieces

SOLVERS = ("row_mask", "recursive", "recursive(iterations=7)", "topk", "auction")
SIZES = (8, 16, 32, 64, 128, 256, 512)
BATCHES = (1, 16, 256)
_MOST_CELLS = 1 << 23  # a batch of larger matrices than this would measure the memory


@dataclass(frozen=True, slots=True)
class Quality:
    """How near one solver comes to the best assignment on some matrices.

    `share` is its total similarity over the greatest a matching can have, on average; what is no
    matching can have more than 1. `pairs` is how many of the min(m, n) pairs of a matching it
    makes: cells that are the choice of both their units.
    """

    solver: str
    matrices: int
    share: float
    lowest_share: float
    pairs: float
    fewest_pairs: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Microseconds per pair for one solver, and as a multiple of SciPy's exact assignment."""

    solver: str
    size: int
    batch: int
    microseconds: float
    times_exact: float


def random_matrices(size: int, count: int, seed: int = 0) -> list[Array]:
    """Square matrices of independent similarities between 0 and 1."""
    random = np.random.default_rng(seed)
    return [random.uniform(0, 1, (size, size)) for _ in range(count)]


def sentence_matrices(
    candidates: Sequence[str],
    references: Sequence[str],
    encoder: Encoder,
    units: Splitter = Pieces(marks=True),
) -> list[Array]:
    """The similarities of each candidate with its reference; those with an empty side left out."""
    x, y = (encoder([units(text) for text in side]) for side in (candidates, references))
    found = [Cosine()(a, b) for a, b in zip(x, y, strict=True)]
    return [s for s in found if s.size]


def quality(matrices: Sequence[Array], solvers: Sequence[str] = SOLVERS) -> list[Quality]:
    """One row for each solver."""
    if not matrices:
        raise InputError("there are no matrices to compare solvers on; give at least one")
    problems = [_problem(s) for s in matrices]
    best = [_total(s, a) for s, a in zip(matrices, Lsa()(problems), strict=True)]
    rows = []
    for name in solvers:
        found = _solver(name)(problems)
        shares = [_total(s, a) / b for s, a, b in zip(matrices, found, best, strict=True) if b > 0]
        pairs = [_mutual(a) / min(s.shape) for s, a in zip(matrices, found, strict=True)]
        rows.append(
            Quality(
                name,
                len(matrices),
                float(np.mean(shares)),
                min(shares),
                float(np.mean(pairs)),
                min(pairs),
            )
        )
    return rows


def speed(
    sizes: Sequence[int] = SIZES,
    batches: Sequence[int] = BATCHES,
    solvers: Sequence[str] = SOLVERS,
    *,
    rounds: int = 3,
    seconds: float = 0.0,
    device: str = "",
) -> list[Speed]:
    """A row for each solver, size and batch, the exact one among them; large batches are left out.

    The fastest of `rounds`, or of as many more as `seconds` for each size and batch allow; solvers
    take turns in them, so that what else the machine does meets all. With `device` the similarities
    are tensors there; the exact solver has arrays.
    """
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}")
    rows: list[Speed] = []
    for size in sizes:
        for batch in batches:
            if batch == 1 or batch * size * size <= _MOST_CELLS:
                rows += _timed(size, batch, solvers, (rounds, seconds), device)
    return rows


def _timed(
    size: int, batch: int, solvers: Sequence[str], least: tuple[int, float], device: str
) -> Iterator[Speed]:
    arrays = [_problem(s) for s in random_matrices(size, batch)]
    given: Mapping[str, Sequence[Problem]] = {
        "lsa": arrays,
        **{name: [_on(p, device) for p in arrays] if device else arrays for name in solvers},
    }
    fastest = dict.fromkeys(given, float("inf"))
    began, done = time.perf_counter(), 0
    while done < least[0] or time.perf_counter() - began < least[1]:
        done += 1
        for name, problems in given.items():
            solver = _solver(name)
            started = time.perf_counter()
            solver(problems)
            _wait(device)
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    for name, seconds in fastest.items():
        yield Speed(name, size, batch, seconds / batch * 1e6, seconds / fastest["lsa"])


def _solver(name: str) -> Solver:
    solver: Solver = build(name)
    return solver


def _problem(similarity: Array) -> Problem:
    return Problem(similarity, np.ones(similarity.shape[0]), np.ones(similarity.shape[1]))


def _on(problem: Problem, device: str) -> Problem:
    import torch

    return Problem(
        torch.as_tensor(problem.similarity, device=device), problem.row_mass, problem.col_mass
    )


def _wait(device: str) -> None:
    """Until an accelerator has done what it was told."""
    if device and not device.startswith("cpu"):
        import torch

        accelerator: Any = torch.accelerator
        accelerator.synchronize()


def _total(similarity: Array, alignment: Alignment) -> float:
    return float((np.maximum(alignment.rows, alignment.cols) * similarity).sum())


def _mutual(alignment: Alignment) -> float:
    return float(np.minimum(alignment.rows, alignment.cols).sum())
