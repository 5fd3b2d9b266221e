"""Measure approximate assignment solvers against exact assignment.

`measure_quality` compares total similarities, `measure_speed` times, and
`measure_solver_agreement` the correlation of F_DISC scores with exact ones and with human ratings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.alignment.assignment import Lsa
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.errors import InputError
from evenmatch.evaluation.agreement import correlate
from evenmatch.protocols import Encoder
from evenmatch.registry import build
from evenmatch.similarity.vectors import Cosine
from evenmatch.stats.levels import correlation
from evenmatch.types import Alignment, Array, Problem
from evenmatch.units.text import Pieces

SOLVERS = ("row_mask", "recursive", "recursive(iterations=7)", "topk", "auction")
SIZES = (8, 16, 32, 64, 128, 256, 512)
BATCHES = (1, 16, 256)
EXACT_METRIC, GREEDY_METRIC = "f_disc", "align"
_MAX_CELLS = 1 << 23  # batches with more cells are limited by memory and are not timed
_RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class AssignmentQuality:
    """How close one solver comes to the optimal assignment on some matrices.

    `share` is its total similarity divided by that of the optimal matching, on average; alignments
    that are no matching can exceed 1. `pairs` is the share of the min(m, n) pairs of a matching
    that it makes: cells that both their units choose.
    """

    solver: str
    matrices: int
    share: float
    lowest_share: float
    pairs: float
    fewest_pairs: float


def measure_quality(
    matrices: Sequence[Array], solvers: Sequence[str] = SOLVERS
) -> list[AssignmentQuality]:
    """Compare each solver with exact assignment on the same matrices."""
    if not matrices:
        raise InputError("there are no matrices to compare solvers on; give at least one")
    problems = [_uniform_problem(s) for s in matrices]
    optimal = [_total_similarity(s, a) for s, a in zip(matrices, Lsa()(problems), strict=True)]
    rows = []
    for name in solvers:
        found = build(name)(problems)
        shares = [
            _total_similarity(s, a) / b
            for s, a, b in zip(matrices, found, optimal, strict=True)
            if b > 0
        ]
        pairs = [
            float(np.minimum(a.rows, a.cols).sum()) / min(s.shape)
            for s, a in zip(matrices, found, strict=True)
        ]
        means = float(np.mean(shares)), float(np.mean(pairs))
        rows.append(
            AssignmentQuality(name, len(matrices), means[0], min(shares), means[1], min(pairs))
        )
    return rows


@dataclass(frozen=True, slots=True)
class AssignmentSpeed:
    """Microseconds per pair for one solver, also as a multiple of SciPy's exact assignment."""

    solver: str
    size: int
    batch: int
    microseconds: float
    times_exact: float


def measure_speed(
    sizes: Sequence[int] = SIZES,
    batches: Sequence[int] = BATCHES,
    solvers: Sequence[str] = SOLVERS,
    *,
    rounds: int = 3,
    seconds: float = 0.0,
    device: str = "",
) -> list[AssignmentSpeed]:
    """Time each solver and the exact one for every size and batch; batches too large are skipped.

    The time is that of the fastest round. There are at least `rounds` rounds, and more until
    `seconds` have passed for each size and batch; solvers take turns, so that other load on the
    machine affects all of them. With `device`, similarities are tensors there; the exact solver
    always gets arrays.
    """
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}")
    rows: list[AssignmentSpeed] = []
    for size in sizes:
        for batch in batches:
            if batch == 1 or batch * size * size <= _MAX_CELLS:
                rows += _time_solvers(size, batch, solvers, (rounds, seconds), device)
    return rows


@dataclass(frozen=True, slots=True)
class SolverAgreement:
    """Kendall's tau-b of one metric on one set, with exact F_DISC and with human ratings."""

    solver: str
    subset: str
    outputs: int
    with_exact: float
    with_people: float


def measure_solver_agreement(
    rated: RatedSet, solvers: Sequence[str], **run: Any
) -> list[SolverAgreement]:
    """Correlate F_DISC with greedy, exact and each of `solvers`; nothing else differs."""
    specs = {
        "greedy": GREEDY_METRIC,
        "lsa": EXACT_METRIC,
        **{s: f"align(alignment={s})" for s in solvers},
    }
    found = correlate(
        list(specs.values()), rated, "segment", "kendall", resamples=_RESAMPLES, **run
    )
    scores = found.scored[0].scores
    exact = scores[EXACT_METRIC].segments.ravel()
    values = {entry.metric: entry for entry in found.entries}
    return [
        SolverAgreement(
            solver,
            rated.subset,
            values[spec].n,
            float(correlation(scores[spec].segments.ravel(), exact, "kendall")),
            values[spec].value,
        )
        for solver, spec in specs.items()
    ]


def random_matrices(size: int, count: int, seed: int = 0) -> list[Array]:
    """Return square matrices of independent uniform similarities between 0 and 1."""
    random = np.random.default_rng(seed)
    return [random.uniform(0, 1, (size, size)) for _ in range(count)]


def sentence_matrices(
    candidates: Sequence[str], references: Sequence[str], encoder: Encoder
) -> list[Array]:
    """Return the similarity matrix of each pair; pairs with an empty side are dropped."""
    units = Pieces(marks=True)
    x, y = (encoder([units(text) for text in side]) for side in (candidates, references))
    found = [Cosine()(a, b) for a, b in zip(x, y, strict=True)]
    return [s for s in found if s.size]


def _time_solvers(
    size: int, batch: int, solvers: Sequence[str], least: tuple[int, float], device: str
) -> Iterator[AssignmentSpeed]:
    arrays = [_uniform_problem(s) for s in random_matrices(size, batch)]
    given: Mapping[str, Sequence[Problem]] = {
        "lsa": arrays,
        **{name: [_to_device(p, device) for p in arrays] if device else arrays for name in solvers},
    }
    fastest = dict.fromkeys(given, float("inf"))
    began, done = time.perf_counter(), 0
    while done < least[0] or time.perf_counter() - began < least[1]:
        done += 1
        for name, problems in given.items():
            solver = build(name)
            started = time.perf_counter()
            solver(problems)
            _synchronize(device)
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    for name, seconds in fastest.items():
        yield AssignmentSpeed(name, size, batch, seconds / batch * 1e6, seconds / fastest["lsa"])


def _uniform_problem(similarity: Array) -> Problem:
    return Problem(similarity, np.ones(similarity.shape[0]), np.ones(similarity.shape[1]))


def _to_device(problem: Problem, device: str) -> Problem:
    import torch

    return Problem(
        torch.as_tensor(problem.similarity, device=device), problem.row_mass, problem.col_mass
    )


def _synchronize(device: str) -> None:
    """Wait until the accelerator has finished."""
    if device and not device.startswith("cpu"):
        import torch

        accelerator: Any = torch.accelerator
        accelerator.synchronize()


def _total_similarity(similarity: Array, alignment: Alignment) -> float:
    return float((np.maximum(alignment.rows, alignment.cols) * similarity).sum())
