"""Approximate one-to-one alignment with the four methods of LiSAScore (Mander & Phillips 2024).

An exact assignment (`lsa`) solves one matrix at a time. These methods come close to its total and
consist of a few simple steps that run on many matrices at once. There are two ideas:

- Row masking (`row_mask`): pair units one at a time, beginning with the unit that would lose most
  by taking its second choice. This is Vogel's approximation method.
- Refinement (`recursive`, `topk`, `auction`): repeat the step

      r[i, j] ← r[i, j] - (best other in row i + best other in column j) / factor

  A cell that wins its row and its column by a margin pulls away from the rest. Then choose cells
  by their refined value and give each unit the credit of its best chosen cell. For a fixed choice
  of rivals the step is linear: adding a constant to all cells, or scaling them, does not change
  the final order.

Read the four solvers first, then row masking, refinement, and the choice of cells. Here every
matrix has its long side as rows (see `batching.PaddedBatch`); a "line" is a row or a column.
`compiled.py` holds the same methods as compiled loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenmatch.alignment.batching import (
    MAX_ITERATIONS,
    PaddedBatch,
    SolverResult,
    arange_like,
    array_namespace,
    solve_in_batches,
)
from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.registry.parts import check_at_most
from evenmatch.types import Alignment, Array, Problem

_TAKEN = -1.0  # marks cells of a taken partner in row masking; available cells start at 0

_MIN_FACTOR = 1e-6

# How far (as a logarithm) cells may grow between two rescalings: far from any overflow.
_MAX_LOG_GROWTH = 60 * math.log(2)


@register("alignment", "row_mask")
@dataclass(frozen=True)
class RowMask:
    """Pair units one at a time, by the margin of the best partner over the second best.

    The units of the shorter side choose, those with the widest margin first; ties go to the lower
    index. Gives min(m, n) one-to-one pairs with a total near the greatest (Mander & Phillips 2024,
    the row masking approach; known as Vogel's approximation method).
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align all problems of similar size at once, on the device they are on."""
        return solve_in_batches(problems, self._solve, self._loop)

    def _solve(self, batch: PaddedBatch) -> SolverResult:
        xp = array_namespace(batch.similarity)
        partner = _choose_partners(_short_side_lines(batch), batch)
        rows = arange_like(batch.similarity.shape[1], partner)[None, :, None]
        chosen = (rows == partner[:, None, :]) & batch.present
        plan = xp.where(chosen, xp.ones_like(batch.similarity), 0.0)
        return plan, plan, batch.short.tolist()

    def _loop(self, cells: Array, sizes: Array) -> SolverResult:
        from evenmatch.alignment.compiled import row_mask_plans

        plan = row_mask_plans(cells, sizes, _TAKEN)
        return plan, plan, sizes[:, 1].tolist()


@register("alignment", "recursive")
@dataclass(frozen=True)
class Recursive:
    """Refine the similarities, then let each unit of the shorter side take its best cell.

    Each of the `iterations` steps subtracts a cell's strongest rivals, divided by `factor`
    (Mander & Phillips 2024). Nearly one-to-one, but two units may take the same partner. `legacy`
    reproduces the released code, whose step compared a cell with itself unless the candidate was
    the shorter side: nothing is refined then, which leaves one-sided greedy matching (the paper's
    figure 7).
    """

    iterations: int = 10
    factor: float = 0.8
    legacy: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        _check_refinement("recursive", self.iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align all problems of similar size at once, on the device they are on."""
        return _solve_by_refinement(problems, self.iterations, self.factor, legacy=self.legacy)


@register("alignment", "topk")
@dataclass(frozen=True)
class TopK:
    """Refine the similarities, then take the k highest cells; k is the shorter side's length.

    Each of the `iterations` steps subtracts a cell's strongest rivals, divided by `factor`
    (Mander & Phillips 2024). Not a matching: a unit may be taken several times or never. Cells
    tied with the highest cell left out are left out too, so a matrix of equal similarities aligns
    nothing.
    """

    iterations: int = 10
    factor: float = 10.0

    def __post_init__(self) -> None:
        check_settings(self)
        _check_refinement("topk", self.iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align all problems of similar size at once, on the device they are on."""
        return _solve_by_refinement(problems, self.iterations, self.factor, top_cells=True)


@register("alignment", "auction")
@dataclass(frozen=True)
class Auction:
    """Refine with factor 1, then let each unit of the shorter side take its best cell.

    `iterations='short'` takes as many steps as the shorter side has units; each subtracts a cell's
    strongest rivals, divided by `factor` (Mander & Phillips 2024). One-to-one on most matrices
    without ties.
    """

    iterations: int | Literal["short"] = "short"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self)
        iterations = 0 if self.iterations == "short" else self.iterations
        _check_refinement("auction", iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align all problems of similar size at once, on the device they are on."""
        return _solve_by_refinement(problems, self.iterations, self.factor)


# Row masking


def _short_side_lines(batch: PaddedBatch) -> Array:
    """Return (matrices, short, long): the cells each short-side unit can choose, all at least 0."""
    xp = array_namespace(batch.similarity)
    present = batch.present
    lowest = xp.amin(xp.where(present, batch.similarity, xp.inf), (1, 2))
    shifted = xp.where(present, batch.similarity - lowest[:, None, None], _TAKEN)
    count, long, short = shifted.shape
    # The detour over a flat array makes the cells of each line contiguous in memory.
    return xp.swapaxes(shifted, 1, 2).reshape(-1).reshape(count, short, long)


def _choose_partners(lines: Array, batch: PaddedBatch) -> Array:
    """Return the partner (cell) of each line; overwrites `lines`.

    In each step the line with the greatest regret (best cell minus second best) takes its best
    cell. The regret of another line is recomputed only if one of its two best cells was taken.
    """
    xp = array_namespace(lines)
    count, short, long = lines.shape
    matrix, number = arange_like(count, lines), arange_like(short, lines)[None, :]
    best, second, regret = (a.reshape(count, short) for a in _find_regrets(lines.reshape(-1, long)))
    partner = xp.zeros_like(best)
    # -inf: lines that are done or padding are never chosen, even if all other regrets are 0.
    regret = xp.where(number < batch.short[:, None], regret, -xp.inf)
    steps: list[int] = batch.short.tolist()
    for step in range(steps[0]):
        active = matrix[: sum(total > step for total in steps)]
        line = regret[: len(active)].argmax(1)
        cell = best[active, line]
        partner[active, line] = cell
        regret[active, line] = -xp.inf
        lines[active, :, cell] = _TAKEN
        lost = (best[: len(active)] == cell[:, None]) | (second[: len(active)] == cell[:, None])
        again = xp.where(lost & (regret[: len(active)] > -xp.inf))
        best[again], second[again], regret[again] = _find_regrets(lines[again])
    return partner


def _find_regrets(lines: Array) -> tuple[Array, Array, Array]:
    """Return for each line the index of its best and second-best cell, and their difference."""
    number = arange_like(len(lines), lines)
    best = lines.argmax(1)
    top = lines[number, best]
    lines[number, best] = 2 * _TAKEN
    second = lines.argmax(1)
    regret = top - lines[number, second]
    lines[number, best] = top
    return best, second, regret


# Refinement


def _check_refinement(name: str, iterations: int, factor: float) -> None:
    if iterations < 0:
        raise InputError(f"{name}'s iterations must not be negative, got {iterations}")
    check_at_most(MAX_ITERATIONS, iterations=iterations)
    if factor < _MIN_FACTOR:
        raise InputError(f"{name}'s factor must be at least {_MIN_FACTOR}, got {factor}")


def _solve_by_refinement(
    problems: Sequence[Problem],
    iterations: int | Literal["short"],
    factor: float,
    *,
    top_cells: bool = False,
    legacy: bool = False,
) -> list[Alignment]:
    """Refine, choose the best cell of each column or the highest cells, and give credit."""

    def solve(batch: PaddedBatch) -> SolverResult:
        steps = _step_counts(iterations, batch.short)
        cells = refine_cells(batch.similarity, steps, factor)
        if legacy:
            own = _legacy_cells(batch, steps[0], factor)
            cells = array_namespace(cells).where(batch.transposed[:, None, None], cells, own)
        if top_cells:
            chosen = cells > highest_left_out(cells, batch.short)[:, None, None]
        else:
            best = cells.argmax(1)[:, None, :]
            chosen = arange_like(cells.shape[1], cells)[None, :, None] == best
        return *credit_shares(batch.similarity, chosen), steps

    def loop(cells: Array, sizes: Array) -> SolverResult:
        from evenmatch.alignment.compiled import refine_and_choose

        steps = _step_counts(iterations, sizes[:, 1])
        settings = (np.array(steps), factor, _steps_between_rescaling(factor), top_cells)
        return *refine_and_choose(cells, sizes, *settings), steps

    return solve_in_batches(problems, solve, None if legacy else loop)


def _legacy_cells(batch: PaddedBatch, steps: int, factor: float) -> Array:
    """Return the result of the released code for matrices with no more columns than rows.

    There a cell is its own rival in its row and in its column, so every step multiplies it by
    1 - 2 / factor. Only the sign of that product matters for the order of the cells.
    """
    xp = array_namespace(batch.similarity)
    sign = float(np.sign(1 - 2 / factor)) ** steps
    signed = xp.where(batch.present, batch.similarity, 0.0) * sign
    return xp.where(batch.present, signed, -xp.inf)


def _step_counts(iterations: int | Literal["short"], short: Array) -> list[int]:
    """Return the number of steps of each matrix, given the lengths of their short sides."""
    lengths: list[int] = short.tolist()
    return lengths if iterations == "short" else [iterations] * len(lengths)


def refine_cells(
    similarity: Array,
    iterations: Sequence[int],
    factor: float,
    *,
    on_rescale: Callable[[Array], None] = lambda powers: None,
    on_step: Callable[[Array], None] = lambda cells: None,
) -> Array:
    """Refine a batch of matrices, padded with -inf, each with its own number of steps.

    `iterations` must not increase along the batch. A matrix is scaled by a power of two before its
    cells overflow: 128 steps at factor 1 would overflow single precision. `on_rescale` is called
    with the powers of every rescaling, `on_step` with the cells before every step.
    """
    cells, powers = _rescale(similarity)
    on_rescale(powers)
    steps = np.array(iterations)
    for number in range(max(iterations, default=0)):
        active = int((steps > number).sum())
        if number and number % _steps_between_rescaling(factor) == 0:
            cells[:active], powers = _rescale(cells[:active])
            on_rescale(powers)
        on_step(cells[:active])
        _refine_step(cells[:active], factor)
    return cells


def _refine_step(cells: Array, factor: float) -> None:
    """Take one step of every matrix, in place; `cells` must be contiguous in memory.

    The rival of nearly every cell is the best cell of its line, so that one is subtracted
    everywhere. The best cells themselves, whose rival is the second best, are set afterwards.
    """
    xp = array_namespace(cells)
    count, long, short = cells.shape
    matrix, row, col = cell_indexes(cells)
    # A contiguous copy of the columns halves the time to find the best of each.
    columns = xp.swapaxes(cells, 1, 2).reshape(-1).reshape(count, short, long)
    best_col, row_best, row_by_best, row_by_second = _find_rivals(cells, factor)
    best_row, col_best, col_by_best, col_by_second = _find_rivals(columns, factor)
    # The best cell of a row may also be the best of its column; then its rival in the column is
    # the second best there. The same holds with rows and columns exchanged.
    its_col, its_row = matrix * short + best_col, matrix * long + best_row
    from_col = xp.where(
        _take(best_row, its_col) == row, _take(col_by_second, its_col), _take(col_by_best, its_col)
    )
    from_row = xp.where(
        _take(best_col, its_row) == col, _take(row_by_second, its_row), _take(row_by_best, its_row)
    )
    cells -= row_by_best[:, :, None]
    cells -= col_by_best[:, None, :]
    flat = cells.reshape(-1)
    flat[(matrix * long + row) * short + best_col] = row_best - row_by_second - from_col
    flat[(matrix * long + best_row) * short + col] = col_best - from_row - col_by_second


def _find_rivals(lines: Array, factor: float) -> tuple[Array, Array, Array, Array]:
    """Return for each line: index of the best, its value, penalty by the best and by the second.

    A penalty is a value divided by `factor`: the best penalises all other cells of the line, the
    second best penalises the best. Lines are the last dimension and contiguous in memory.
    """
    xp = array_namespace(lines)
    count, number, length = lines.shape
    # Cells are addressed by their number in the whole batch: faster than with three indexes.
    flat = lines.reshape(-1)
    start = arange_like(count * number, lines).reshape(count, number) * length
    index = lines.argmax(2)
    best = start + index
    first = flat[best]
    flat[best] = -xp.inf
    # numpy's argmax is faster than its max
    second = flat[start + lines.argmax(2)]
    flat[best] = first
    # -inf is a line of one cell, which has no rival, or a line of padding: no penalty
    by_best, by_second = (xp.where(xp.isfinite(x), x, 0.0) / factor for x in (first, second))
    return index, first, by_best, by_second


def _take(values: Array, number: Array) -> Array:
    return values.reshape(-1)[number]


def _rescale(cells: Array) -> tuple[Array, Array]:
    """Divide each matrix by a power of two so that no value exceeds 2; return the powers too.

    Dividing by a power of two is exact.
    """
    xp = array_namespace(cells)
    peaks = xp.amax(xp.where(xp.isfinite(cells), abs(cells), 0.0), (1, 2))
    powers = peaks / xp.where(peaks > 0, 2 * xp.frexp(peaks)[0], 1.0)
    powers = xp.where(peaks > 0, powers, 1.0)
    # The detour over a flat array makes the cells contiguous, as `_refine_step` needs them.
    return (cells / powers[:, None, None]).reshape(-1).reshape(cells.shape), powers


def _steps_between_rescaling(factor: float) -> int:
    """Return how many steps may be taken from one rescaling to the next.

    A step multiplies the largest value by at most 1 + 2 / factor.
    """
    return max(1, int(_MAX_LOG_GROWTH / math.log1p(2 / factor)))


# Choosing cells, and giving credit for them


def highest_left_out(cells: Array, count: Array) -> Array:
    """Return for each matrix the highest cell after its `count` highest; -inf if there is none."""
    flat = cells.reshape(len(cells), -1)
    xp = array_namespace(cells)
    if xp is np:
        # np.partition sorts in ascending order, so padding (-inf) comes first
        at = flat.shape[1] - 1 - count
        found = np.partition(flat, np.unique(at.clip(min=0)), axis=1)
        return np.where(at < 0, -np.inf, found[np.arange(len(flat)), at])
    at = count.clip(max=flat.shape[1] - 1)
    found = flat.topk(int(at.max()) + 1, dim=1).values.gather(1, at[:, None])[:, 0]
    return xp.where(count < flat.shape[1], found, -xp.inf)


def credit_shares(similarity: Array, chosen: Array) -> tuple[Array, Array]:
    """Return the shares of rows and of columns: 1 at each unit's best chosen cell above 0.

    A choice may be many-to-one; a unit that is chosen several times still has one unit of credit
    to give. A chosen cell that is not above 0 gives none, since LiSAScore takes maxima with 0 in
    place of cells that are not chosen. Ties go to the lower index.
    """
    offered = array_namespace(similarity).where(chosen & (similarity > 0), similarity, 0.0)
    matrix, row, col = cell_indexes(offered)
    return (
        _mark_best(offered, (matrix, row, offered.argmax(2))),
        _mark_best(offered, (matrix, offered.argmax(1), col)),
    )


def _mark_best(offered: Array, best: tuple[Array, ...]) -> Array:
    """Return 1 at the best cell of each unit if that cell offers anything, else 0."""
    xp = array_namespace(offered)
    plan = xp.zeros_like(offered)
    plan[best] = xp.sign(offered[best])
    return plan


def cell_indexes(cells: Array) -> tuple[Array, Array, Array]:
    """Return the numbers of the matrices as (n, 1), of the rows and of the columns as (1, n)."""
    matrix, row, col = (arange_like(size, cells) for size in cells.shape)
    return matrix[:, None], row[None, :], col[None, :]
