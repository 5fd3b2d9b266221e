"""The LiSAScore solvers, `sinkhorn` and `unbalanced` as compiled loops over cells (numba).

They take a fifth of the time that arrays take, because a matrix stays in the CPU's nearest cache
from its first step to its shares. Sums are computed in the same order as with arrays, so the
results are the same to the last bit; read the algorithms in `lisa.py` and `transport.py`.

- `refine_and_choose` serves `recursive`, `auction` and `topk`; `row_mask_plans` serves `row_mask`.
  Both take packed matrices: the cells of all matrices in one flat array, and their sizes (long
  side, short side). The long side is the rows.
- `scale_kernel` serves `sinkhorn` and `scale_unbalanced` `unbalanced`, one matrix at a time; the
  latter takes powers, which agree with numpy's except for the last bit.

Importing this module imports numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from evenmatch.types import Array

F = TypeVar("F", bound=Callable[..., Any])


def jit_compile(function: F) -> F:
    """Compile a function at its first call and store the machine code for later processes."""
    from numba import njit

    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # neither the module's folder nor the user's cache folder is writable
        return cast(F, njit(nogil=True, error_model="numpy")(function))


@jit_compile
def refine_and_choose(
    cells: Array, sizes: Array, steps: Array, factor: float, rescale_every: int, top_cells: bool
) -> tuple[Array, Array]:
    """Refine each matrix; then choose the best cell of each column (unit of the short side).

    With `top_cells`, choose the highest cells instead, as many as the short side has units. Returns
    the shares of the long side's and of the short side's units, packed like `cells`.
    """
    by_long, by_short = np.zeros(cells.size), np.zeros(cells.size)
    stop = 0
    for k in range(len(sizes)):
        long, short = sizes[k]
        start, stop = stop, stop + long * short
        similarity = cells[start:stop].reshape(long, short)
        refined = _refine_matrix(similarity, steps[k], factor, rescale_every)
        if top_cells:
            chosen = refined > _highest_left_out(refined, short)
        else:
            chosen = np.zeros((long, short), np.bool_)
            for j in range(short):
                chosen[refined[:, j].argmax(), j] = True
        _assign_credit(similarity, chosen, by_long[start:stop], by_short[start:stop])
    return by_long, by_short


@jit_compile
def row_mask_plans(cells: Array, sizes: Array, taken: float) -> Array:
    """Pair the units of each matrix by row masking; returns 0/1 plans packed like `cells`.

    The plans are one-to-one, so they are the shares of both sides' units. `taken` is written over
    the cells of a partner that is no longer available.
    """
    plan = np.zeros(cells.size)
    stop = 0
    for k in range(len(sizes)):
        long, short = sizes[k]
        start, stop = stop, stop + long * short
        similarity = cells[start:stop].reshape(long, short)
        lines = np.ascontiguousarray((similarity - similarity.min()).T)
        for line, cell in enumerate(_choose_partners(lines, taken)):
            plan[start + cell * short + line] = 1.0
    return plan


@jit_compile
def scale_kernel(
    kernel: Array, h: Array, r: Array, iterations: int, tolerance: float
) -> tuple[Array, int]:
    """Return the transport plan of one matrix and the steps taken, as `transport._scale_kernel`.

    Inner loops run along rows in memory and add to all sums in turn, so that they are vectorised.
    """
    long, short = kernel.shape
    columns = kernel.T.copy()
    u, v, row_sums, col_sums = np.empty(long), np.ones(short), np.empty(long), np.empty(short)
    _add_scaled_rows(columns, v, row_sums)
    steps = 0
    while True:
        steps += 1
        for i in range(long):
            u[i] = h[i] / row_sums[i]
        _add_scaled_rows(kernel, u, col_sums)
        for j in range(short):
            v[j] = r[j] / col_sums[j]
        _add_scaled_rows(columns, v, row_sums)
        error = 0.0
        for i in range(long):
            error = max(error, abs(u[i] * row_sums[i] - h[i]))
        if error < tolerance or steps >= iterations:
            break
    plan = np.empty((long, short))
    for i in range(long):
        for j in range(short):
            plan[i, j] = u[i] * kernel[i, j] * v[j]
    return plan, steps


@jit_compile
def scale_unbalanced(
    kernel: Array, h: Array, r: Array, power: float, iterations: int, tolerance: float
) -> tuple[Array, int]:
    """Return the plan of one matrix and the steps taken, as `partial._scale_unbalanced`."""
    m, n = kernel.shape
    columns = kernel.T.copy()
    u, v, row_sums, col_sums = np.ones(m), np.ones(n), np.empty(m), np.empty(n)
    steps, changed = 0, True
    while changed and steps < iterations:
        steps += 1
        changed = False
        _add_scaled_rows(columns, r * v, row_sums)
        for i in range(m):
            before, u[i] = u[i], row_sums[i] ** -power
            changed = changed or abs(u[i] - before) > tolerance * u[i]
        _add_scaled_rows(kernel, h * u, col_sums)
        for j in range(n):
            v[j] = col_sums[j] ** -power
    plan = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            plan[i, j] = h[i] * u[i] * kernel[i, j] * (r[j] * v[j])
    return plan, steps


@jit_compile
def _add_scaled_rows(rows: Array, factors: Array, sums: Array) -> None:
    sums[:] = 0.0
    for i in range(rows.shape[0]):
        factor = factors[i]
        for j in range(rows.shape[1]):
            sums[j] += rows[i, j] * factor


# Refinement: r[i, j] ← r[i, j] - (best other in row i + best other in column j) / factor


@jit_compile
def _refine_matrix(similarity: Array, steps: int, factor: float, rescale_every: int) -> Array:
    """Return the matrix after `steps` steps, rescaled at the start and every `rescale_every`."""
    cells = similarity.copy()
    long, short = cells.shape
    rows, cols, scratch = np.empty((3, long)), np.empty((3, short)), np.empty((4, short))
    _rescale(cells)
    for number in range(steps):
        if number and number % rescale_every == 0:
            _rescale(cells)
        _find_rivals(cells, rows, cols, scratch, factor)
        _subtract_penalties(cells, rows, cols)
    return cells


@jit_compile
def _rescale(cells: Array) -> None:
    """Divide by the power of two that brings the largest absolute value into [1, 2)."""
    peak = 0.0
    for x in cells.flat:
        if abs(x) > peak:
            peak = abs(x)
    if peak > 0:
        cells /= math.ldexp(1.0, math.frexp(peak)[1] - 1)


@jit_compile
def _find_rivals(cells: Array, rows: Array, cols: Array, scratch: Array, factor: float) -> None:
    """Write for each row and column: its best value, and the penalties by its best and second best.

    The best cell of a line penalises all others in the line; the second best penalises the best.
    """
    long, short = cells.shape
    for i in range(long):
        best = second = -np.inf
        for j in range(short):
            best, second = _best_two(best, second, cells[i, j])
        rows[0, i], rows[1, i], rows[2, i] = best, _penalty(best, factor), _penalty(second, factor)
    last = _best_in_columns(cells, scratch)
    for j in range(short):
        best, second = scratch[last, j], scratch[last + 2, j]
        cols[0, j], cols[1, j], cols[2, j] = best, _penalty(best, factor), _penalty(second, factor)


@jit_compile
def _best_in_columns(cells: Array, scratch: Array) -> int:
    """Return the row of `scratch` with the best of each column; the second best is two rows below.

    Each row of cells reads the running values from one row of `scratch` and writes them to
    another. Updated in place, only the values that change would be stored, and such selective
    stores are slow.
    """
    long, short = cells.shape
    scratch[0] = scratch[2] = -np.inf
    for i in range(long):
        old, new = i % 2, 1 - i % 2
        for j in range(short):
            scratch[new, j], scratch[new + 2, j] = _best_two(
                scratch[old, j], scratch[old + 2, j], cells[i, j]
            )
    last: int = long % 2
    return last


@jit_compile
def _best_two(best: float, second: float, x: float) -> tuple[float, float]:
    """Update the two highest values with `x`."""
    lower = best if best < x else x
    return best if best > x else x, second if second > lower else lower


@jit_compile
def _subtract_penalties(cells: Array, rows: Array, cols: Array) -> None:
    """Subtract from every cell the penalties by its rivals in its row and in its column.

    The position of the best cell is not needed: any cell equal to the best value gets the second
    best as its rival, and on a tie the second best has the same value.
    """
    long, short = cells.shape
    for i in range(long):
        row_best, by_best, by_second = rows[0, i], rows[1, i], rows[2, i]
        for j in range(short):
            x, col_by_best, col_by_second = cells[i, j], cols[1, j], cols[2, j]
            left = x - (by_second if x == row_best else by_best)
            cells[i, j] = left - (col_by_second if x == cols[0, j] else col_by_best)


@jit_compile
def _penalty(rival: float, factor: float) -> float:
    """Return what a rival subtracts; a line of one cell has no rival (-inf) and no penalty."""
    return rival / factor if rival > -np.inf else 0.0


# Choosing cells, and giving credit for them


@jit_compile
def _highest_left_out(cells: Array, count: int) -> float:
    """Return the highest cell after the `count` highest; -inf if there is none."""
    highest = np.full(count + 1, -np.inf)  # the highest values so far, in ascending order
    for x in cells.flat:
        if x > highest[0]:
            at = 0
            while at < count and highest[at + 1] < x:
                highest[at] = highest[at + 1]
                at += 1
            highest[at] = x
    return float(highest[0])


@jit_compile
def _assign_credit(similarity: Array, chosen: Array, by_long: Array, by_short: Array) -> None:
    """As `lisa.credit_shares`: 1 at each unit's best chosen cell above 0, on ties the first."""
    long, short = similarity.shape
    row_best, col_best = np.zeros(long), np.zeros(short)
    row_at, col_at = np.empty(long, np.int64), np.empty(short, np.int64)
    for i in range(long):
        for j in range(short):
            if chosen[i, j]:
                if similarity[i, j] > row_best[i]:
                    row_best[i], row_at[i] = similarity[i, j], j
                if similarity[i, j] > col_best[j]:
                    col_best[j], col_at[j] = similarity[i, j], i
    for i in range(long):
        if row_best[i] > 0:
            by_long[i * short + row_at[i]] = 1.0
    for j in range(short):
        if col_best[j] > 0:
            by_short[col_at[j] * short + j] = 1.0


# Row masking


@jit_compile
def _choose_partners(lines: Array, taken: float) -> Array:
    """Return the partner (cell) of each line; overwrites `lines`."""
    count = len(lines)
    partner, regret = np.zeros(count, np.int64), np.empty(count)
    best, second = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        best[i], second[i], regret[i] = _find_regret(lines[i], taken)
    for _ in range(count):
        line = regret.argmax()
        cell = best[line]
        partner[line] = cell
        regret[line] = -np.inf  # this line is done
        for i in range(count):
            lines[i, cell] = taken
            if regret[i] > -np.inf and (best[i] == cell or second[i] == cell):
                best[i], second[i], regret[i] = _find_regret(lines[i], taken)
    return partner


@jit_compile
def _find_regret(line: Array, taken: float) -> tuple[int, int, float]:
    """Return the indexes of the best and second-best cell, and the difference of their values."""
    best = second = 0
    top = runner_up = 2 * taken
    for j in range(len(line)):
        if line[j] > top:
            second, runner_up = best, top
            best, top = j, line[j]
        elif line[j] > runner_up:
            second, runner_up = j, line[j]
    return best, second, top - runner_up
