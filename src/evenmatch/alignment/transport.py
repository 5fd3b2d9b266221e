"""Alignments by optimal transport between the masses of the two sides (F_CONT).

A transport plan moves the candidate's mass onto the reference's; a unit may be split over several
partners. `emd` finds a plan of least cost, where the cost is the negative similarity. `sinkhorn`
adds an entropy term, which makes the plan smooth and the solution approximate. Both scale masses
to sum to 1 on each side (`normalize_mass`) and turn the plan into shares of each unit's own mass
(`plan_to_shares`). Both solve problems on several threads (`solve_each`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np

from evenmatch.alignment.assignment import map_in_threads
from evenmatch.alignment.batching import MAX_ITERATIONS, should_use_loops, track_array_time
from evenmatch.errors import InputError, MissingExtraError
from evenmatch.registry import check_settings, register
from evenmatch.registry.parts import check_at_most
from evenmatch.types import Alignment, Array, Problem

MAX_PIVOTS = 1_000_000
_CHUNK_SIZE = 32  # problems that a thread solves at a time

# Within these limits every product of a kernel and two scalings is far from underflow.
MAX_EXPONENT = 100.0
_MIN_MASS = 1e-50

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
        simplex = network_simplex()

        def solve(problem: Problem) -> Alignment:
            similarity = np.asarray(problem.similarity, dtype=np.float64)
            h, r = normalize_mass(problem.row_mass), normalize_mass(problem.col_mass)
            r *= np.add.reduce(h) / np.add.reduce(r)  # POT needs totals that agree to the last bit
            transposed = len(h) > len(r)  # POT is a sixth faster with the shorter side as sources
            cost = np.negative(similarity.T if transposed else similarity, order="C")
            sides = (r, h) if transposed else (h, r)
            plan, *_, status = simplex(*sides, cost, MAX_PIVOTS, 1)
            rows, cols = plan_to_shares(plan.T if transposed else plan, h, r)
            return Alignment(rows, cols, exact=status == 1)

        return solve_each(problems, solve, exact=True)


@register("alignment", "sinkhorn")
@dataclass(frozen=True)
class Sinkhorn:
    """Optimal transport with entropy regularisation: smoother than `emd`, and approximate.

    `epsilon` is the strength of the regularisation, on the scale of the similarity. Iteration stops
    when every row's mass is reached within `tolerance`, or after `iterations` steps. Use it where a
    smooth plan is wanted, or for long texts: with numba (extra `fast`) it is faster than `emd` from
    about 32 units per side. For short texts `emd` is as fast or faster, and exact.
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
        check_at_most(MAX_ITERATIONS, iterations=self.iterations)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem, by compiled loops once that pays (see `batching.py`)."""
        if should_use_loops():
            from evenmatch.alignment.compiled import scale_kernel

            return solve_each(problems, partial(self._solve, scale_kernel), exact=False)
        with track_array_time():
            return solve_each(problems, partial(self._solve, _scale_kernel), exact=False)

    def _solve(self, scale: Callable[..., Any], problem: Problem) -> Alignment:
        h, r = normalize_mass(problem.row_mass), normalize_mass(problem.col_mass)
        kernel = np.asarray(problem.similarity, dtype=np.float64) / self.epsilon
        peak, lowest = kernel.max(), min(h[h > 0].min(), r[r > 0].min())
        if peak - kernel.min() <= MAX_EXPONENT and lowest >= _MIN_MASS:
            kernel = np.exp(kernel - peak)
        else:
            scale = _scale_log_kernel
        plan, steps = scale(kernel, h, r, self.iterations, self.tolerance)
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


def solve_each(
    problems: Sequence[Problem], solve: Callable[[Problem], Alignment], *, exact: bool
) -> list[Alignment]:
    """Solve the problems on several threads; one with an empty side has an empty plan."""

    def solve_chunk(chunk: Sequence[Problem]) -> list[Alignment]:
        return [solve(problem) for problem in chunk]

    given = [p for p in problems if np.size(p.similarity)]
    chunks = [given[i : i + _CHUNK_SIZE] for i in range(0, len(given), _CHUNK_SIZE)]
    solved = (a for found in map_in_threads(solve_chunk, chunks, len(chunks)) for a in found)
    return [
        next(solved)
        if np.size(p.similarity)
        else Alignment(np.zeros(np.shape(p.similarity)), np.zeros(np.shape(p.similarity)), exact)
        for p in problems
    ]


def network_simplex() -> Callable[..., Any]:
    """Return POT's compiled network simplex."""
    with _import_lock:
        return _import_simplex()


@cache
def _import_simplex() -> Callable[..., Any]:
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


def _scale_kernel(
    kernel: Array, h: Array, r: Array, iterations: int, tolerance: float
) -> tuple[Array, int]:
    """Scale rows and columns in turn until the plan has the wanted row masses; count the steps."""
    columns = np.ascontiguousarray(kernel.T)
    row_sums = _add_rows(columns)
    for steps in range(1, iterations + 1):
        u = h / row_sums
        v = r / _add_rows(kernel * u[:, None])
        row_sums = _add_rows(columns * v[:, None])
        if steps == iterations or abs(u * row_sums - h).max() < tolerance:
            break
    return u[:, None] * kernel * v, steps


def _add_rows(rows: Array) -> Array:
    """Return the sum of all rows, added one after the other as in `compiled.py`."""
    # A reduction does that too, and faster, unless there is only one column.
    return np.add.reduce(rows) if rows.shape[1] > 1 else np.add.accumulate(rows)[-1]


def _scale_log_kernel(
    kernel: Array, h: Array, r: Array, iterations: int, tolerance: float
) -> tuple[Array, int]:
    """Scale a kernel given as logarithms, where exponentials would underflow."""
    with np.errstate(divide="ignore"):
        log_h, log_r = np.log(h), np.log(r)
    v = np.zeros(r.shape)
    for steps in range(1, iterations + 1):
        u = log_h - log_sum_exp(kernel + v, 1)
        v = log_r - log_sum_exp(kernel + u[:, None], 0)
        plan = np.exp(kernel + u[:, None] + v)
        if steps == iterations or abs(plan.sum(1) - h).max() < tolerance:
            break
    return plan, steps


def log_sum_exp(values: Array, axis: int) -> Array:
    """Return log(sum(exp(values))) without overflow; -inf where all values are -inf."""
    top = values.max(axis, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - safe).sum(axis)) + safe.squeeze(axis)
