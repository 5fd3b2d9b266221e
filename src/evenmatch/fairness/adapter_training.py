"""An adapter trained through a metric: alike scores for counterfactuals, kept scores elsewhere.

What an adapter is trained on, and how long and how hard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenmatch.data.fairness_sets import gender_training_pairs
from evenmatch.errors import DataError, InputError
from evenmatch.fairness.counterfactuals import Counterfactual, counterfactuals, gendered_cases
from evenmatch.fairness.differentiable import Differentiable, TextPair
from evenmatch.models.adapters import REDUCTION_FACTOR, Adapter, new_adapter
from evenmatch.types import Array, Pair

ADAPTER_CHECKPOINT = "halfway.pt"


_CHECKPOINT_EVERY = 50  # steps between two notes of how far it is


_MAX_GRAD_NORM = 1.0


Progress = Callable[[int, int], None]


def train_adapter(
    through: Differentiable,
    material: DebiasData,
    lesson: DebiasSettings,
    folder: Path,
    progress: Progress | None = None,
) -> Adapter:
    """The adapter after all steps; one that was interrupted goes on from its last note.

    The loss is Sun et al.'s (eq. 4 and 5) and one term more: the squared difference of the two
    scores that should be alike, plus the squared changes of scores that should be kept, plus those
    of candidates of the wrong gender against a reference that says the right one.
    """
    import torch

    if not material.counterfactuals or not material.anchors:
        raise InputError("no sentence speaks of a group, or there is no pair; give more sentences")
    adapter = new_adapter(through.dim, through.blocks, factor=lesson.factor, seed=lesson.seed)
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=lesson.rate, weight_decay=0.0)
    before: dict[TextPair, float] = {}
    for step in range(_resume(folder, adapter, optimizer, lesson), lesson.steps):
        loss = _loss(through, material, lesson, adapter, step, before)
        _optimizer_step(loss, optimizer, adapter, lesson.rate * (1 - step / lesson.steps))
        if (step + 1) % _CHECKPOINT_EVERY == 0:
            _save_checkpoint(folder, adapter, optimizer, step + 1, lesson)
        if progress:
            progress(step + 1, lesson.steps)
    (folder / ADAPTER_CHECKPOINT).unlink(missing_ok=True)
    return adapter


def _optimizer_step(loss: Any, optimizer: Any, adapter: Adapter, rate: float) -> None:
    import torch

    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(adapter.parameters(), _MAX_GRAD_NORM)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def _loss(
    through: Differentiable,
    material: DebiasData,
    lesson: DebiasSettings,
    adapter: Adapter,
    step: int,
    before: dict[TextPair, float],
) -> Any:
    import torch

    alike = [
        material.counterfactuals[i]
        for i in sample_indices(len(material.counterfactuals), lesson, step, 0)
    ]
    kept = _select_pairs(
        material.anchors,
        sample_indices(len(material.anchors), lesson, step, 1),
        lesson.anchor_weight,
    )
    minded = _select_pairs(
        material.contrasts,
        sample_indices(max(1, len(material.contrasts)), lesson, step, 2),
        lesson.contrast_weight,
    )
    twins = [(c.original, c.neutral) for c in alike] + [(c.swapped, c.neutral) for c in alike]
    _cache_original_scores(through, [*kept, *minded], before)
    scores = through.scores([*twins, *kept, *minded], adapter)
    known = [before[pair] for pair in (*kept, *minded)]
    wanted = torch.tensor(known, device=scores.device)
    half = len(alike)
    changes = (scores[2 * half :] - wanted) ** 2
    loss = ((scores[:half] - scores[half : 2 * half]) ** 2).mean()
    if kept:
        loss = loss + lesson.anchor_weight * changes[: len(kept)].mean()
    if minded:
        loss = loss + lesson.contrast_weight * changes[len(kept) :].mean()
    return loss


def _select_pairs(pairs: Sequence[TextPair], at: Array, weight: float) -> list[TextPair]:
    return [pairs[i] for i in at] if pairs and weight else []


def _cache_original_scores(
    through: Differentiable, pairs: Sequence[TextPair], before: dict[TextPair, float]
) -> None:
    """What the original gives these pairs, worked out once."""
    import torch

    new = list(dict.fromkeys(pair for pair in pairs if pair not in before))
    if new:
        with torch.no_grad():
            before.update(zip(new, through.scores(new, None).tolist(), strict=True))


def _save_checkpoint(
    folder: Path, adapter: Adapter, optimizer: Any, step: int, lesson: DebiasSettings
) -> None:
    import torch

    state = {"step": step, "lesson": repr(lesson), "optimizer": optimizer.state_dict()}
    state["weights"] = dict(adapter.weights)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f".{ADAPTER_CHECKPOINT}"
    torch.save(state, place)
    place.replace(folder / ADAPTER_CHECKPOINT)


def _resume(folder: Path, adapter: Adapter, optimizer: Any, lesson: DebiasSettings) -> int:
    """How many steps were taken before; the adapter and the optimizer are set to be there."""
    import torch

    place = folder / ADAPTER_CHECKPOINT
    if not place.is_file():
        return 0
    state = torch.load(place, weights_only=True)
    if state["lesson"] != repr(lesson):
        raise DataError(
            f"{place} is from training with other settings; remove it, or give those settings"
        )
    with torch.no_grad():
        for name, weight in adapter.weights.items():
            weight.copy_(state["weights"][name])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DebiasSettings:
    """Steps, examples of each kind a step, the learning rate, and what counts how much.

    `keep` weighs that sentence pairs keep their scores, `mind` that a wrong gender keeps costing;
    that the two candidates of a pair score alike weighs 1.
    """

    steps: int = 400
    batch: int = 16
    rate: float = 1e-3
    anchor_weight: float = 1.0
    contrast_weight: float = 1.0
    factor: int = REDUCTION_FACTOR
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or not self.rate > 0:
            raise InputError(
                "training takes at least 1 step, 1 example a step and a rate above 0, got "
                f"{self.steps}, {self.batch} and {self.rate}"
            )
        if self.anchor_weight < 0 or self.contrast_weight < 0:
            raise InputError(
                f"weights must not be negative, got {self.anchor_weight} and {self.contrast_weight}"
            )


@dataclass(frozen=True, slots=True)
class DebiasData:
    """What should score alike, and what should keep the score it has."""

    counterfactuals: tuple[Counterfactual, ...]
    anchors: tuple[TextPair, ...]
    contrasts: tuple[TextPair, ...]

    def texts(self) -> Iterable[str]:
        """Every text that is trained on."""
        for each in self.counterfactuals:
            yield from (each.original, each.swapped, each.neutral)
        for pair in (*self.anchors, *self.contrasts):
            yield from pair


def build_debias_data(pairs: Sequence[Pair], *, templates: bool = True) -> DebiasData:
    """Sentence pairs as training material, with our own sentences about occupations.

    Scores alike: a sentence and its counterfactual against the neutral one. Kept: the pairs as they
    are. Minded: a counterfactual against what it was made from, and against that one's partner.
    A pair with an empty side teaches nothing and is left out.
    """
    pairs = [p for p in pairs if p.candidate.strip() and all(r.strip() for r in p.references)]
    found = counterfactuals(t for pair in pairs for t in (pair.candidate, *pair.references))
    written = [
        Counterfactual(p.first.candidate, p.second.candidate, p.first.references[0])
        for p in (gender_training_pairs() if templates else ())
    ]
    swapped = [(case.wrong.candidate, case.wrong.references[0]) for case in gendered_cases(pairs)]
    # both ways, since a template's first candidate is always the same group
    turned = [
        texts
        for c in (*found, *written)
        for texts in ((c.swapped, c.original), (c.original, c.swapped))
    ]
    return DebiasData(
        # sentences of our own are few beside those of a corpus, and as many are drawn of them
        tuple(_interleave(found, written)),
        tuple((pair.candidate, pair.references[0]) for pair in pairs),
        tuple(_interleave(swapped, turned)),
    )


def _interleave(one: Sequence[T], other: Sequence[T]) -> list[T]:
    """Both lists, the shorter repeated until it is as long."""
    if not one or not other:
        return [*one, *other]
    most = max(len(one), len(other))
    return [each[i % len(each)] for i in range(most) for each in (one, other)]


def sample_indices(count: int, lesson: DebiasSettings, step: int, kind: int) -> Array:
    """Which examples of a kind a step is shown; the same whenever that step is taken."""
    draw = np.random.default_rng((lesson.seed, step, kind))
    return draw.integers(count, size=lesson.batch)
