"""How large a heat map is, and how small its writing gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

_LARGEST = 14.0  # inches along a side
_CELL = (0.62, 0.42)  # inches, wide and high, where there is room
_LARGE, _SMALL = 10.0, 4.5  # points
_POINTS = 72.0


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a heat map: its units' cells and the writing beside them."""

    cell: float  # inches
    font: float  # points
    step: int  # every how manieth unit is written

    @property
    def points(self) -> float:
        """A cell's size in points."""
        return self.cell * _POINTS


def side(count: int, *, wide: bool) -> Side:
    """Cells shrink once the picture is as large as it may be; then fonts; then labels thin out.

    >>> [round(side(n, wide=True).cell, 2) for n in (3, 60, 500)]
    [0.62, 0.23, 0.03]
    >>> [side(n, wide=True).step for n in (3, 60, 500)]
    [1, 1, 3]
    """
    cell = min(_CELL[0 if wide else 1], _LARGEST / max(count, 1))
    fitting = cell * _POINTS * 0.8
    font = min(_LARGE, max(_SMALL, fitting))
    return Side(cell, font, max(1, math.ceil(font / fitting)))
