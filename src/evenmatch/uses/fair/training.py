"""An adapter trained through a metric: alike scores for counterfactuals, kept scores elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, InputError
from evenmatch.types import Array
from evenmatch.uses.fair.differentiable import Differentiable
from evenmatch.uses.fair.lesson import Lesson, Material, Texts, drawn
from evenmatch.vectors.adapter import Adapter, new_adapter

HALFWAY = "halfway.pt"
_EVERY = 50  # steps between two notes of how far it is
_STEEPEST = 1.0

Progress = Callable[[int, int], None]


def train(
    through: Differentiable,
    material: Material,
    lesson: Lesson,
    folder: Path,
    progress: Progress | None = None,
) -> Adapter:
    """The adapter after all steps; one that was interrupted goes on from its last note.

    The loss is Sun et al.'s (eq. 4 and 5) and one term more: the squared difference of the two
    scores that should be alike, plus the squared changes of scores that should be kept, plus those
    of candidates of the wrong gender against a reference that says the right one.
    """
    import torch

    if not material.alike or not material.kept:
        raise InputError("no sentence speaks of a group, or there is no pair; give more sentences")
    adapter = new_adapter(through.dim, through.blocks, factor=lesson.factor, seed=lesson.seed)
    optimizer = torch.optim.AdamW(adapter.parameters(), lr=lesson.rate, weight_decay=0.0)
    before: dict[Texts, float] = {}
    for step in range(_resumed(folder, adapter, optimizer, lesson), lesson.steps):
        loss = _loss(through, material, lesson, adapter, step, before)
        _descend(loss, optimizer, adapter, lesson.rate * (1 - step / lesson.steps))
        if (step + 1) % _EVERY == 0:
            _note(folder, adapter, optimizer, step + 1, lesson)
        if progress:
            progress(step + 1, lesson.steps)
    (folder / HALFWAY).unlink(missing_ok=True)
    return adapter


def _descend(loss: Any, optimizer: Any, adapter: Adapter, rate: float) -> None:
    import torch

    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(adapter.parameters(), _STEEPEST)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def _loss(
    through: Differentiable,
    material: Material,
    lesson: Lesson,
    adapter: Adapter,
    step: int,
    before: dict[Texts, float],
) -> Any:
    import torch

    alike = [material.alike[i] for i in drawn(len(material.alike), lesson, step, 0)]
    kept = _some(material.kept, drawn(len(material.kept), lesson, step, 1), lesson.keep)
    minded = _some(
        material.minded, drawn(max(1, len(material.minded)), lesson, step, 2), lesson.mind
    )
    twins = [(c.original, c.neutral) for c in alike] + [(c.swapped, c.neutral) for c in alike]
    _remember(through, [*kept, *minded], before)
    scores = through.scores([*twins, *kept, *minded], adapter)
    known = [before[pair] for pair in (*kept, *minded)]
    wanted = torch.tensor(known, device=scores.device)
    half = len(alike)
    changes = (scores[2 * half :] - wanted) ** 2
    loss = ((scores[:half] - scores[half : 2 * half]) ** 2).mean()
    if kept:
        loss = loss + lesson.keep * changes[: len(kept)].mean()
    if minded:
        loss = loss + lesson.mind * changes[len(kept) :].mean()
    return loss


def _some(pairs: Sequence[Texts], at: Array, weight: float) -> list[Texts]:
    return [pairs[i] for i in at] if pairs and weight else []


def _remember(through: Differentiable, pairs: Sequence[Texts], before: dict[Texts, float]) -> None:
    """What the original gives these pairs, worked out once."""
    import torch

    new = list(dict.fromkeys(pair for pair in pairs if pair not in before))
    if new:
        with torch.no_grad():
            before.update(zip(new, through.scores(new, None).tolist(), strict=True))


def _note(folder: Path, adapter: Adapter, optimizer: Any, step: int, lesson: Lesson) -> None:
    import torch

    state = {"step": step, "lesson": repr(lesson), "optimizer": optimizer.state_dict()}
    state["weights"] = dict(adapter.weights)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f".{HALFWAY}"
    torch.save(state, place)
    place.replace(folder / HALFWAY)


def _resumed(folder: Path, adapter: Adapter, optimizer: Any, lesson: Lesson) -> int:
    """How many steps were taken before; the adapter and the optimizer are set to be there."""
    import torch

    place = folder / HALFWAY
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
