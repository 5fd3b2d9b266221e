"""The refining steps as loops over cells, compiled: a fifth of the time that whole arrays take.

The same sums in the same order as in `alignment.refine`, so the same numbers to the last bit. A
matrix stays in the processor's nearest cache for all its steps. Nobody has to know where the best
of a line is: whatever is as high has the second best as its rival, which on a tie is as high too.
"""

from __future__ import annotations

import math

import numpy as np

from evenmatch.alignment.loops import compiled
from evenmatch.types import Array


@compiled
def refine(batch: Array, steps: Array, factor: float, between: int) -> None:
    """Every matrix after its own number of steps, in place, rescaled after each `between`."""
    count, long, short = batch.shape
    row_best, row_second = np.empty(long), np.empty(long)
    col_best, col_second = np.empty(short), np.empty(short)
    for k in range(count):
        for number in range(steps[k]):
            if number and number % between == 0:
                _rescale(batch[k])
            _find_best(batch[k], row_best, row_second, col_best, col_second)
            _subtract(batch[k], row_best, row_second, col_best, col_second, factor)


@compiled
def _rescale(cells: Array) -> None:
    peak = 0.0
    for x in cells.flat:
        if x > -np.inf and abs(x) > peak:
            peak = abs(x)
    if peak > 0:
        cells /= math.ldexp(1.0, math.frexp(peak)[1] - 1)


@compiled
def _find_best(
    cells: Array, row_best: Array, row_second: Array, col_best: Array, col_second: Array
) -> None:
    """The two highest cells of each line, -inf where it has fewer."""
    long, short = cells.shape
    col_best[:] = -np.inf
    col_second[:] = -np.inf
    for i in range(long):
        best = second = -np.inf
        for j in range(short):
            x = cells[i, j]
            best, second = _best_two(best, second, x)
            col_best[j], col_second[j] = _best_two(col_best[j], col_second[j], x)
        row_best[i], row_second[i] = best, second


@compiled
def _best_two(best: float, second: float, x: float) -> tuple[float, float]:
    lower = best if best < x else x
    return best if best > x else x, second if second > lower else lower


@compiled
def _subtract(
    cells: Array,
    row_best: Array,
    row_second: Array,
    col_best: Array,
    col_second: Array,
    factor: float,
) -> None:
    """From every cell what its best rivals in its row and in its column offer."""
    long, short = cells.shape
    for i in range(long):
        best, most = row_best[i], _offer(row_best[i], factor)
        following = _offer(row_second[i], factor)
        for j in range(short):
            x = cells[i, j]
            left = x - (following if x == best else most)
            cells[i, j] = left - _offer(col_second[j] if x == col_best[j] else col_best[j], factor)


@compiled
def _offer(rival: float, factor: float) -> float:
    """A line of one cell has no rivals in it, and a line of padding nothing at all."""
    return rival / factor if rival > -np.inf else 0.0
