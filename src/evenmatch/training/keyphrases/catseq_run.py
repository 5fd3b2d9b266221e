"""A course of training: step by step, looked at now and then, kept so that it can go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.errors import InputError
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.keyphrases.catseq import CatSeq

# What a step is worth: the loss to go down by, and the number to tell people.
Step: TypeAlias = Callable[[int], tuple[Any, float]]


@dataclass(frozen=True, slots=True)
class CatSeqTrainingSettings:
    """How long and how fast: passes over the examples, examples a step, and the rate.

    After every `look_every` steps the model is judged on other documents. With `halve` the rate is
    halved when it is no better than the best so far; after `patience` such looks the course ends.
    The model as it was at its best is what is kept.
    """

    epochs: int = 20
    batch: int = 12
    rate: float = 1e-3
    look_every: int = 4000
    patience: int = 4
    halve: bool = True
    clip: float = 1.0

    def __post_init__(self) -> None:
        counts = {"epochs": self.epochs, "batch": self.batch, "look_every": self.look_every}
        for name, count in {**counts, "patience": self.patience}.items():
            if count < 1:
                raise InputError(f"{name} must be at least 1, got {count}")
        if not (self.rate > 0 and self.clip > 0):
            raise InputError(f"rate and clip must be above 0, got {self.rate} and {self.clip}")


@dataclass
class CatSeqHistory:
    """What happened so far: a number per step, and (step, quality) at each look."""

    told: list[float] = field(default_factory=list)
    looks: list[tuple[int, float]] = field(default_factory=list)
    ended: bool = False

    @property
    def best(self) -> tuple[int, float]:
        """The look with the highest quality, the first of equals."""
        return max(self.looks, key=lambda look: look[1])

    @property
    def non_improving(self) -> int:
        """How many looks in all were no better than those before them."""
        most, count = -math.inf, 0
        for _, quality in self.looks:
            count += quality <= most
            most = max(most, quality)
        return count


@dataclass(frozen=True)
class CatSeqCheckpointer:
    """The file that a course goes on from; one of another recipe is refused."""

    path: Path
    recipe: Mapping[str, Any]
    save_every: int = 100  # steps between two writings

    def save(self, model: CatSeq, optimizer: Any, best: Any, history: CatSeqHistory) -> None:
        """Write the state after the last step."""
        state = {
            "model": model.parts.state_dict(),
            "optimizer": optimizer.state_dict(),
            "best": best,
            "history": asdict(history),
        }
        CheckpointFile(self.path, self.recipe).write(state)

    def load(self, model: CatSeq, optimizer: Any) -> tuple[Any, CatSeqHistory]:
        """Put model and optimizer where they were; the best weights so far, and the history."""
        found = CheckpointFile(self.path, self.recipe).read(_parse_state)
        if found is None:
            return _copy_weights(model), CatSeqHistory()
        state, history = found
        model.parts.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["best"], history


def _parse_state(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], CatSeqHistory]:
    kept = state["history"]
    looks = [(step, quality) for step, quality in kept["looks"]]
    return state, CatSeqHistory(kept["told"], looks, kept["ended"])


def run_catseq_loop(
    model: CatSeq,
    course: CatSeqTrainingSettings,
    keeper: CatSeqCheckpointer,
    *,
    steps: int,
    step: Step,
    look: Callable[[], float],
    enough: Callable[[], bool] = lambda: False,
) -> CatSeqHistory:
    """Take the steps that have not been taken, and leave the model at its best.

    `enough` is asked after every step; when it says so, the course is kept as it is and has not
    `ended`. Each step must follow from its number alone, so that going on changes nothing.
    """
    import torch

    optimizer = torch.optim.Adam(model.parts.parameters(), lr=course.rate)
    best, history = keeper.load(model, optimizer)
    if not history.looks:
        history.looks.append((0, look()))
    while not history.ended:
        loss, told = step(len(history.told))
        _optimizer_step(model, optimizer, loss, course.clip)
        history.told.append(told)
        number = len(history.told)
        if number % course.look_every == 0 or number == steps:
            best = _record_evaluation(model, optimizer, course, history, look(), best)
            history.ended = number == steps or history.non_improving >= course.patience
        paused = enough()
        if history.ended or paused or number % keeper.save_every == 0:
            keeper.save(model, optimizer, best, history)
        if paused:
            break
    if history.ended:
        model.parts.load_state_dict(best)
    return history


def _optimizer_step(model: CatSeq, optimizer: Any, loss: Any, clip: float) -> None:
    import torch

    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parts.parameters(), clip)
    optimizer.step()


def _record_evaluation(
    model: CatSeq,
    optimizer: Any,
    course: CatSeqTrainingSettings,
    history: CatSeqHistory,
    quality: float,
    best: Any,
) -> Any:
    """Enter a look; gives the best weights, which may be the present ones."""
    better = quality > history.best[1]
    history.looks.append((len(history.told), quality))
    if better:
        return _copy_weights(model)
    if course.halve:
        for group in optimizer.param_groups:
            group["lr"] /= 2
    return best


def _copy_weights(model: CatSeq) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.parts.state_dict().items()}
