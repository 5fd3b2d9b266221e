"""Chosen cells into shares, where a choice may be many-to-one."""

from __future__ import annotations

from evenmatch.alignment.batching import counting, namespace
from evenmatch.types import Array


def best_of_columns(cells: Array) -> Array:
    """The best cell of each column of each matrix, as True among False."""
    return counting(cells.shape[1], cells)[None, :, None] == cells.argmax(1)[:, None, :]


def shares(similarity: Array, chosen: Array) -> tuple[Array, Array]:
    """Each unit's best chosen cell above 0: for the rows of each matrix, and for the columns.

    A unit chosen several times still has one unit of credit to give; a chosen cell that is not
    above 0 gives none, since LiSAScore takes maxima with 0 in place of what is not chosen. Ties go
    to the lower index.
    """
    offered = namespace(similarity).where(chosen & (similarity > 0), similarity, 0.0)
    count, long, short = offered.shape
    matrix = counting(count, offered)[:, None]
    row, col = counting(long, offered)[None, :], counting(short, offered)[None, :]
    return (
        _marked(offered, (matrix, row, offered.argmax(2))),
        _marked(offered, (matrix, offered.argmax(1), col)),
    )


def _marked(offered: Array, best: tuple[Array, ...]) -> Array:
    """1 at the best cell of each unit, where that offers anything."""
    xp = namespace(offered)
    plan = xp.zeros_like(offered)
    plan[best] = xp.sign(offered[best])
    return plan
