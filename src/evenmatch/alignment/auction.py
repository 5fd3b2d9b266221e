"""auction: LiSAScore's refining steps at full strength, as many as the shorter side has units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenmatch.alignment.batching import Batch, solve_batched
from evenmatch.alignment.credit import best_of_columns, shares
from evenmatch.alignment.end_to_end import Lying
from evenmatch.alignment.refine import check_steps, looped, refined
from evenmatch.registry import check_settings, register
from evenmatch.types import Alignment, Array, Problem


@register("solver", "auction")
@dataclass(frozen=True)
class Auction:
    """Refine at full strength, then let each unit of the shorter side take its best cell.

    `iterations` 'short' takes as many steps as the shorter side has units (Mander & Phillips
    2024); they divide what rivals offer by `factor`. One-to-one on most matrices without ties.
    """

    iterations: int | Literal["short"] = "short"
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_settings(self)
        check_steps("auction", 0 if self.iterations == "short" else self.iterations, self.factor)

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """All problems of like size at once, whatever they are on."""
        return solve_batched(problems, self._solve, self._loop)

    def _solve(self, batch: Batch) -> tuple[Array, Array, Sequence[int]]:
        steps = self._steps(batch.short)
        cells = refined(batch.similarity, steps, self.factor)
        return *shares(batch.similarity, best_of_columns(cells)), steps

    def _loop(self, lying: Lying) -> tuple[Array, Array, Sequence[int]]:
        from evenmatch.alignment.refine_loops import take_best

        steps = self._steps(lying.sizes[:, 1])
        return *looped(take_best, lying, steps, self.factor), steps

    def _steps(self, short: Array) -> list[int]:
        own: list[int] = short.tolist()
        return own if self.iterations == "short" else [self.iterations] * len(own)
