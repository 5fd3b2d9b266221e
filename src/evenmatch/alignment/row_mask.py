"""row_mask: pairs one by one, first where the second choice would cost most (LiSAScore)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenmatch.alignment.batching import Batch, counting, namespace, solve_batched
from evenmatch.alignment.end_to_end import Lying
from evenmatch.registry import register
from evenmatch.types import Alignment, Array, Problem

_USED = -1.0  # below every cell, since those start at 0


@register("solver", "row_mask")
@dataclass(frozen=True)
class RowMask:
    """Pair one by one: next the unit whose best partner is furthest ahead of its second best.

    Units of the shorter side choose, on ties the first; min(m, n) pairs, one-to-one, and a total
    near the greatest (Mander & Phillips 2024, the row masking approach; Vogel's method).
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """All problems of like size at once, whatever they are on."""
        return solve_batched(problems, _solve, _loop)


def _solve(batch: Batch) -> tuple[Array, Array, Sequence[int]]:
    xp = namespace(batch.similarity)
    partner = _partners(_lines(batch), batch)
    rows = counting(batch.similarity.shape[1], partner)[None, :, None]
    chosen = (rows == partner[:, None, :]) & batch.present
    plan = xp.where(chosen, xp.ones_like(batch.similarity), 0.0)
    return plan, plan, batch.short.tolist()


def _loop(lying: Lying) -> tuple[Array, Array, Sequence[int]]:
    from evenmatch.alignment.row_mask_loops import pair_off

    plan = pair_off(lying.cells, lying.sizes, _USED)
    return plan, plan, lying.sizes[:, 1].tolist()


def _lines(batch: Batch) -> Array:
    """(matrices, short, long): what each unit of the short side has to choose from, from 0 up."""
    xp = namespace(batch.similarity)
    present = batch.present
    lowest = xp.amin(xp.where(present, batch.similarity, xp.inf), (1, 2))
    from_zero = xp.where(present, batch.similarity - lowest[:, None, None], _USED)
    count, long, short = from_zero.shape
    # by way of one row, which lays each line's cells side by side
    return xp.swapaxes(from_zero, 1, 2).reshape(-1).reshape(count, short, long)


def _partners(lines: Array, batch: Batch) -> Array:
    """For each line the cell it is paired with; `lines` is used up.

    A line's two best cells are looked up again only when one of them is taken away.
    """
    xp = namespace(lines)
    count, short, long = lines.shape
    matrix, number = counting(count, lines), counting(short, lines)[None, :]
    best, second, lead = (a.reshape(count, short) for a in _leads(lines.reshape(-1, long)))
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
        best[again], second[again], lead[again] = _leads(lines[again])
    return partner


def _leads(lines: Array) -> tuple[Array, Array, Array]:
    """Of each line the best cell, the second best, and by how much the first is ahead."""
    number = counting(len(lines), lines)
    best = lines.argmax(1)
    top = lines[number, best]
    lines[number, best] = 2 * _USED
    second = lines.argmax(1)
    lead = top - lines[number, second]
    lines[number, best] = top
    return best, second, lead
