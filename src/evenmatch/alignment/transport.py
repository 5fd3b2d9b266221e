"""Alignments by optimal transport between the masses of the two sides (F_CONT).

A transport plan moves the candidate's mass onto the reference's; a unit may be split over several
partners. `emd` finds a plan of least cost, where the cost is the negative similarity. `sinkhorn`
adds an entropy term, which makes the plan smooth and the solution approximate. Both scale masses
to sum to 1 on each side (`normalize_mass`) and turn the plan into shares of each unit's own mass
(`plan_to_shares`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from evenmatch.alignment.batching import map_in_threads
from evenmatch.errors import InputError, MissingExtraError
from evenmatch.registry import check_settings, register
from evenmatch.types import Alignment, Array, Problem

_MAX_PIVOTS = 1_000_000
_CHUNK_SIZE = 32  # problems that a thread solves at a time

_HIDE_TORCH = "POT_BACKEND_DISABLE_PYTORCH"
_import_lock = Lock()  # importing POT changes os.environ and sys.modules for a moment


@register("alignment", "emd")
@dataclass(frozen=True)
class Emd:
    """Exact optimal transport of the candidate's mass onto the reference's mass (F_CONT).

    The earth mover's distance with the negative similarity as the cost. Masses are scaled to sum
    to 1 on each side. With equal masses precision equals recall.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem exactly, with POT's network simplex."""
        prepared = [_prepare_problem(p) for p in problems if np.size(p.similarity)]
        chunks = [prepared[i : i + _CHUNK_SIZE] for i in range(0, len(prepared), _CHUNK_SIZE)]
        plans = (
            plan for chunk in map_in_threads(_solve_chunk, chunks, len(chunks)) for plan in chunk
        )
        solved = (_make_alignment(p, *plan) for p, plan in zip(prepared, plans, strict=True))
        return [
            next(solved) if np.size(p.similarity) else _empty_alignment(np.shape(p.similarity))
            for p in problems
        ]


