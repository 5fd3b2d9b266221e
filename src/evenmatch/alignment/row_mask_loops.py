"""Row masking as loops over cells, compiled: the same pairs as `alignment.row_mask` finds."""

from __future__ import annotations

import numpy as np

from evenmatch.alignment.loops import compiled
from evenmatch.types import Array


@compiled
def pair_off(cells: Array, sizes: Array, used: float) -> Array:
    """The plan of each matrix, all of them end to end; both sides' units share it."""
    plan = np.zeros(cells.size)
    stop = 0
    for k in range(len(sizes)):
        long, short = sizes[k]
        start, stop = stop, stop + long * short
        own = cells[start:stop].reshape(long, short)
        lines = np.ascontiguousarray((own - own.min()).T)
        for line, cell in enumerate(_partners(lines, used)):
            plan[start + cell * short + line] = 1.0
    return plan


@compiled
def _partners(lines: Array, used: float) -> Array:
    """For each line the cell it is paired with; `lines` is used up."""
    count = len(lines)
    partner, lead = np.zeros(count, np.int64), np.empty(count)
    best, second = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        best[i], second[i], lead[i] = _lead(lines[i], used)
    for _ in range(count):
        line = lead.argmax()
        cell = best[line]
        partner[line] = cell
        lead[line] = -np.inf
        for i in range(count):
            lines[i, cell] = used
            if lead[i] > -np.inf and (best[i] == cell or second[i] == cell):
                best[i], second[i], lead[i] = _lead(lines[i], used)
    return partner


@compiled
def _lead(line: Array, used: float) -> tuple[int, int, float]:
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
