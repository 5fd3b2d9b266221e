"""The loop of a tuning run: batches, steps, evaluations and checkpoints.

The batch of a step depends on the seed and the step's number alone, so a run that is stopped and
resumed takes the same steps as one that is not.
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

CHECKPOINT_FILE, MODEL_FOLDER = "checkpoint.pt", "model"

# Batches whose examples are sorted by length together, to limit padding.
_SORTED_BATCHES = 20

Step: TypeAlias = Callable[[int], tuple[Any, StepMetrics]]
StepCallback: TypeAlias = Callable[["TuneHistory"], None]


@dataclass
class TuneHistory:
    """The metrics of each step so far, and (step, BLEU) of each evaluation."""

    steps: int
    step_metrics: list[StepMetrics] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    ended: bool = False

    @property
    def best(self) -> tuple[int, float]:
        """The evaluation with the highest BLEU, the first of ties; (0, -inf) before any."""
        return max(self.evaluations, key=lambda each: each[1], default=(0, -math.inf))

    @property
    def since_best(self) -> int:
        """The number of evaluations after the best one."""
        return sum(step > self.best[0] for step, _ in self.evaluations)


@dataclass(frozen=True)
class TuneLoop:
    """The number of steps, and the functions that take a step and evaluate the model.

    A step must depend on its number and the weights alone, so that resuming changes nothing.
    """

    steps: int
    evaluate_every: int
    step: Step
    evaluate: Callable[[], float]


def run_tune_loop(
    policy: Policy,
    settings: TuneSettings,
    checkpointer: TuneCheckpointer,
    loop: TuneLoop,
    *,
    on_step: StepCallback,
    should_stop: Callable[[], bool],
) -> TuneHistory:
    """Take the remaining steps; the best model is saved in the folder `model`.

    `on_step` gets the history after each step; the run pauses when `should_stop` returns True.
    """
    import torch

    policy.model.train()
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=settings.rate)
    history = checkpointer.load(policy, optimizer, loop.steps)
    while not history.ended:
        number = len(history.step_metrics)
        loss, metrics = loop.step(number)
        rate = settings.rate * (1 - number / loop.steps)
        _optimizer_step(policy, optimizer, loss, rate, settings.clip)
        history.step_metrics.append(metrics)
        evaluated = _evaluate_if_due(policy, settings, checkpointer, loop, history)
        paused = should_stop()
        # The best model is written before the checkpoint that records it: a run that is killed
        # between the two evaluates again and writes the same model.
        if evaluated or paused or len(history.step_metrics) % settings.keep_every == 0:
            checkpointer.save(policy, optimizer, history)
        on_step(history)
        if paused:
            break
    return history


@dataclass(frozen=True)
class TuneCheckpointer:
    """The folder of a run, with its state and its best model; another recipe is refused."""

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
        """Restore model and optimizer and return the history; an empty one without a checkpoint."""
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


@dataclass(frozen=True, eq=False)
class TuneExamples:
    """Inputs with their references, and their division into batches."""

    sources: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    batch: int
    every_text: bool
    seed: int

    @cached_property
    def count(self) -> int:
        """The number of examples per epoch."""
        return sum(map(len, self.references)) if self.every_text else len(self.sources)

    @property
    def steps(self) -> int:
        """The number of steps per epoch."""
        return -(-self.count // self.batch)

    def __call__(self, step: int) -> TuneBatch:
        """Return the batch of a step, counted from 0 over all epochs."""
        epoch, within = divmod(step, self.steps)
        chosen = _cached_epoch(self, epoch)[within]
        return TuneBatch(
            tuple(self.sources[i] for i, _ in chosen),
            tuple(self.references[i][k] for i, k in chosen),
            tuple(self.references[i] for i, _ in chosen),
        )

    def epoch_batches(self, epoch: int) -> list[list[tuple[int, int]]]:
        """Return the batches of one epoch as (input, reference) indices.

        Examples are shuffled, then sorted by length within chunks of several batches.
        """
        draw = np.random.default_rng([self.seed, epoch])
        texts = [len(references) for references in self.references]
        if self.every_text:
            pairs = [(i, k) for i, count in enumerate(texts) for k in range(count)]
        else:
            pairs = [(i, int(draw.integers(count))) for i, count in enumerate(texts)]
        mixed = [pairs[i] for i in draw.permutation(len(pairs))]
        chunk_size = self.batch * _SORTED_BATCHES
        batches: list[list[tuple[int, int]]] = []
        for start in range(0, len(mixed), chunk_size):
            chunk = sorted(mixed[start : start + chunk_size], key=self._length)
            split = [chunk[i : i + self.batch] for i in range(0, len(chunk), self.batch)]
            batches += [split[i] for i in draw.permutation(len(split))]
        return batches

    def _length(self, pair: tuple[int, int]) -> int:
        return len(self.references[pair[0]][pair[1]])


def make_tune_examples(graphs: Sequence[GraphText], settings: TuneSettings) -> TuneExamples:
    """Convert graphs to the lines of text that a model reads."""
    return TuneExamples(
        tuple(settings.prefix + each.graph.line for each in graphs),
        tuple(each.references for each in graphs),
        settings.batch,
        settings.every_text,
        settings.seed,
    )


@lru_cache(maxsize=1)
def _cached_epoch(examples: TuneExamples, epoch: int) -> list[list[tuple[int, int]]]:
    return examples.epoch_batches(epoch)


def _evaluate_if_due(
    policy: Policy,
    settings: TuneSettings,
    checkpointer: TuneCheckpointer,
    loop: TuneLoop,
    history: TuneHistory,
) -> bool:
    """Evaluate if the step calls for it, which may end the run; return whether it did."""
    number = len(history.step_metrics)
    last = number == loop.steps
    if not last and number % loop.evaluate_every:
        return False
    _record_evaluation(policy, checkpointer, history, loop.evaluate())
    history.ended = last or history.since_best >= settings.patience
    return True


def _record_evaluation(
    policy: Policy, checkpointer: TuneCheckpointer, history: TuneHistory, quality: float
) -> None:
    better = quality > history.best[1]
    history.evaluations.append((len(history.step_metrics), quality))
    if better:
        policy.save(checkpointer.folder / MODEL_FOLDER)


def _optimizer_step(policy: Policy, optimizer: Any, loss: Any, rate: float, clip: float) -> None:
    import torch

    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    if clip:
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), clip)
    optimizer.step()


def _parse_state(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], TuneHistory]:
    steps = [StepMetrics(*each) for each in state["told"]]
    evaluations = [(step, quality) for step, quality in state["looks"]]
    return state, TuneHistory(state["steps"], steps, evaluations, state["ended"])
