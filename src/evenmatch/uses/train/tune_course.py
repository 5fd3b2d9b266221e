"""The course of a run: steps, looks at other examples, and a file from which it can go on."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.rows import appearing
from evenmatch.errors import DataError
from evenmatch.uses.train.tune_loss import Told
from evenmatch.uses.train.tune_policy import Policy
from evenmatch.uses.train.tune_settings import Tuning

Step: TypeAlias = Callable[[int], tuple[Any, Told]]
Watch: TypeAlias = Callable[["History"], None]

CHECKPOINT, MODEL = "checkpoint.pt", "model"
_DAMAGED = (pickle.UnpicklingError, RuntimeError, KeyError, TypeError, EOFError, ValueError)


@dataclass
class History:
    """What happened so far: what each step told, and (step, BLEU) at each look."""

    steps: int
    told: list[Told] = field(default_factory=list)
    looks: list[tuple[int, float]] = field(default_factory=list)
    ended: bool = False

    @property
    def best(self) -> tuple[int, float]:
        """The look with the highest BLEU, the first of equals; before any, (0, -inf)."""
        return max(self.looks, key=lambda look: look[1], default=(0, -math.inf))

    @property
    def since_best(self) -> int:
        """How many looks came after the best."""
        return sum(step > self.best[0] for step, _ in self.looks)


@dataclass(frozen=True)
class Keeper:
    """The folder of a run; `recipe` says what is trained on what, and another is refused."""

    folder: Path
    recipe: Mapping[str, Any]

    def save(self, policy: Policy, optimizer: Any, history: History) -> None:
        """Write the state after the last step, replacing the one before whole or not at all."""
        import torch

        state = {
            "recipe": dict(self.recipe),
            "model": policy.model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "steps": history.steps,
            "told": [(t.loss, t.cross_entropy, t.reward, t.baseline) for t in history.told],
            "looks": list(history.looks),
            "ended": history.ended,
        }
        with appearing(str(self.folder / CHECKPOINT)) as place:
            torch.save(state, place)

    def load(self, policy: Policy, optimizer: Any, steps: int) -> History:
        """Put model and optimizer where they were; a new history where nothing was kept."""
        import torch

        path = self.folder / CHECKPOINT
        for left in self.folder.glob(f".{CHECKPOINT}.*"):
            left.unlink()  # of a process that was killed while it wrote
        if not path.exists():
            return History(steps)
        try:
            state = torch.load(path, weights_only=True)
            same = state["recipe"] == dict(self.recipe)
            told = [Told(*each) for each in state["told"]]
            looks = [(step, quality) for step, quality in state["looks"]]
            history = History(state["steps"], told, looks, state["ended"])
        except _DAMAGED as error:
            raise DataError(
                f"cannot read {path} ({type(error).__name__}); remove it to start again"
            ) from None
        if not same:
            raise DataError(
                f"{path} is from a run with other settings, texts or model; "
                "use those, or another folder as out, or remove it to start again"
            )
        policy.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return history


def take(
    policy: Policy,
    settings: Tuning,
    keeper: Keeper,
    *,
    steps: int,
    look_every: int,
    step: Step,
    look: Callable[[], float],
    watch: Watch,
    enough: Callable[[], bool],
) -> History:
    """Take the steps that have not been taken; the model at its best is in the folder `model`.

    Each step must follow from its number and the weights alone, so that going on changes nothing.
    `watch` sees the history after each step; when `enough` says so, the run pauses.
    """
    import torch

    policy.model.train()
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=settings.rate)
    history = keeper.load(policy, optimizer, steps)
    while not history.ended:
        number = len(history.told)
        loss, told = step(number)
        _descend(policy, optimizer, loss, settings.rate * (1 - number / steps), settings.clip)
        history.told.append(told)
        number += 1
        looked = number % look_every == 0 or number == steps
        if looked:
            _enter(policy, keeper, history, look())
            history.ended = number == steps or history.since_best >= settings.patience
        paused = enough()
        # The best model is written before the checkpoint that knows of it: who is killed between
        # the two looks again, and writes the same.
        if looked or paused or number % settings.keep_every == 0:
            keeper.save(policy, optimizer, history)
        watch(history)
        if paused:
            break
    return history


def _descend(policy: Policy, optimizer: Any, loss: Any, rate: float, clip: float) -> None:
    import torch

    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    if clip:
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), clip)
    optimizer.step()


def _enter(policy: Policy, keeper: Keeper, history: History, quality: float) -> None:
    better = quality > history.best[1]
    history.looks.append((len(history.told), quality))
    if better:
        policy.save(keeper.folder / MODEL)
