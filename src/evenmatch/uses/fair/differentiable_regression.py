"""Scores of a model that reads two texts side by side, with a gradient through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evenmatch.scoring.regression import Regression
from evenmatch.scoring.regression_model import Read
from evenmatch.types import Pair, Run
from evenmatch.uses.fair.lesson import Texts
from evenmatch.uses.fair.padded import padded, there
from evenmatch.vectors.adapter import Adapter, inserted
from evenmatch.vectors.adapter_headed import HeadedBlocks


@dataclass(frozen=True, eq=False)
class DifferentiableRegression:
    """A regression metric over a model of one's own, and the pairs it has read so far."""

    metric: Regression
    headed: HeadedBlocks
    label: str
    read: dict[Texts, Read] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.headed.module.config.hidden_size)

    @property
    def blocks(self) -> int:
        """How many blocks an adapter stands behind."""
        return len(self.headed.stack)

    def scores(self, pairs: Sequence[Texts], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        self._prepare([pair for pair in dict.fromkeys(pairs) if pair not in self.read])
        inputs = [self.read[pair].inputs for pair in pairs]
        model = self.headed.module
        given = {
            name: padded([own[name] for own in inputs], model.device, self._filler(name))
            for name in inputs[0]
        }
        seen = there([own["input_ids"] for own in inputs], model.device)
        with inserted(self.headed, adapter):
            return model(**given, attention_mask=seen).logits.float().reshape(-1)

    def _filler(self, name: str) -> int:
        return (self.headed.module.config.pad_token_id or 0) if name == "input_ids" else 0

    def _prepare(self, pairs: Sequence[Texts]) -> None:
        sides = [next(self.metric.sides(Pair(c, (r,)))) for c, r in pairs]
        self.read.update(zip(pairs, self.metric.reading()(sides), strict=True))


def through_regression(metric: Regression, run: Run) -> DifferentiableRegression:
    """The metric ready to be trained through."""
    headed = metric.headed(run.device)
    return DifferentiableRegression(metric, headed.fresh(), headed.checkpoint.label)
