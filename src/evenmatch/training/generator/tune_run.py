"""Which examples a step learns from: a function of the seed and the step's number alone.

The course of a run: steps, looks at other examples, and a file from which it can go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.graphs import GraphText
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.generator.loss import StepMetrics, TuneBatch
from evenmatch.training.generator.policy import Policy
from evenmatch.training.generator.tune_settings import TuneSettings

# Batches among which examples are sorted by length, so that little is padded.
_SORTED_BATCHES = 20


@dataclass(frozen=True, eq=False)
class TuneExamples:
    """Inputs with their references, and how they come in batches."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    batch: int
    every_text: bool
    seed: int

    @cached_property
    def count(self) -> int:
        """How many examples one pass has."""
        return sum(map(len, self.references)) if self.every_text else len(self.sources)

    @property
    def steps(self) -> int:
        """How many steps one pass takes."""
        return -(-self.count // self.batch)

    def __call__(self, step: int) -> TuneBatch:
        """The batch of a step, counted from 0 over all passes."""
        epoch, within = divmod(step, self.steps)
        chosen = _cached_epoch(self, epoch)[within]
        return TuneBatch(
            tuple(self.sources[i] for i, _ in chosen),
            tuple(self.references[i][k] for i, k in chosen),
            tuple(self.references[i] for i, _ in chosen),
        )

    def epoch_batches(self, epoch: int) -> list[list[tuple[int, int]]]:
        """One pass in batches: shuffled, then sorted by length within portions of it."""
        draw = np.random.default_rng([self.seed, epoch])
        texts = [len(references) for references in self.references]
        if self.every_text:
            pairs = [(i, k) for i, count in enumerate(texts) for k in range(count)]
        else:
            pairs = [(i, int(draw.integers(count))) for i, count in enumerate(texts)]
        mixed = [pairs[i] for i in draw.permutation(len(pairs))]
        portion = self.batch * _SORTED_BATCHES
        batches: list[list[tuple[int, int]]] = []
        for start in range(0, len(mixed), portion):
            near = sorted(mixed[start : start + portion], key=self._length)
            cut = [near[at : at + self.batch] for at in range(0, len(near), self.batch)]
            batches += [cut[i] for i in draw.permutation(len(cut))]
        return batches

    def _length(self, pair: tuple[int, int]) -> int:
        return len(self.references[pair[0]][pair[1]])


@lru_cache(maxsize=1)
def _cached_epoch(examples: TuneExamples, epoch: int) -> list[list[tuple[int, int]]]:
    return examples.epoch_batches(epoch)


def make_tune_examples(graphs: Sequence[GraphText], settings: TuneSettings) -> TuneExamples:
    """Graphs as the lines a model reads."""
    return TuneExamples(
        tuple(settings.prefix + each.graph.line for each in graphs),
        tuple(each.references for each in graphs),
        settings.batch,
        settings.every_text,
        settings.seed,
    )


Step: TypeAlias = Callable[[int], tuple[Any, StepMetrics]]


StepCallback: TypeAlias = Callable[["TuneHistory"], None]


CHECKPOINT_FILE, MODEL_FOLDER = "checkpoint.pt", "model"


@dataclass
class TuneHistory:
    """What happened so far: what each step told, and (step, BLEU) at each look."""

    steps: int
    step_metrics: list[StepMetrics] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    ended: bool = False

    @property
    def best(self) -> tuple[int, float]:
        """The look with the highest BLEU, the first of equals; before any, (0, -inf)."""
        return max(self.evaluations, key=lambda look: look[1], default=(0, -math.inf))

    @property
    def since_best(self) -> int:
        """How many looks came after the best."""
        return sum(step > self.best[0] for step, _ in self.evaluations)


@dataclass(frozen=True)
class TuneCheckpointer:
    """The folder of a run, with its state and its best model; another recipe's is refused."""

    folder: Path
    recipe: Mapping[str, Any]

    def save(self, policy: Policy, optimizer: Any, history: TuneHistory) -> None:
        """Write the state after the last step."""
        self._file.write(
            {
                "model": policy.model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "steps": history.steps,
                "told": [
                    (t.loss, t.cross_entropy, t.reward, t.baseline) for t in history.step_metrics
                ],
                "looks": list(history.evaluations),
                "ended": history.ended,
            }
        )

    def load(self, policy: Policy, optimizer: Any, steps: int) -> TuneHistory:
        """Put model and optimizer where they were; a new history where nothing was kept."""
        found = self._file.read(_parse_state)
        if found is None:
            return TuneHistory(steps)
        state, history = found
        policy.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return history

    @property
    def _file(self) -> CheckpointFile:
        return CheckpointFile(self.folder / CHECKPOINT_FILE, self.recipe)


def _parse_state(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], TuneHistory]:
    told = [StepMetrics(*each) for each in state["told"]]
    looks = [(step, quality) for step, quality in state["looks"]]
    return state, TuneHistory(state["steps"], told, looks, state["ended"])


@dataclass(frozen=True)
class TuneLoop:
    """What a run does at each step and at each look, and how many steps there are.

    Each step must follow from its number and the weights alone, so that going on changes nothing.
    """

    steps: int
    look_every: int
    step: Step
    evaluate: Callable[[], float]


def run_tune_loop(
    policy: Policy,
    settings: TuneSettings,
    keeper: TuneCheckpointer,
    course: TuneLoop,
    *,
    watch: StepCallback,
    enough: Callable[[], bool],
) -> TuneHistory:
    """Take the steps that have not been taken; the model at its best is in the folder `model`.

    `watch` sees the history after each step; when `enough` says so, the run pauses.
    """
    import torch

    policy.model.train()
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=settings.rate)
    history = keeper.load(policy, optimizer, course.steps)
    while not history.ended:
        number = len(history.step_metrics)
        loss, told = course.step(number)
        rate = settings.rate * (1 - number / course.steps)
        _optimizer_step(policy, optimizer, loss, rate, settings.clip)
        history.step_metrics.append(told)
        looked = _evaluate_if_due(policy, settings, keeper, course, history)
        paused = enough()
        # The best model is written before the state that knows of it: who is killed between the
        # two looks again, and writes the same.
        if looked or paused or len(history.step_metrics) % settings.keep_every == 0:
            keeper.save(policy, optimizer, history)
        watch(history)
        if paused:
            break
    return history


def _evaluate_if_due(
    policy: Policy,
    settings: TuneSettings,
    keeper: TuneCheckpointer,
    course: TuneLoop,
    history: TuneHistory,
) -> bool:
    """Whether it was time for a look, which may end the run."""
    number = len(history.step_metrics)
    last = number == course.steps
    if not last and number % course.look_every:
        return False
    _record_evaluation(policy, keeper, history, course.evaluate())
    history.ended = last or history.since_best >= settings.patience
    return True


def _optimizer_step(policy: Policy, optimizer: Any, loss: Any, rate: float, clip: float) -> None:
    import torch

    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    if clip:
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), clip)
    optimizer.step()


def _record_evaluation(
    policy: Policy, keeper: TuneCheckpointer, history: TuneHistory, quality: float
) -> None:
    better = quality > history.best[1]
    history.evaluations.append((len(history.step_metrics), quality))
    if better:
        policy.save(keeper.folder / MODEL_FOLDER)
