"""topk: LiSAScore's refining steps, then the highest cells of the whole matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.alignment.batching import Batch, namespace, solve_batched
from evenmatch.alignment.credit import shares
from evenmatch.alignment.end_to_end import Lying
from evenmatch.alignment.refine import check_steps, looped, refined
from evenmatch.registry import check_settings, register
from evenmatch.types import Alignment, Array, Problem


@register("solver", "topk")
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
        return solve_batched(problems, self._solve, self._loop)

    def _solve(self, batch: Batch) -> tuple[Array, Array, Sequence[int]]:
        steps = [self.iterations] * len(batch.similarity)
        cells = refined(batch.similarity, steps, self.factor)
        chosen = cells > highest_left_out(cells, batch.short)[:, None, None]
        return *shares(batch.similarity, chosen), steps

    def _loop(self, lying: Lying) -> tuple[Array, Array, Sequence[int]]:
        from evenmatch.alignment.refine_loops import take_highest

        steps = [self.iterations] * len(lying.sizes)
        return *looped(take_highest, lying, steps, self.factor), steps


def highest_left_out(cells: Array, kept: Array) -> Array:
    """Of each matrix the highest cell after the `kept` highest; -inf where there is none."""
    flat = cells.reshape(len(cells), -1)
    xp = namespace(cells)
    if xp is np:
        # from the front, where the padding comes first
        at = flat.shape[1] - 1 - kept
        found = np.partition(flat, np.unique(at.clip(min=0)), axis=1)
        return np.where(at < 0, -np.inf, found[np.arange(len(flat)), at])
    at = kept.clip(max=flat.shape[1] - 1)
    found = flat.topk(int(at.max()) + 1, dim=1).values.gather(1, at[:, None])[:, 0]
    return xp.where(kept < flat.shape[1], found, -xp.inf)
