"""Training of a debiasing adapter through a metric (Sun et al., 2022, eq. 4 and 5, and two terms).

The adapter is trained so that a sentence and its counterfactual score the same against a neutral
reference and no stereotype is preferred, while a wrong group still costs what it did and all other
scores stay as they are. Read `DebiasSettings` first, then `train_adapter` (the loop); the data is
that of `training_data.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from evenmatch.errors import InputError
from evenmatch.fairness.differentiable import Differentiable
from evenmatch.fairness.training_data import DebiasData
from evenmatch.models.adapters import REDUCTION_FACTOR, Adapter, new_adapter
from evenmatch.registry import check_settings
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.loop import History, run_training_loop

_MAX_GRAD_NORM = 1.0
_TWINS, _ANCHORS, _CONTRASTS, _STEREOTYPES = range(4)  # kinds of examples
_SHARES = (1, 2, 4, 4)  # the batch is divided by it; contrasts and stereotypes come in twos
_DRAWN = (36, 6, 5, 5)  # relative numbers of examples that are drawn beforehand
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DebiasSettings:
    """Settings of debiasing: number of steps, batch size, learning rate and weights of the loss.

    `batch` is the number of counterfactuals in a step; there are half as many of the others.
    The learning rate falls linearly to 0. The equal scores of counterfactuals have weight 1.
    `anchor_weight` is the weight of keeping the scores of sentence pairs, `contrast_weight` of
    keeping the penalty for a wrong group, and `stereotype_weight` of equal differences for opposite
    stereotypes. `factor` is the hidden size divided by the width of the adapter's bottleneck.

    `last_block` puts the adapter behind the last block only, and a step then costs a tenth.
    `examples` is the number of counterfactuals to draw beforehand, with a sixth or less of the
    others; 0 takes all. It limits the texts that have to pass through the model.
    """

    steps: int = 400
    batch: int = 16
    rate: float = 1e-3
    anchor_weight: float = 1.0
    contrast_weight: float = 1.0
    stereotype_weight: float = 1.0
    factor: int = REDUCTION_FACTOR
    seed: int = 0
    last_block: bool = False
    examples: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        check_at_least(1, steps=self.steps, batch=self.batch, factor=self.factor)
        check_positive(rate=self.rate)
        check_at_least(
            0,
            seed=self.seed,
            examples=self.examples,
            anchor_weight=self.anchor_weight,
            contrast_weight=self.contrast_weight,
            stereotype_weight=self.stereotype_weight,
        )


def train_adapter(
    through: Differentiable,
    data: DebiasData,
    settings: DebiasSettings,
    checkpoint: CheckpointFile | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Adapter:
    """Train an adapter for all steps; resume from the checkpoint if there is one.

    The loss has the two terms of Sun et al. (2022, eq. 4 and 5) and two more. It is the sum of

    - the mean absolute difference between the scores of a sentence and of its counterfactual,
    - the mean absolute change of the scores of anchor pairs, times `anchor_weight`,
    - the mean absolute change of the penalty for a wrong group (the score of the right candidate
      minus that of the wrong one, averaged over a contrast for each group), times
      `contrast_weight`,
    - the mean absolute difference between two counterfactuals with opposite stereotypes of the
      difference between their groups, times `stereotype_weight`.

    The paper squares the differences. Bias is measured by their absolute values, and squares are
    dominated by the few pairs that differ most.
    """
    import torch

    if not data.counterfactuals or not data.anchors:
        raise InputError(
            "no sentence mentions a group, or there are no sentence pairs; give more sentences"
        )
    if settings.examples:
        data = _draw_examples(data, settings.examples)
    through.prepare(data.texts)
    adapter = new_adapter(
        through.dim,
        through.blocks,
        first=through.first,
        factor=settings.factor,
        seed=settings.seed,
    )
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=settings.rate, weight_decay=0.0)

    def step(number: int) -> tuple[Any, float]:
        def sample(items: Sequence[T], kind: int, weight: float = 1.0) -> list[T]:
            return _sample(items, settings, number, kind) if weight else []

        twins = sample(data.counterfactuals, _TWINS)
        anchors = sample(data.anchors, _ANCHORS, settings.anchor_weight)
        contrasts = sample(data.contrasts, _CONTRASTS, settings.contrast_weight)
        opposites = sample(data.stereotypes, _STEREOTYPES, settings.stereotype_weight)
        mirrored = [contrast for both in contrasts for contrast in both]
        kept = [
            *anchors,
            *((c.right, c.reference) for c in mirrored),
            *((c.wrong, c.reference) for c in mirrored),
        ]
        compared = [*twins, *(each for both in opposites for each in both)]
        sides = (
            [(c.original, c.neutral) for c in compared],
            [(c.swapped, c.neutral) for c in compared],
        )
        scores = through.scores([*sides[0], *sides[1], *kept], adapter)
        # Computed again in every step: the rounding of a score depends on the other texts of its
        # batch, so scores cached from earlier steps would make a resumed run differ.
        with torch.no_grad():
            targets = through.scores(kept, None) if kept else scores[:0]
        gaps = scores[: len(compared)] - scores[len(compared) : 2 * len(compared)]
        changes = scores[2 * len(compared) :] - targets
        loss = gaps[: len(twins)].abs().mean()
        if anchors:
            loss = loss + settings.anchor_weight * changes[: len(anchors)].abs().mean()
        if contrasts:
            right, wrong = changes[len(anchors) :].chunk(2)
            of_both = (right - wrong).reshape(-1, 2).mean(1)
            loss = loss + settings.contrast_weight * of_both.abs().mean()
        if opposites:
            one, other = gaps[len(twins) :][::2], gaps[len(twins) :][1::2]
            loss = loss + settings.stereotype_weight * (one - other).abs().mean()
        return loss, float(loss.detach())

    def report(history: History[float]) -> None:
        if progress:
            progress(len(history.step_metrics), settings.steps)

    run_training_loop(
        optimizer,
        step,
        steps=settings.steps,
        schedule="linear",
        clip=_MAX_GRAD_NORM,
        checkpoint=checkpoint,
        on_step=report,
    )
    return adapter


def _sample(items: Sequence[T], settings: DebiasSettings, step: int, kind: int) -> list[T]:
    """Sample the examples of one kind for a step; they depend on seed, step and kind alone."""
    draw = np.random.default_rng((settings.seed, step, kind))
    size = -(-settings.batch // _SHARES[kind])
    return [items[i] for i in draw.integers(len(items), size=size)] if items else []


def _draw_examples(data: DebiasData, examples: int) -> DebiasData:
    """A part of the data, the same for every seed."""
    random = np.random.default_rng((0, 99))

    def draw(items: Sequence[T], kind: int) -> tuple[T, ...]:
        size = min(examples * _DRAWN[kind] // _DRAWN[0], len(items))
        return tuple(items[i] for i in random.integers(len(items), size=size)) if items else ()

    return DebiasData(
        draw(data.counterfactuals, _TWINS),
        draw(data.anchors, _ANCHORS),
        draw(data.contrasts, _CONTRASTS),
        draw(data.stereotypes, _STEREOTYPES),
    )
