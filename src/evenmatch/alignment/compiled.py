"""The refining methods as loops over cells, compiled: a fifth of the time that arrays take.

The same sums in the same order as in `alignment.refine`, so the same numbers to the last bit. A
matrix stays in the processor's nearest cache from its first step to its shares. Nobody has to know
where the best of a line is: whatever is as high has the second best as its rival, which on a tie is
as high too.

Row masking as loops over cells, compiled: the same pairs as `alignment.row_mask` finds.
"""

from __future__ import annotations

import math

import numpy as np

from evenmatch.alignment.batching import jit_compile
from evenmatch.types import Array


@jit_compile
def take_best(
    cells: Array, sizes: Array, steps: Array, factor: float, between: int
) -> tuple[Array, Array]:
    """Refine each matrix; then every unit of its short side takes its best cell."""
    by_long, by_short = np.zeros(cells.size), np.zeros(cells.size)
    stop = 0
    for k in range(len(sizes)):
        long, short = sizes[k]
        start, stop = stop, stop + long * short
        similarity = cells[start:stop].reshape(long, short)
        refined = _refine_matrix(similarity, steps[k], factor, between)
        chosen = np.zeros((long, short), np.bool_)
        for j in range(short):
            chosen[refined[:, j].argmax(), j] = True
        _assign_credit(similarity, chosen, by_long[start:stop], by_short[start:stop])
    return by_long, by_short


@jit_compile
def take_highest(
    cells: Array, sizes: Array, steps: Array, factor: float, between: int
) -> tuple[Array, Array]:
    """Refine each matrix; then its highest cells are taken, as many as its short side has units."""
    by_long, by_short = np.zeros(cells.size), np.zeros(cells.size)
    stop = 0
    for k in range(len(sizes)):
        long, short = sizes[k]
        start, stop = stop, stop + long * short
        similarity = cells[start:stop].reshape(long, short)
        refined = _refine_matrix(similarity, steps[k], factor, between)
        chosen = refined > _highest_left_out(refined, short)
        _assign_credit(similarity, chosen, by_long[start:stop], by_short[start:stop])
    return by_long, by_short


@jit_compile
def _highest_left_out(cells: Array, kept: int) -> float:
    """The highest cell after the `kept` highest, -inf if there is none."""
    highest = np.full(kept + 1, -np.inf)  # seen so far, the lowest of them first
    for x in cells.flat:
        if x > highest[0]:
            at = 0
            while at < kept and highest[at + 1] < x:
                highest[at] = highest[at + 1]
                at += 1
            highest[at] = x
    return float(highest[0])


@jit_compile
def _assign_credit(similarity: Array, chosen: Array, by_long: Array, by_short: Array) -> None:
    """As `alignment.credit` does: each unit's best chosen cell above 0, on ties the first."""
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


@jit_compile
def _refine_matrix(similarity: Array, steps: int, factor: float, between: int) -> Array:
    """The matrix after so many steps, rescaled at first and after each `between`."""
    cells = similarity.copy()
    long, short = cells.shape
    rows, cols, found = np.empty((3, long)), np.empty((3, short)), np.empty((4, short))
    _rescale(cells)
    for number in range(steps):
        if number and number % between == 0:
            _rescale(cells)
        _find_rivals(cells, rows, cols, found, factor)
        _subtract(cells, rows, cols)
    return cells


@jit_compile
def _rescale(cells: Array) -> None:
    peak = 0.0
    for x in cells.flat:
        if abs(x) > peak:
            peak = abs(x)
    if peak > 0:
        cells /= math.ldexp(1.0, math.frexp(peak)[1] - 1)


@jit_compile
def _find_rivals(cells: Array, rows: Array, cols: Array, found: Array, factor: float) -> None:
    """Of each line its best cell, what that takes from the others, and the second best from it."""
    long, short = cells.shape
    for i in range(long):
        best = second = -np.inf
        for j in range(short):
            best, second = _best_two(best, second, cells[i, j])
        rows[0, i], rows[1, i], rows[2, i] = best, _offer(best, factor), _offer(second, factor)
    last = _best_in_columns(cells, found)
    for j in range(short):
        cols[0, j] = found[last, j]
        cols[1, j], cols[2, j] = _offer(found[last, j], factor), _offer(found[last + 2, j], factor)


@jit_compile
def _best_in_columns(cells: Array, found: Array) -> int:
    """Where in `found` the best of each column are, with the second best two lines further down.

    Each row is read from one line and written to another. Written where it was read, a number that
    stays as it is would not be written at all, and to leave out single ones is slow.
    """
    long, short = cells.shape
    found[0] = found[2] = -np.inf
    for i in range(long):
        old, new = i % 2, 1 - i % 2
        for j in range(short):
            found[new, j], found[new + 2, j] = _best_two(
                found[old, j], found[old + 2, j], cells[i, j]
            )
    last: int = long % 2
    return last


@jit_compile
def _best_two(best: float, second: float, x: float) -> tuple[float, float]:
    lower = best if best < x else x
    return best if best > x else x, second if second > lower else lower


@jit_compile
def _subtract(cells: Array, rows: Array, cols: Array) -> None:
    """From every cell what its best rivals in its row and in its column offer."""
    long, short = cells.shape
    for i in range(long):
        best, most, following = rows[0, i], rows[1, i], rows[2, i]
        for j in range(short):
            x, from_best, from_other = cells[i, j], cols[2, j], cols[1, j]
            left = x - (following if x == best else most)
            cells[i, j] = left - (from_best if x == cols[0, j] else from_other)


@jit_compile
def _offer(rival: float, factor: float) -> float:
    """A line of one cell has no rivals in it."""
    return rival / factor if rival > -np.inf else 0.0


@jit_compile
def row_mask_pairs(cells: Array, sizes: Array, used: float) -> Array:
    """The plan of each matrix, all of them end to end; both sides' units share it."""
    plan = np.zeros(cells.size)
    stop = 0
    for k in range(len(sizes)):
        long, short = sizes[k]
        start, stop = stop, stop + long * short
        own = cells[start:stop].reshape(long, short)
        lines = np.ascontiguousarray((own - own.min()).T)
        for line, cell in enumerate(_choose_partners(lines, used)):
            plan[start + cell * short + line] = 1.0
    return plan


@jit_compile
def _choose_partners(lines: Array, used: float) -> Array:
    """For each line the cell it is paired with; `lines` is used up."""
    count = len(lines)
    partner, lead = np.zeros(count, np.int64), np.empty(count)
    best, second = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        best[i], second[i], lead[i] = _find_lead(lines[i], used)
    for _ in range(count):
        line = lead.argmax()
        cell = best[line]
        partner[line] = cell
        lead[line] = -np.inf
        for i in range(count):
            lines[i, cell] = used
            if lead[i] > -np.inf and (best[i] == cell or second[i] == cell):
                best[i], second[i], lead[i] = _find_lead(lines[i], used)
    return partner


@jit_compile
def _find_lead(line: Array, used: float) -> tuple[int, int, float]:
    """The best cell, the second best, and by how much the first is ahead."""
    best = second = 0
    top = following = 2 * used
    for j in range(len(line)):
        if line[j] > top:
            second, following = best, top
            best, top = j, line[j]
        elif line[j] > following:
            second, following = j, line[j]
    return best, second, top - following
