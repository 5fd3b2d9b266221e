"""The step behind the recursive methods: a cell loses what its best rivals offer (LiSAScore).

    r[i, j] ← r[i, j] - (best other in row i + best other in column j) / factor

What wins its row and column by a margin pulls away from the rest. The step is linear up to the
choice of rivals: adding a constant to all cells, or scaling them, changes no order in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from evenmatch.alignment.batching import counting, namespace
from evenmatch.alignment.end_to_end import Lying
from evenmatch.errors import InputError
from evenmatch.types import Array

SMALLEST_FACTOR = 1e-6
_ROOM = 60 * math.log(2)  # how far numbers may grow between two rescalings, far from any overflow


def check_steps(name: str, iterations: int, factor: float) -> None:
    """Refuse numbers of steps and divisors that mean nothing."""
    if iterations < 0:
        raise InputError(f"{name}'s iterations must not be negative, got {iterations}")
    if factor < SMALLEST_FACTOR:
        raise InputError(f"{name}'s factor must be at least {SMALLEST_FACTOR}, got {factor}")


def refined(similarity: Array, iterations: Sequence[int], factor: float) -> Array:
    """Matrices (one batch, padded with -inf) after each one's own number of steps.

    `iterations` must not increase along the batch. A matrix is scaled by a power of two before its
    cells outgrow their type: 128 steps at factor 1 overflow single precision.
    """
    cells, _ = rescaled(similarity)
    steps = np.array(iterations)
    for number in range(max(iterations, default=0)):
        live = int((steps > number).sum())
        if number and number % steps_between(factor) == 0:
            cells[:live], _ = rescaled(cells[:live])
        step(cells[:live], factor)
    return cells


def looped(
    loops: Callable[..., tuple[Array, Array]], lying: Lying, steps: Sequence[int], factor: float
) -> tuple[Array, Array]:
    """The shares that compiled `loops` give after each matrix's own number of steps."""
    return loops(lying.cells, lying.sizes, np.array(steps), factor, steps_between(factor))


def steps_between(factor: float) -> int:
    """How many steps may be taken from one rescaling to the next."""
    return max(1, int(_ROOM / math.log1p(2 / factor)))


def rescaled(cells: Array) -> tuple[Array, Array]:
    """Each matrix divided by a power of two, which rounds nothing; none exceeds 2 then.

    The powers come along.
    """
    xp = namespace(cells)
    peaks = xp.amax(xp.where(xp.isfinite(cells), abs(cells), 0.0), (1, 2))
    powers = peaks / xp.where(peaks > 0, 2 * xp.frexp(peaks)[0], 1.0)
    powers = xp.where(peaks > 0, powers, 1.0)
    # through one row, which lays the cells in one piece as a step needs them
    return (cells / powers[:, None, None]).reshape(-1).reshape(cells.shape), powers


def step(cells: Array, factor: float) -> None:
    """One step of every matrix, in place; `cells` must lie in one piece.

    Nearly all cells of a line have its best as their rival, so that is subtracted everywhere; the
    best cells themselves, whose rival is the second best, are then set to what they should be.
    """
    xp = namespace(cells)
    count, long, short = cells.shape
    matrix = counting(count, cells)[:, None]
    row, col = counting(long, cells)[None, :], counting(short, cells)[None, :]
    # The best of a column is found in a copy that lays it in one piece, in half the time.
    upright = xp.swapaxes(cells, 1, 2).reshape(-1).reshape(count, short, long)
    right, row_best, row_most, row_next = _offers(cells, factor)
    down, col_best, col_most, col_next = _offers(upright, factor)
    # The best of a row may be the best of its column too, and has the weaker rival there as well.
    its_col, its_row = matrix * short + right, matrix * long + down
    from_col = xp.where(_at(down, its_col) == row, _at(col_next, its_col), _at(col_most, its_col))
    from_row = xp.where(_at(right, its_row) == col, _at(row_next, its_row), _at(row_most, its_row))
    cells -= row_most[:, :, None]
    cells -= col_most[:, None, :]
    flat = cells.reshape(-1)
    flat[(matrix * long + row) * short + right] = row_best - row_next - from_col
    flat[(matrix * long + down) * short + col] = col_best - from_row - col_next


def _offers(lines: Array, factor: float) -> tuple[Array, Array, Array, Array]:
    """Of each line where its best is, how high, what it takes from the others, the second from it.

    Lines are the last dimension, and lie in one piece.
    """
    xp = namespace(lines)
    count, number, length = lines.shape
    # Cells are found by their number in the whole batch, which is faster than by three indexes.
    flat, start = lines.reshape(-1), counting(count * number, lines).reshape(count, number) * length
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


def _at(values: Array, number: Array) -> Array:
    return values.reshape(-1)[number]