@register("alignment", "sinkhorn")
@dataclass(frozen=True)
class Sinkhorn:
    """Optimal transport with entropy regularisation: smoother than `emd`, and approximate.

    `epsilon` is the strength of the regularisation, on the scale of the similarity. Iteration stops
    when every row's mass is reached within `tolerance`, or after `iterations` steps.
    """

    epsilon: float = 0.05
    iterations: int = 1000
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        check_settings(self)
        if self.epsilon <= 0:
            raise InputError(f"sinkhorn's epsilon must be above 0, got {self.epsilon}")
        if self.iterations < 1:
            raise InputError(f"sinkhorn's iterations must be at least 1, got {self.iterations}")

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem in the log domain: exp(-1/epsilon) underflows below epsilon 0.0014."""
        return [self._solve_one(p) for p in problems]

    def _solve_one(self, problem: Problem) -> Alignment:
        similarity = np.asarray(problem.similarity, dtype=np.float64)
        if not similarity.size:
            return _empty_alignment(similarity.shape, exact=False)
        h, r = normalize_mass(problem.row_mass), normalize_mass(problem.col_mass)
        with np.errstate(divide="ignore"):
            log_h, log_r = np.log(h), np.log(r)
        kernel = similarity / self.epsilon
        v = np.zeros(r.shape)
        steps = 0
        # Scale rows (u) and columns (v) in turn until the plan has the wanted row masses.
        while True:
            steps += 1
            u = log_h - _log_sum_exp(kernel + v, 1)
            v = log_r - _log_sum_exp(kernel + u[:, None], 0)
            plan = np.exp(kernel + u[:, None] + v)
            if steps >= self.iterations or abs(plan.sum(1) - h).max() < self.tolerance:
                break
        # The last step makes the columns exact and the rows only within the tolerance, so cap them.
        rows, cols = plan_to_shares(plan, np.maximum(h, plan.sum(1)), np.maximum(r, plan.sum(0)))
        return Alignment(rows, cols, exact=False, steps=steps)


def normalize_mass(mass: Array) -> Array:
    """Scale masses to sum to 1; if all of them are 0, every unit gets the same mass.

    >>> normalize_mass(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    mass = np.asarray(mass, dtype=np.float64)
    # On a few numbers the reductions of ufuncs take half the time of the array methods.
    if mass.size and (lowest := np.minimum.reduce(mass)) < 0:
        raise InputError(f"a mass must not be negative, got {lowest}")
    total = np.add.reduce(mass)
    return mass / total if total > 0 else np.full(mass.shape, 1 / max(mass.size, 1))


def plan_to_shares(plan: Array, row_mass: Array, col_mass: Array) -> tuple[Array, Array]:
    """Divide a transport plan by each row's and by each column's mass; overwrites the plan."""
    masses = row_mass[:, None], col_mass
    if np.minimum.reduce(row_mass) > 0 < np.minimum.reduce(col_mass):
        rows = plan / masses[0]
        return rows, np.divide(plan, masses[1], out=plan)  # allocating an array would double this
    # A unit without mass gets nothing.
    rows, cols = (np.divide(plan, m, out=np.zeros_like(plan), where=m > 0) for m in masses)
    return rows, cols


@dataclass(frozen=True, slots=True, eq=False)
class _TransportProblem:
    """A problem in the form POT expects; `transposed` if the candidate's units are the sinks."""

    sources: Array
    sinks: Array
    cost: Array
    transposed: bool


def _prepare_problem(problem: Problem) -> _TransportProblem:
    similarity = np.asarray(problem.similarity, dtype=np.float64)
    h, r = normalize_mass(problem.row_mass), normalize_mass(problem.col_mass)
    r *= np.add.reduce(h) / np.add.reduce(r)  # POT needs totals that agree to the last bit
    if len(h) <= len(r):
        return _TransportProblem(h, r, np.negative(similarity, order="C"), transposed=False)
    # POT is a sixth faster with the shorter side as its sources.
    return _TransportProblem(r, h, np.negative(similarity.T, order="C"), transposed=True)


def _solve_chunk(problems: Sequence[_TransportProblem]) -> list[tuple[Array, int]]:
    """Return the plan and POT's status code for each problem; POT releases the GIL."""
    with _import_lock:
        solve = _network_simplex()
    results = [solve(p.sources, p.sinks, p.cost, _MAX_PIVOTS, 1) for p in problems]
    return [(plan, status) for plan, _, _, _, status in results]


@cache
def _network_simplex() -> Callable[..., Any]:
    """Import POT's compiled network simplex, without importing torch.

    `import ot` imports torch if it is installed. That takes seconds, and aligning two matrices
    should not wait for a deep-learning framework. So torch is hidden from that import; afterwards
    POT's modules are removed from `sys.modules`, so that the user's own `import ot` finds torch.
    """
    hide = not {"ot", "torch"} & sys.modules.keys() and _HIDE_TORCH not in os.environ
    try:
        if hide:
            os.environ[_HIDE_TORCH] = "1"
        from ot.lp.emd_wrap import emd_c
    except ImportError:
        raise MissingExtraError(
            "exact transport needs POT; install it with: pip install POT"
        ) from None
    finally:
        if hide:
            del os.environ[_HIDE_TORCH]
            for name in [n for n in sys.modules if n == "ot" or n.startswith("ot.")]:
                del sys.modules[name]
    solve: Callable[..., Any] = emd_c
    return solve


def _make_alignment(problem: _TransportProblem, plan: Array, status: int) -> Alignment:
    if problem.transposed:
        rows, cols = plan_to_shares(plan.T, problem.sinks, problem.sources)
    else:
        rows, cols = plan_to_shares(plan, problem.sources, problem.sinks)
    return Alignment(rows, cols, exact=status == 1)


def _empty_alignment(shape: tuple[int, ...], *, exact: bool = True) -> Alignment:
    return Alignment(np.zeros(shape), np.zeros(shape), exact=exact)


def _log_sum_exp(values: Array, axis: int) -> Array:
    """Return log(sum(exp(values))) without overflow; -inf where all values are -inf."""
    top = values.max(axis, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - safe).sum(axis)) + safe.squeeze(axis)
