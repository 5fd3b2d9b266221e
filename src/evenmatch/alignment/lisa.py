"""row_mask: pairs one by one, first where the second choice would cost most (LiSAScore).

recursive: LiSAScore's fixed number of refining steps, then the best of each line.

topk: LiSAScore's refining steps, then the highest cells of the whole matrix.

auction: LiSAScore's refining steps at full strength, as many as the shorter side has units.

The step behind the recursive methods: a cell loses what its best rivals offer (LiSAScore).

    r[i, j] ← r[i, j] - (best other in row i + best other in column j) / factor

What wins its row and column by a margin pulls away from the rest. The step is linear up to the
choice of rivals: adding a constant to all cells, or scaling them, changes no order in the end.

Chosen cells into shares, where a choice may be many-to-one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenmatch.alignment.batching import (
    PackedMatrices,
    PaddedBatch,
    arange_like,
    array_namespace,
    solve_in_batches,
)
from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Alignment, Array, Problem

_USED = -1.0  # below every cell, since those start at 0


@register("alignment", "row_mask")
@dataclass(frozen=True)
class RowMask:
    """Pair one by one: next the unit whose best partner is furthest ahead of its second best.

    Units of the shorter side choose, on ties the first; min(m, n) pairs, one-to-one, and a total
    near the greatest (Mander & Phillips 2024, the row masking approach; Vogel's method).
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """All problems of like size at once, whatever they are on."""
        return solve_in_batches(problems, _solve_row_mask, _loop_row_mask)


def _solve_row_mask(batch: PaddedBatch) -> tuple[Array, Array, Sequence[int]]:
    xp = array_namespace(batch.similarity)
    partner = _choose_partners(_short_side_lines(batch), batch)
    rows = arange_like(batch.similarity.shape[1], partner)[None, :, None]
    chosen = (rows == partner[:, None, :]) & batch.present
    plan = xp.where(chosen, xp.ones_like(batch.similarity), 0.0)
    return plan, plan, batch.short.tolist()


def _loop_row_mask(lying: PackedMatrices) -> tuple[Array, Array, Sequence[int]]:
    from evenmatch.alignment.compiled import row_mask_pairs

    plan = row_mask_pairs(lying.cells, lying.sizes, _USED)
    return plan, plan, lying.sizes[:, 1].tolist()


def _short_side_lines(batch: PaddedBatch) -> Array:
    """(matrices, short, long): what each unit of the short side has to choose from, from 0 up."""
    xp = array_namespace(batch.similarity)
    present = batch.present
    lowest = xp.amin(xp.where(present, batch.similarity, xp.inf), (1, 2))
    from_zero = xp.where(present, batch.similarity - lowest[:, None, None], _USED)
    count, long, short = from_zero.shape
    # by way of one row, which lays each line's cells side by side
    return xp.swapaxes(from_zero, 1, 2).reshape(-1).reshape(count, short, long)


def _choose_partners(lines: Array, batch: PaddedBatch) -> Array:
    """For each line the cell it is paired with; `lines` is used up.

    A line's two best cells are looked up again only when one of them is taken away.
    """
    xp = array_namespace(lines)
    count, short, long = lines.shape
    matrix, number = arange_like(count, lines), arange_like(short, lines)[None, :]
    best, second, lead = (a.reshape(count, short) for a in _find_leads(lines.reshape(-1, long)))
    partner = xp.zeros_like(best)
    # What is done, or only padding, is never chosen again, not even where all other leads are 0.
    lead = xp.where(number < batch.short[:, None], lead, -xp.inf)
    steps: list[int] = batch.short.tolist()
    for step in range(steps[0]):
        live = matrix[: sum(own > step for own in steps)]
        line = lead[: len(live)].argmax(1)
        cell = best[live, line]
        partner[live, line] = cell
        lead[live, line] = -xp.inf
        lines[live, :, cell] = _USED
        lost = (best[: len(live)] == cell[:, None]) | (second[: len(live)] == cell[:, None])
        again = xp.where(lost & (lead[: len(live)] > -xp.inf))
        best[again], second[again], lead[again] = _find_leads(lines[again])
    return partner


def _find_leads(lines: Array) -> tuple[Array, Array, Array]:
    """Of each line the best cell, the second best, and by how much the first is ahead."""
    number = arange_like(len(lines), lines)
    best = lines.argmax(1)
    top = lines[number, best]
    lines[number, best] = 2 * _USED
    second = lines.argmax(1)
    lead = top - lines[number, second]
    lines[number, best] = top
    return best, second, lead


@register("alignment", "recursive")
@dataclass(frozen=True)
class Recursive:
    """Refine the similarities, then let each unit of the shorter side take its best cell.

    `iterations` steps divide what rivals offer by `factor` (Mander & Phillips 2024; see
    `alignment.refine`). Nearly one-to-one, but two units may take the same partner. `legacy` is
    the released code, whose step compared a cell with itself unless the candidate was the shorter
    side: nothing is refined then, and what remains is one-sided greedy (the paper's figure 7).
    """

    iterations: int = 10
    factor: float = 0.8
    legacy: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        check_steps("recursive", self.iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """All problems of like size at once, whatever they are on."""
        return solve_in_batches(problems, self._solve, None if self.legacy else self._loop)

    def _solve(self, batch: PaddedBatch) -> tuple[Array, Array, Sequence[int]]:
        steps = [self.iterations] * len(batch.similarity)
        cells = refine_cells(batch.similarity, steps, self.factor)
        if self.legacy:
            xp = array_namespace(cells)
            cells = xp.where(batch.transposed[:, None, None], cells, self._legacy_cells(batch))
        return *credit_shares(batch.similarity, best_in_columns(cells)), steps

    def _loop(self, lying: PackedMatrices) -> tuple[Array, Array, Sequence[int]]:
        from evenmatch.alignment.compiled import take_best

        steps = [self.iterations] * len(lying.sizes)
        return *run_compiled(take_best, lying, steps, self.factor), steps

    def _legacy_cells(self, batch: PaddedBatch) -> Array:
        """What the released code made of matrices with no more columns than rows.

        A cell that is its own rival twice over is multiplied by 1 - 2 / factor in every step.
        """
        xp = array_namespace(batch.similarity)
        sign = float(np.sign(1 - 2 / self.factor)) ** self.iterations
        kept = xp.where(batch.present, batch.similarity, 0.0) * sign
        return xp.where(batch.present, kept, -xp.inf)


@register("alignment", "topk")
@dataclass(frozen=True)
class TopK:
    """Refine the similarities, then take as many of the highest cells as the shorter side has.

    `iterations` steps divide what rivals offer by `factor` (Mander & Phillips 2024). No matching:
    a unit may be taken often or never. Cells tied at the cut are all left out, so a matrix of
    equal similarities aligns nothing.
    """

    iterations: int = 10
    factor: float = 10.0

    def __post_init__(self) -> None:
        check_settings(self)
        check_steps("topk", self.iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """All problems of like size at once, whatever they are on."""
        return solve_in_batches(problems, self._solve, self._loop)

    def _solve(self, batch: PaddedBatch) -> tuple[Array, Array, Sequence[int]]:
        steps = [self.iterations] * len(batch.similarity)
        cells = refine_cells(batch.similarity, steps, self.factor)
        chosen = cells > highest_left_out(cells, batch.short)[:, None, None]
        return *credit_shares(batch.similarity, chosen), steps

    def _loop(self, lying: PackedMatrices) -> tuple[Array, Array, Sequence[int]]:
        from evenmatch.alignment.compiled import take_highest

        steps = [self.iterations] * len(lying.sizes)
        return *run_compiled(take_highest, lying, steps, self.factor), steps


def highest_left_out(cells: Array, kept: Array) -> Array:
    """Of each matrix the highest cell after the `kept` highest; -inf where there is none."""
    flat = cells.reshape(len(cells), -1)
    xp = array_namespace(cells)
    if xp is np:
        # from the front, where the padding comes first
        at = flat.shape[1] - 1 - kept
        found = np.partition(flat, np.unique(at.clip(min=0)), axis=1)
        return np.where(at < 0, -np.inf, found[np.arange(len(flat)), at])
    at = kept.clip(max=flat.shape[1] - 1)
    found = flat.topk(int(at.max()) + 1, dim=1).values.gather(1, at[:, None])[:, 0]
    return xp.where(kept < flat.shape[1], found, -xp.inf)


@register("alignment", "auction")
@dataclass(frozen=True)
class Auction:
    """Refine at full strength, then let each unit of the shorter side take its best cell.

    `iterations` 'short' takes as many steps as the shorter side has units (Mander & Phillips
    2024); they divide what rivals offer by `factor`. One-to-one on most matrices without ties.
    """

    iterations: int | Literal["short"] = "short"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self)
        check_steps("auction", 0 if self.iterations == "short" else self.iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """All problems of like size at once, whatever they are on."""
        return solve_in_batches(problems, self._solve, self._loop)

    def _solve(self, batch: PaddedBatch) -> tuple[Array, Array, Sequence[int]]:
        steps = self._steps(batch.short)
        cells = refine_cells(batch.similarity, steps, self.factor)
        return *credit_shares(batch.similarity, best_in_columns(cells)), steps

    def _loop(self, lying: PackedMatrices) -> tuple[Array, Array, Sequence[int]]:
        from evenmatch.alignment.compiled import take_best

        steps = self._steps(lying.sizes[:, 1])
        return *run_compiled(take_best, lying, steps, self.factor), steps

    def _steps(self, short: Array) -> list[int]:
        own: list[int] = short.tolist()
        return own if self.iterations == "short" else [self.iterations] * len(own)


SMALLEST_FACTOR = 1e-6


_MAX_LOG_GROWTH = 60 * math.log(
    2
)  # how far numbers may grow between two rescalings, far from any overflow


def check_steps(name: str, iterations: int, factor: float) -> None:
    """Refuse numbers of steps and divisors that mean nothing."""
    if iterations < 0:
        raise InputError(f"{name}'s iterations must not be negative, got {iterations}")
    if factor < SMALLEST_FACTOR:
        raise InputError(f"{name}'s factor must be at least {SMALLEST_FACTOR}, got {factor}")


def refine_cells(similarity: Array, iterations: Sequence[int], factor: float) -> Array:
    """Matrices (one batch, padded with -inf) after each one's own number of steps.

    `iterations` must not increase along the batch. A matrix is scaled by a power of two before its
    cells outgrow their type: 128 steps at factor 1 overflow single precision.
    """
    cells, _ = rescale(similarity)
    steps = np.array(iterations)
    for number in range(max(iterations, default=0)):
        live = int((steps > number).sum())
        if number and number % steps_between_rescaling(factor) == 0:
            cells[:live], _ = rescale(cells[:live])
        refine_step(cells[:live], factor)
    return cells


def run_compiled(
    loops: Callable[..., tuple[Array, Array]],
    lying: PackedMatrices,
    steps: Sequence[int],
    factor: float,
) -> tuple[Array, Array]:
    """The shares that compiled `loops` give after each matrix's own number of steps."""
    return loops(lying.cells, lying.sizes, np.array(steps), factor, steps_between_rescaling(factor))


def steps_between_rescaling(factor: float) -> int:
    """How many steps may be taken from one rescaling to the next."""
    return max(1, int(_MAX_LOG_GROWTH / math.log1p(2 / factor)))


def rescale(cells: Array) -> tuple[Array, Array]:
    """Each matrix divided by a power of two, which rounds nothing; none exceeds 2 then.

    The powers come along.
    """
    xp = array_namespace(cells)
    peaks = xp.amax(xp.where(xp.isfinite(cells), abs(cells), 0.0), (1, 2))
    powers = peaks / xp.where(peaks > 0, 2 * xp.frexp(peaks)[0], 1.0)
    powers = xp.where(peaks > 0, powers, 1.0)
    # through one row, which lays the cells in one piece as a step needs them
    return (cells / powers[:, None, None]).reshape(-1).reshape(cells.shape), powers


def refine_step(cells: Array, factor: float) -> None:
    """One step of every matrix, in place; `cells` must lie in one piece.

    Nearly all cells of a line have its best as their rival, so that is subtracted everywhere; the
    best cells themselves, whose rival is the second best, are then set to what they should be.
    """
    xp = array_namespace(cells)
    count, long, short = cells.shape
    matrix = arange_like(count, cells)[:, None]
    row, col = arange_like(long, cells)[None, :], arange_like(short, cells)[None, :]
    # The best of a column is found in a copy that lays it in one piece, in half the time.
    upright = xp.swapaxes(cells, 1, 2).reshape(-1).reshape(count, short, long)
    right, row_best, row_most, row_next = _find_offers(cells, factor)
    down, col_best, col_most, col_next = _find_offers(upright, factor)
    # The best of a row may be the best of its column too, and has the weaker rival there as well.
    its_col, its_row = matrix * short + right, matrix * long + down
    from_col = xp.where(
        _take(down, its_col) == row, _take(col_next, its_col), _take(col_most, its_col)
    )
    from_row = xp.where(
        _take(right, its_row) == col, _take(row_next, its_row), _take(row_most, its_row)
    )
    cells -= row_most[:, :, None]
    cells -= col_most[:, None, :]
    flat = cells.reshape(-1)
    flat[(matrix * long + row) * short + right] = row_best - row_next - from_col
    flat[(matrix * long + down) * short + col] = col_best - from_row - col_next


def _find_offers(lines: Array, factor: float) -> tuple[Array, Array, Array, Array]:
    """Of each line where its best is, how high, what it takes from the others, the second from it.

    Lines are the last dimension, and lie in one piece.
    """
    xp = array_namespace(lines)
    count, number, length = lines.shape
    # Cells are found by their number in the whole batch, which is faster than by three indexes.
    flat, start = (
        lines.reshape(-1),
        arange_like(count * number, lines).reshape(count, number) * length,
    )
    at = lines.argmax(2)
    best = start + at
    first = flat[best]
    flat[best] = -xp.inf
    # numpy finds where the highest is in less time than how high it is
    second = flat[start + lines.argmax(2)]
    flat[best] = first
    # A line of one cell has no rivals in it, and a line of padding nothing at all.
    most, following = (xp.where(xp.isfinite(x), x, 0.0) / factor for x in (first, second))
    return at, first, most, following


def _take(values: Array, number: Array) -> Array:
    return values.reshape(-1)[number]


def best_in_columns(cells: Array) -> Array:
    """The best cell of each column of each matrix, as True among False."""
    return arange_like(cells.shape[1], cells)[None, :, None] == cells.argmax(1)[:, None, :]


def credit_shares(similarity: Array, chosen: Array) -> tuple[Array, Array]:
    """Each unit's best chosen cell above 0: for the rows of each matrix, and for the columns.

    A unit chosen several times still has one unit of credit to give; a chosen cell that is not
    above 0 gives none, since LiSAScore takes maxima with 0 in place of what is not chosen. Ties go
    to the lower index.
    """
    offered = array_namespace(similarity).where(chosen & (similarity > 0), similarity, 0.0)
    count, long, short = offered.shape
    matrix = arange_like(count, offered)[:, None]
    row, col = arange_like(long, offered)[None, :], arange_like(short, offered)[None, :]
    return (
        _mark_best(offered, (matrix, row, offered.argmax(2))),
        _mark_best(offered, (matrix, offered.argmax(1), col)),
    )


def _mark_best(offered: Array, best: tuple[Array, ...]) -> Array:
    """1 at the best cell of each unit, where that offers anything."""
    xp = array_namespace(offered)
    plan = xp.zeros_like(offered)
    plan[best] = xp.sign(offered[best])
    return plan
