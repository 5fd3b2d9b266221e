"""The course of a run: steps, looks at other examples, and a file from which it can go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.uses.train.state_file import StateFile
from evenmatch.uses.train.tune_loss import Told
from evenmatch.uses.train.tune_policy import Policy
from evenmatch.uses.train.tune_settings import Tuning

Step: TypeAlias = Callable[[int], tuple[Any, Told]]
Watch: TypeAlias = Callable[["History"], None]

CHECKPOINT, MODEL = "checkpoint.pt", "model"


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
    """The folder of a run, with its state and its best model; another recipe's is refused."""

    folder: Path
    recipe: Mapping[str, Any]

    def save(self, policy: Policy, optimizer: Any, history: History) -> None:
        """Write the state after the last step."""
        self._file.write(
            {
                "model": policy.model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "steps": history.steps,
                "told": [(t.loss, t.cross_entropy, t.reward, t.baseline) for t in history.told],
                "looks": list(history.looks),
                "ended": history.ended,
            }
        )

    def load(self, policy: Policy, optimizer: Any, steps: int) -> History:
        """Put model and optimizer where they were; a new history where nothing was kept."""
        found = self._file.read(_taken)
        if found is None:
            return History(steps)
        state, history = found
        policy.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return history

    @property
    def _file(self) -> StateFile:
        return StateFile(self.folder / CHECKPOINT, self.recipe)


def _taken(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], History]:
    told = [Told(*each) for each in state["told"]]
    looks = [(step, quality) for step, quality in state["looks"]]
    return state, History(state["steps"], told, looks, state["ended"])


@dataclass(frozen=True)
class Course:
    """What a run does at each step and at each look, and how many steps there are.

    Each step must follow from its number and the weights alone, so that going on changes nothing.
    """

    steps: int
    look_every: int
    step: Step
    look: Callable[[], float]


def take(
    policy: Policy,
    settings: Tuning,
    keeper: Keeper,
    course: Course,
    *,
    watch: Watch,
    enough: Callable[[], bool],
) -> History:
    """Take the steps that have not been taken; the model at its best is in the folder `model`.

    `watch` sees the history after each step; when `enough` says so, the run pauses.
    """
    import torch

    policy.model.train()
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=settings.rate)
    history = keeper.load(policy, optimizer, course.steps)
    while not history.ended:
        number = len(history.told)
        loss, told = course.step(number)
        rate = settings.rate * (1 - number / course.steps)
        _descend(policy, optimizer, loss, rate, settings.clip)
        history.told.append(told)
        looked = _looked(policy, settings, keeper, course, history)
        paused = enough()
        # The best model is written before the state that knows of it: who is killed between the
        # two looks again, and writes the same.
        if looked or paused or len(history.told) % settings.keep_every == 0:
            keeper.save(policy, optimizer, history)
        watch(history)
        if paused:
            break
    return history


def _looked(
    policy: Policy, settings: Tuning, keeper: Keeper, course: Course, history: History
) -> bool:
    """Whether it was time for a look, which may end the run."""
    number = len(history.told)
    last = number == course.steps
    if not last and number % course.look_every:
        return False
    _enter(policy, keeper, history, course.look())
    history.ended = last or history.since_best >= settings.patience
    return True


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
