"""Alignments that share a unit out: optimal transport between the two sides' masses (F_CONT)."""

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


_CHUNK_SIZE = 32  # problems a thread takes


_import_lock = Lock()  # the import changes what other threads would see of it


_HIDE_TORCH = "POT_BACKEND_DISABLE_PYTORCH"


def normalize_mass(mass: Array) -> Array:
    """Masses scaled to sum to 1; where there is none at all, every unit gets the same.

    >>> normalize_mass(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    mass = np.asarray(mass, dtype=np.float64)
    # The ufuncs' own reductions: on a few numbers the methods take twice as long.
    if mass.size and (lowest := np.minimum.reduce(mass)) < 0:
        raise InputError(f"a mass must not be negative, got {lowest}")
    total = np.add.reduce(mass)
    return mass / total if total > 0 else np.full(mass.shape, 1 / max(mass.size, 1))


def plan_to_shares(plan: Array, row_mass: Array, col_mass: Array) -> tuple[Array, Array]:
    """A transport plan, which is used up, as shares of each row's and each column's own mass."""
    masses = row_mass[:, None], col_mass
    if np.minimum.reduce(row_mass) > 0 < np.minimum.reduce(col_mass):
        rows = plan / masses[0]
        return rows, np.divide(plan, masses[1], out=plan)  # a second array would take as long
    # A unit without mass gets nothing.
    rows, cols = (np.divide(plan, m, out=np.zeros_like(plan), where=m > 0) for m in masses)
    return rows, cols


@cache
def _network_simplex() -> Callable[..., Any]:
    """POT's compiled solver.

    `import ot` imports torch wherever it is installed, which takes seconds and would make an
    alignment of two matrices wait for a deep-learning framework. So torch is hidden from that
    import, and what was imported is forgotten, so that the user's own `import ot` finds torch.
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


@register("alignment", "emd")
@dataclass(frozen=True)
class Emd:
    """The cheapest way to move the candidate's mass onto the reference's, exact.

    Masses are scaled to sum to 1 on each side. With equal masses precision equals recall.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Exact, by POT's network simplex."""
        posed = [_make_transport_problem(p) for p in problems if np.size(p.similarity)]
        portions = [posed[i : i + _CHUNK_SIZE] for i in range(0, len(posed), _CHUNK_SIZE)]
        moved = (
            plan for some in map_in_threads(_solve_chunk, portions, len(portions)) for plan in some
        )
        solved = (_make_alignment(p, *plan) for p, plan in zip(posed, moved, strict=True))
        return [
            next(solved) if np.size(p.similarity) else _empty_alignment(np.shape(p.similarity))
            for p in problems
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _TransportProblem:
    """A problem as POT wants it; `turned` where the candidate's units are its sinks."""

    sources: Array
    sinks: Array
    cost: Array
    transposed: bool


def _make_transport_problem(problem: Problem) -> _TransportProblem:
    similarity = np.asarray(problem.similarity, dtype=np.float64)
    h, r = normalize_mass(problem.row_mass), normalize_mass(problem.col_mass)
    r *= np.add.reduce(h) / np.add.reduce(r)  # POT wants totals that agree to the last bit
    if len(h) <= len(r):
        return _TransportProblem(h, r, np.negative(similarity, order="C"), transposed=False)
    # POT is a sixth faster with the shorter side as its sources
    return _TransportProblem(r, h, np.negative(similarity.T, order="C"), transposed=True)


def _solve_chunk(posed: Sequence[_TransportProblem]) -> list[tuple[Array, int]]:
    """The plan of each, and POT's word on how the search ended; it lets other threads run."""
    with _import_lock:
        solve = _network_simplex()
    found = [solve(p.sources, p.sinks, p.cost, _MAX_PIVOTS, 1) for p in posed]
    return [(plan, status) for plan, _, _, _, status in found]


def _make_alignment(posed: _TransportProblem, plan: Array, status: int) -> Alignment:
    if posed.transposed:
        rows, cols = plan_to_shares(plan.T, posed.sinks, posed.sources)
    else:
        rows, cols = plan_to_shares(plan, posed.sources, posed.sinks)
    return Alignment(rows, cols, exact=status == 1)


def _empty_alignment(shape: tuple[int, ...], *, exact: bool = True) -> Alignment:
    return Alignment(np.zeros(shape), np.zeros(shape), exact=exact)


@register("alignment", "sinkhorn")
@dataclass(frozen=True)
class Sinkhorn:
    """Transport blurred by entropy: smoother than `emd`, and approximate.

    `epsilon` is the blur on the scale of the similarity. Stops when every row's mass is met to
    `tolerance`, or after `iterations`.
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
        """In the log domain, since exp(-1/epsilon) underflows below epsilon = 0.0014."""
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
        while True:
            steps += 1
            u = log_h - _log_sum_exp(kernel + v, 1)
            v = log_r - _log_sum_exp(kernel + u[:, None], 0)
            plan = np.exp(kernel + u[:, None] + v)
            if steps >= self.iterations or abs(plan.sum(1) - h).max() < self.tolerance:
                break
        # Columns are met exactly by the last step; rows only to the tolerance, so cap them.
        rows, cols = plan_to_shares(plan, np.maximum(h, plan.sum(1)), np.maximum(r, plan.sum(0)))
        return Alignment(rows, cols, exact=False, steps=steps)


def _log_sum_exp(values: Array, axis: int) -> Array:
    """log(sum(exp(values))) without overflow; the sum of nothing but zeros is -inf."""
    top = values.max(axis, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - safe).sum(axis)) + safe.squeeze(axis)
