"""The training loop of catSeq: steps, evaluations, early stopping and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.errors import InputError
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.keyphrases.catseq import CatSeq

# The loss of a step to minimise, and the number to record in the history.
Step: TypeAlias = Callable[[int], tuple[Any, float]]


@dataclass(frozen=True, slots=True)
class CatSeqTrainingSettings:
    """Epochs, examples per step, learning rate, and when to evaluate and stop.

    Every `look_every` steps the model is evaluated on validation documents. With `halve`, the
    learning rate is halved when the result does not exceed the best so far; after `patience` such
    evaluations training ends. The model with the best evaluation is kept.
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
    """A number per step so far, and (step, quality) of each evaluation."""

    step_values: list[float] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    ended: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the history as stored in checkpoints and history files."""
        return {"told": self.step_values, "looks": self.evaluations, "ended": self.ended}

    @property
    def best(self) -> tuple[int, float]:
        """The evaluation with the highest quality, the first of ties."""
        return max(self.evaluations, key=lambda each: each[1])

    @property
    def non_improving(self) -> int:
        """The number of evaluations that did not exceed the best one before them."""
        best, count = -math.inf, 0
        for _, quality in self.evaluations:
            count += quality <= best
            best = max(best, quality)
        return count


@dataclass(frozen=True)
class CatSeqCheckpointer:
    """The checkpoint of a training run; one with another recipe is refused."""

    path: Path
    recipe: Mapping[str, Any]
    save_every: int = 100  # steps between checkpoints

    def save(self, model: CatSeq, optimizer: Any, best: Any, history: CatSeqHistory) -> None:
        """Write the state after the last step."""
        state = {
            "model": model.parts.state_dict(),
            "optimizer": optimizer.state_dict(),
            "best": best,
            "history": history.to_dict(),
        }
        CheckpointFile(self.path, self.recipe).write(state)

    def load(self, model: CatSeq, optimizer: Any) -> tuple[Any, CatSeqHistory]:
        """Restore model and optimizer; return the best weights so far, and the history."""
        found = CheckpointFile(self.path, self.recipe).read(_parse_state)
        if found is None:
            return _copy_weights(model), CatSeqHistory()
        state, history = found
        model.parts.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["best"], history


def _parse_state(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], CatSeqHistory]:
    kept = state["history"]
    evaluations = [(step, quality) for step, quality in kept["looks"]]
    return state, CatSeqHistory(kept["told"], evaluations, kept["ended"])


def run_catseq_loop(
    model: CatSeq,
    settings: CatSeqTrainingSettings,
    checkpointer: CatSeqCheckpointer,
    *,
    steps: int,
    step: Step,
    evaluate: Callable[[], float],
    should_stop: Callable[[], bool] = lambda: False,
) -> CatSeqHistory:
    """Take the remaining steps, and leave the model with its best weights.

    `should_stop` is called after every step; when it returns True, the run is saved and paused,
    and its history has not `ended`. A step must depend on its number and the weights alone, so
    that resuming changes nothing.
    """
    import torch

    optimizer = torch.optim.Adam(model.parts.parameters(), lr=settings.rate)
    best, history = checkpointer.load(model, optimizer)
    if not history.evaluations:
        history.evaluations.append((0, evaluate()))
    while not history.ended:
        loss, value = step(len(history.step_values))
        _optimizer_step(model, optimizer, loss, settings.clip)
        history.step_values.append(value)
        number = len(history.step_values)
        if number % settings.look_every == 0 or number == steps:
            best = _record_evaluation(model, optimizer, settings, history, evaluate(), best)
            history.ended = number == steps or history.non_improving >= settings.patience
        paused = should_stop()
        if history.ended or paused or number % checkpointer.save_every == 0:
            checkpointer.save(model, optimizer, best, history)
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
    settings: CatSeqTrainingSettings,
    history: CatSeqHistory,
    quality: float,
    best: Any,
) -> Any:
    """Record an evaluation and return the best weights, which may be the current ones."""
    better = quality > history.best[1]
    history.evaluations.append((len(history.step_values), quality))
    if better:
        return _copy_weights(model)
    if settings.halve:
        for group in optimizer.param_groups:
            group["lr"] /= 2
    return best


def _copy_weights(model: CatSeq) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.parts.state_dict().items()}
