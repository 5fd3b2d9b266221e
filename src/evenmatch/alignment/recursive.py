"""recursive: LiSAScore's fixed number of refining steps, then the best of each line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.alignment.batching import Batch, namespace, solve_batched
from evenmatch.alignment.credit import best_of_columns, shares
from evenmatch.alignment.end_to_end import Lying
from evenmatch.alignment.refine import check_steps, looped, refined
from evenmatch.registry import check_settings, register
from evenmatch.types import Alignment, Array, Problem


@register("solver", "recursive")
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
        return solve_batched(problems, self._solve, None if self.legacy else self._loop)

    def _solve(self, batch: Batch) -> tuple[Array, Array, Sequence[int]]:
        steps = [self.iterations] * len(batch.similarity)
        cells = refined(batch.similarity, steps, self.factor)
        if self.legacy:
            xp = namespace(cells)
            cells = xp.where(batch.turned[:, None, None], cells, self._released(batch))
        return *shares(batch.similarity, best_of_columns(cells)), steps

    def _loop(self, lying: Lying) -> tuple[Array, Array, Sequence[int]]:
        from evenmatch.alignment.refine_loops import take_best

        steps = [self.iterations] * len(lying.sizes)
        return *looped(take_best, lying, steps, self.factor), steps

    def _released(self, batch: Batch) -> Array:
        """What the released code made of matrices with no more columns than rows.

        A cell that is its own rival twice over is multiplied by 1 - 2 / factor in every step.
        """
        xp = namespace(batch.similarity)
        sign = float(np.sign(1 - 2 / self.factor)) ** self.iterations
        kept = xp.where(batch.present, batch.similarity, 0.0) * sign
        return xp.where(batch.present, kept, -xp.inf)
