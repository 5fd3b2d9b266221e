"""Row masking as loops over cells, compiled: the same pairs as `alignment.row_mask` finds."""

from __future__ import annotations

import numpy as np

from evenmatch.alignment.loops import compiled
from evenmatch.types import Array


@compiled
def partners(lines: Array, short: Array, used: float) -> Array:
    """For each line the cell it is paired with; `lines` is used up."""
    count, most, _ = lines.shape
    partner = np.zeros((count, most), np.int64)
    best, second, lead = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    for k in range(count):
        for i in range(short[k]):
            best[i], second[i], lead[i] = _lead(lines[k, i], used)
        for _ in range(short[k]):
            line = lead[: short[k]].argmax()
            cell = best[line]
            partner[k, line] = cell
            lead[line] = -np.inf
            for i in range(short[k]):
                lines[k, i, cell] = used
                if lead[i] > -np.inf and (best[i] == cell or second[i] == cell):
                    best[i], second[i], lead[i] = _lead(lines[k, i], used)
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
