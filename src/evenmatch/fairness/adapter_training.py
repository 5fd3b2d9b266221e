"""Training of a debiasing adapter through a metric (Sun et al., 2022, eq. 4 and 5).

The adapter is trained so that a sentence and its counterfactual score the same against a neutral
reference, while all other scores stay as they are. Read `DebiasSettings` and `DebiasData` first,
then `build_debias_data` (the training data) and `train_adapter` (the loop).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from evenmatch.data.fairness_sets import template_pairs
from evenmatch.errors import InputError
from evenmatch.fairness.counterfactuals import Counterfactual, counterfactuals, gendered_cases
from evenmatch.fairness.differentiable import Differentiable, TextPair
from evenmatch.models.adapters import REDUCTION_FACTOR, Adapter, new_adapter
from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.loop import History, run_training_loop
from evenmatch.types import Pair

_MAX_GRAD_NORM = 1.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DebiasSettings:
    """Settings of debiasing: number of steps, batch size, learning rate and weights of the loss.

    `batch` is the number of examples of each kind in a step. The learning rate falls linearly to 0.
    `anchor_weight` is the weight of keeping the scores of sentence pairs, `contrast_weight` of
    keeping the penalty for a wrong gender; the equal scores of counterfactuals have weight 1.
    `factor` is the hidden size divided by the width of the adapter's bottleneck.
    """

    steps: int = 400
    batch: int = 16
    rate: float = 1e-3
    anchor_weight: float = 1.0
    contrast_weight: float = 1.0
    factor: int = REDUCTION_FACTOR
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, steps=self.steps, batch=self.batch)
        check_positive(rate=self.rate)
        check_at_least(0, anchor_weight=self.anchor_weight, contrast_weight=self.contrast_weight)


@dataclass(frozen=True, slots=True)
class DebiasData:
    """Training data: counterfactuals to score the same, and pairs whose scores must not change.

    `anchors` are ordinary sentence pairs. `contrasts` are candidates with the wrong gender beside
    references that state the gender: they must go on scoring lower.
    """

    counterfactuals: tuple[Counterfactual, ...]
    anchors: tuple[TextPair, ...]
    contrasts: tuple[TextPair, ...]


def build_debias_data(pairs: Sequence[Pair], *, templates: bool = True) -> DebiasData:
    """Build training data from sentence pairs, with `templates` also from built-in sentences.

    Counterfactuals: each sentence that mentions a group, swapped, and neutralised as the reference.
    Anchors: the pairs themselves. Contrasts: a swapped sentence against its original and against
    the original's reference. Pairs with an empty side are left out. The built-in sentences are
    about occupations.
    """
    pairs = [p for p in pairs if p.candidate.strip() and all(r.strip() for r in p.references)]
    found = counterfactuals(t for pair in pairs for t in (pair.candidate, *pair.references))
    written = [
        Counterfactual(p.first.candidate, p.second.candidate, p.first.references[0])
        for p in (template_pairs("lessons") if templates else ())
    ]
    swapped = [(wrong.candidate, wrong.references[0]) for _, wrong in gendered_cases(pairs)]
    # in both directions, because a template's first candidate is always of the same group
    both_directions = [
        texts
        for c in (*found, *written)
        for texts in ((c.swapped, c.original), (c.original, c.swapped))
    ]
    return DebiasData(
        # the built-in sentences are far fewer than a corpus's; sample both equally often
        tuple(_interleave(found, written)),
        tuple((pair.candidate, pair.references[0]) for pair in pairs),
        tuple(_interleave(swapped, both_directions)),
    )


def train_adapter(
    through: Differentiable,
    data: DebiasData,
    settings: DebiasSettings,
    checkpoint: CheckpointFile | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Adapter:
    """Train an adapter for all steps; resume from the checkpoint if there is one.

    The loss is that of Sun et al. (2022, eq. 4 and 5) with one additional term. It is the sum of

    - the mean squared difference between the scores of a sentence and of its counterfactual,
    - the mean squared change of the scores of anchor pairs, times `anchor_weight`,
    - the mean squared change of the scores of contrasts (a candidate with the wrong gender against
      a reference that states the gender), times `contrast_weight`.
    """
    import torch

    if not data.counterfactuals or not data.anchors:
        raise InputError(
            "no sentence mentions a group, or there are no sentence pairs; give more sentences"
        )
    adapter = new_adapter(through.dim, through.blocks, factor=settings.factor, seed=settings.seed)
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=settings.rate, weight_decay=0.0)

    def step(number: int) -> tuple[Any, float]:
        anchor_weight, contrast_weight = settings.anchor_weight, settings.contrast_weight
        twins = _sample(data.counterfactuals, settings, number, 0)
        anchors = _sample(data.anchors, settings, number, 1) if anchor_weight else []
        contrasts = _sample(data.contrasts, settings, number, 2) if contrast_weight else []
        originals = [(c.original, c.neutral) for c in twins]
        swapped = [(c.swapped, c.neutral) for c in twins]
        unchanged = [*anchors, *contrasts]
        scores = through.scores([*originals, *swapped, *unchanged], adapter)
        # Computed again in every step: the rounding of a score depends on the other texts of its
        # batch, so scores cached from earlier steps would make a resumed run differ.
        with torch.no_grad():
            targets = through.scores(unchanged, None) if unchanged else scores[:0]
        half = len(twins)
        changes = (scores[2 * half :] - targets) ** 2
        loss = ((scores[:half] - scores[half : 2 * half]) ** 2).mean()
        if anchors:
            loss = loss + anchor_weight * changes[: len(anchors)].mean()
        if contrasts:
            loss = loss + contrast_weight * changes[len(anchors) :].mean()
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
    return [items[i] for i in draw.integers(len(items), size=settings.batch)] if items else []


def _interleave(one: Sequence[T], other: Sequence[T]) -> list[T]:
    """Alternate between the items of both lists; the shorter list is repeated."""
    if not one or not other:
        return [*one, *other]
    longest = max(len(one), len(other))
    return [each[i % len(each)] for i in range(longest) for each in (one, other)]
