"""auction: LiSAScore's refining steps at full strength, as many as the shorter side has units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evenmatch.alignment.batching import Batch, solve_batched
from evenmatch.alignment.credit import best_of_columns, shares
from evenmatch.alignment.refine import check_steps, refined
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
        return solve_batched(problems, self._solve)

    def _solve(self, batch: Batch) -> tuple[Array, Array, Sequence[int]]:
        own: list[int] = batch.short.tolist()
        steps = own if self.iterations == "short" else [self.iterations] * len(own)
        cells = refined(batch.similarity, steps, self.factor)
        return *shares(batch.similarity, best_of_columns(cells)), steps
