"""Alignments that may leave units unmatched, at a price.

One-to-one assignment and optimal transport match as much as they can, however dissimilar the units
that are left. Here matching has to pay: `partial` matches units only if they are more similar than
its price; `unbalanced` is entropic transport in which mass that is not moved costs a penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evenmatch.alignment.batching import MAX_ITERATIONS, should_use_loops, track_array_time
from evenmatch.alignment.transport import (
    MAX_EXPONENT,
    MAX_PIVOTS,
    log_sum_exp,
    network_simplex,
    normalize_mass,
    plan_to_shares,
    solve_each,
)
from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.registry.parts import check_at_most
from evenmatch.types import Alignment, Array, Problem


@register("alignment", "partial")
@dataclass(frozen=True)
class Partial:
    """Partial optimal transport: match what is more similar than `price`, leave out the rest.

    The plan T ≥ 0 has the greatest sum of T[i, j] (s[i, j] - price), where no unit gives or takes
    more than its mass. Masses are not scaled, unlike under `emd`, so a longer text has more mass.
    Where all masses are equal, this is the one-to-one alignment with the greatest total above the
    price.
    """

    price: float = 0.4

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem exactly: with SciPy where masses are equal, else with POT."""

        def solve(problem: Problem) -> Alignment:
            gains = np.asarray(problem.similarity, dtype=np.float64) - self.price
            np.maximum(gains, 0.0, out=gains)
            h, r = _capacity(problem.row_mass), _capacity(problem.col_mass)
            rows, cols = plan_to_shares(_solve_partial(gains, h, r), h, r)
            return Alignment(rows, cols, exact=False)

        return solve_each(problems, solve, exact=False)


@register("alignment", "unbalanced")
@dataclass(frozen=True)
class Unbalanced:
    """Unbalanced optimal transport with entropy regularisation (Chizat et al. 2018).

    The plan T minimises

        Σ T (1 - s) + price (KL(T 1, h) + KL(Tᵀ 1, r)) + epsilon KL(T, h rᵀ)

    where h and r are the masses of the two sides, each scaled to sum to 1, and KL(x, y) is
    Σ x log(x / y) - x + y. `price` is the cost of mass that one side leaves out. Iteration stops
    when the scaling of every row changes by less than `tolerance` of itself, or after `iterations`
    steps.
    """

    price: float = 0.5
    epsilon: float = 0.05
    iterations: int = 1000
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        check_settings(self)
        for name, value in (("price", self.price), ("epsilon", self.epsilon)):
            if value <= 0:
                raise InputError(f"unbalanced's {name} must be above 0, got {value}")
        if self.iterations < 1:
            raise InputError(f"unbalanced's iterations must be at least 1, got {self.iterations}")
        check_at_most(MAX_ITERATIONS, iterations=self.iterations)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem, by compiled loops once that pays (see `batching.py`)."""
        if should_use_loops():
            from evenmatch.alignment.compiled import scale_unbalanced

            return solve_each(problems, partial(self._solve, scale_unbalanced), exact=False)
        with track_array_time():
            return solve_each(problems, partial(self._solve, _scale_unbalanced), exact=False)

    def _solve(self, scale: Callable[..., Any], problem: Problem) -> Alignment:
        h, r = normalize_mass(problem.row_mass), normalize_mass(problem.col_mass)
        kernel = (np.asarray(problem.similarity, dtype=np.float64) - 1) / self.epsilon
        if abs(kernel).max() <= MAX_EXPONENT:
            kernel = np.exp(kernel)
        else:
            scale = _scale_unbalanced_log
        power = self.price / (self.price + self.epsilon)
        plan, steps = scale(kernel, h, r, power, self.iterations, self.tolerance)
        # A unit may give or take more than its mass, at the same price; its shares still sum to 1.
        rows, cols = plan_to_shares(plan, np.maximum(h, plan.sum(1)), np.maximum(r, plan.sum(0)))
        return Alignment(rows, cols, exact=False, steps=steps)


def _capacity(mass: Array) -> Array:
    """Return masses as they are; if all of them are 0, every unit gets 1."""
    mass = np.asarray(mass, dtype=np.float64)
    if mass.size and (lowest := np.minimum.reduce(mass)) < 0:
        raise InputError(f"a mass must not be negative, got {lowest}")
    return mass if mass.any() else np.ones(mass.shape)


def _solve_partial(gains: Array, h: Array, r: Array) -> Array:
    if (h == h[0]).all() and (r == h[0]).all():
        from scipy.optimize import linear_sum_assignment

        plan = np.zeros(gains.shape)
        cells = linear_sum_assignment(gains, maximize=True)
        plan[cells] = np.where(gains[cells] > 0, h[0], 0.0)
        return plan
    # Mass that stays unmatched goes to one more column, or comes from one more row, for nothing.
    m, n = gains.shape
    costs = np.zeros((m + 1, n + 1))
    np.negative(gains, out=costs[:m, :n])
    sources, sinks = np.append(h, r.sum()), np.append(r, h.sum())
    sinks *= sources.sum() / sinks.sum()  # POT needs totals that agree to the last bit
    plan = network_simplex()(sources, sinks, costs, MAX_PIVOTS, 1)[0][:m, :n]
    return np.where(gains > 0, plan, 0.0)


# Unbalanced transport. The plan is h[i] u[i] kernel[i, j] v[j] r[j]; each step computes one scaling
# from the other: u = (kernel (r v)) ** -power, v = (kernelᵀ (h u)) ** -power.


def _scale_unbalanced(
    kernel: Array, h: Array, r: Array, power: float, iterations: int, tolerance: float
) -> tuple[Array, int]:
    u, v = np.ones(h.shape), np.ones(r.shape)
    for steps in range(1, iterations + 1):
        before, u = u, (kernel @ (r * v)) ** -power
        v = ((h * u) @ kernel) ** -power
        if steps == iterations or (abs(u - before) <= tolerance * u).all():
            break
    return (h * u)[:, None] * kernel * (r * v), steps


def _scale_unbalanced_log(
    exponents: Array, h: Array, r: Array, power: float, iterations: int, tolerance: float
) -> tuple[Array, int]:
    """Scale a kernel given as logarithms, where exponentials would underflow."""
    with np.errstate(divide="ignore"):
        log_h, log_r = np.log(h), np.log(r)
    u, v = np.zeros(h.shape), np.zeros(r.shape)
    for steps in range(1, iterations + 1):
        before, u = u, -power * log_sum_exp(exponents + log_r + v, 1)
        v = -power * log_sum_exp(exponents + (log_h + u)[:, None], 0)
        if steps == iterations or (abs(u - before) <= tolerance).all():
            break
    return np.exp(exponents + (log_h + u)[:, None] + log_r + v), steps
