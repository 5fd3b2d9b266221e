"""The training loop: steps, learning rates, evaluation, early stopping and exact resume.

`run_training_loop` trains every model of the package. A step depends on its number and the weights
alone, so that a run that was stopped, or killed, and resumed is bit for bit one that was not.
`fit_weights` is the loop over batches of rated pairs, with `FitSettings`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from evenmatch.registry.parts import check_at_least, check_positive
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.types import Array

M = TypeVar("M")

Schedule: TypeAlias = Literal["constant", "linear", "warmup", "halve"]

_SORTED_BATCHES = 32  # batches whose examples are sorted by length together, to limit padding
_SIMILAR = 0.7  # lengths of at least this share of the longest one count as similar
_WARMUP_SHARE = 0.1  # the share of steps during which the learning rate rises
_MAX_GRAD_NORM = 1.0


@dataclass
class History(Generic[M]):
    """The metrics of each step so far, and (step, quality) of each evaluation."""

    steps: int
    step_metrics: list[M] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    ended: bool = False

    @property
    def best(self) -> tuple[int, float]:
        """The evaluation with the highest quality, the first of ties; (0, -inf) before any."""
        return max(self.evaluations, key=lambda each: each[1], default=(0, -math.inf))

    @property
    def since_best(self) -> int:
        """The number of evaluations after the best one."""
        return sum(step > self.best[0] for step, _ in self.evaluations)

    @property
    def non_improving(self) -> int:
        """The number of evaluations that did not exceed the best one before them."""
        best, count = -math.inf, 0
        for _, quality in self.evaluations:
            count += not quality > best
            best = max(best, quality)
        return count


@dataclass(frozen=True)
class Evaluation:
    """How and when a model is evaluated, and when that ends training.

    `measure` returns a quality, higher is better; it is called every `every` steps, after the last
    step, and with `at_start` before the first. Training ends when `patience` evaluations did not
    improve: after the best one, or in all, as `rule` says (0 for no limit). The best weights are
    kept in memory and in the checkpoint, and restored at the end; with `save_best`, which is called
    when the model has its best weights so far, they are not.
    """

    measure: Callable[[], float]
    every: int
    patience: int = 0
    rule: Literal["since_best", "non_improving"] = "since_best"
    at_start: bool = False
    save_best: Callable[[], None] | None = None


def run_training_loop(
    optimizer: Any,
    step: Callable[[int], tuple[Any, M]],
    *,
    steps: int,
    schedule: Schedule = "constant",
    clip: float = 0.0,
    evaluation: Evaluation | None = None,
    checkpoint: CheckpointFile | None = None,
    make_metrics: Callable[..., Any] = float,
    on_step: Callable[[History[M]], None] = lambda history: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> History[M]:
    """Take the remaining steps of a run; resume from its checkpoint if there is one.

    The weights are the optimizer's parameters, each group with its full learning rate. `step` maps
    a step's number, counted from 0, to its loss and metrics: a number, or a dataclass of numbers
    that `make_metrics` creates. It must depend on the number and the weights alone. `clip` is the
    largest gradient norm (0 for no limit). `on_step` gets the history after each step; when
    `should_stop` returns True, the run is saved and paused, and its history has not `ended`.
    """
    import torch

    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    rates = [group["lr"] for group in optimizer.param_groups]
    history, best = _resume(checkpoint, optimizer, weights, steps, make_metrics)
    if evaluation and evaluation.at_start and not history.evaluations:
        best = _evaluate(evaluation, history, weights, best)
    while not history.ended:
        number = len(history.step_metrics)
        loss, metrics = step(number)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(weights, clip)
        factor = _RATE_FACTORS[schedule](number, history)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        optimizer.step()
        history.step_metrics.append(metrics)
        history.ended = number + 1 >= steps
        save = history.ended
        if evaluation and (history.ended or (number + 1) % evaluation.every == 0):
            best, save = _evaluate(evaluation, history, weights, best), True
        paused = should_stop()
        # The best model is saved before the checkpoint that records it: a run that is killed
        # between the two evaluates again and saves the same model.
        if checkpoint and (save or paused or (number + 1) % checkpoint.save_every == 0):
            state = {
                "weights": [weight.detach() for weight in weights],
                "optimizer": optimizer.state_dict(),
                "best": best,
                **vars(history),
                "step_metrics": [
                    (each,) if isinstance(each, float) else dataclasses.astuple(each)
                    for each in history.step_metrics
                ],
            }
            checkpoint.write(state)
        on_step(history)
        if paused:
            break
    if history.ended and best is not None:
        _copy_weights(best, weights)
    return history


def _evaluate(
    evaluation: Evaluation, history: History[Any], weights: Sequence[Any], best: list[Any] | None
) -> list[Any] | None:
    """Record an evaluation, which may end the run; return the best weights, if they are kept."""
    quality = evaluation.measure()
    better = quality > history.best[1]
    history.evaluations.append((len(history.step_metrics), quality))
    tried = history.since_best if evaluation.rule == "since_best" else history.non_improving
    history.ended |= 0 < evaluation.patience <= tried
    if better and evaluation.save_best:
        evaluation.save_best()
    elif not evaluation.save_best and (better or best is None):
        return [weight.detach().clone() for weight in weights]
    return best


def _warmup_factor(step: int, history: History[Any]) -> float:
    """Rise during the first tenth of the steps, then fall to 0.

    >>> [_warmup_factor(step, History(20)) for step in (0, 1, 2, 19)]
    [0.5, 1.0, 1.0, 0.05555555555555555]
    """
    steps = history.steps
    warm = max(1, round(_WARMUP_SHARE * steps))
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))


# The learning rate of a step as a share of the full rate.
_RATE_FACTORS: Mapping[Schedule, Callable[[int, History[Any]], float]] = {
    "constant": lambda step, history: 1.0,
    "linear": lambda step, history: 1 - step / history.steps,
    "warmup": _warmup_factor,
    "halve": lambda step, history: 0.5**history.non_improving,
}


def _resume(
    checkpoint: CheckpointFile | None,
    optimizer: Any,
    weights: Sequence[Any],
    steps: int,
    make_metrics: Callable[..., Any],
) -> tuple[History[Any], list[Any] | None]:
    """Restore weights and optimizer; return the history so far and the best weights, if kept."""

    def parse(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], History[Any]]:
        for kept in (state["weights"], state["best"] or state["weights"]):
            if [each.shape for each in kept] != [each.shape for each in weights]:
                raise ValueError("weights of other shapes")
        metrics = [make_metrics(*each) for each in state["step_metrics"]]
        evaluations = [(step, quality) for step, quality in state["evaluations"]]
        return state, History(state["steps"], metrics, evaluations, state["ended"])

    found = checkpoint.read(parse) if checkpoint else None
    if found is None:
        return History(steps), None
    state, history = found
    _copy_weights(state["weights"], weights)
    optimizer.load_state_dict(state["optimizer"])
    return history, state["best"]


def _copy_weights(kept: Sequence[Any], weights: Sequence[Any]) -> None:
    import torch

    with torch.no_grad():
        for weight, value in zip(weights, kept, strict=True):
            weight.copy_(value)


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Epochs, pairs per step, the learning rates of encoder and head, and the random seed."""

    epochs: int = 1
    batch: int = 16
    rate: float = 1e-4
    head_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, epochs=self.epochs, batch=self.batch)
        check_positive(rate=self.rate, head_rate=self.head_rate)


def fit_weights(
    groups: Sequence[dict[str, Any]],
    lengths: Sequence[int],
    settings: FitSettings,
    loss: Callable[[Array], Any],
    *,
    together: Sequence[int] | Array | None = None,
    checkpoint: CheckpointFile | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Train with AdamW on batches of similar length; return the loss of each step.

    `groups` are the optimizer's parameter groups, each with its learning rate, which rises and
    falls linearly; `loss` maps the pair indices of a batch to a scalar tensor. Pairs with the same
    number in `together` are in one batch. `progress` gets the number of pairs done and in total.
    """
    import torch

    draw = np.random.default_rng(settings.seed)
    batches = [
        batch
        for _ in range(settings.epochs)
        for batch in length_grouped_batches(lengths, settings.batch, draw, together=together)
    ]
    done = np.cumsum([len(batch) for batch in batches]).tolist()

    def step(number: int) -> tuple[Any, float]:
        value = loss(batches[number])
        return value, float(value.detach())

    def report(history: History[float]) -> None:
        if progress:
            progress(done[len(history.step_metrics) - 1], done[-1])

    history = run_training_loop(
        torch.optim.AdamW(groups, weight_decay=0.01),
        step,
        steps=len(batches),
        schedule="warmup",
        clip=_MAX_GRAD_NORM,
        checkpoint=checkpoint,
        on_step=report,
    )
    return history.step_metrics


def length_grouped_batches(
    lengths: Sequence[int],
    size: int,
    draw: np.random.Generator,
    sorted_batches: int = _SORTED_BATCHES,
    *,
    together: Sequence[int] | Array | None = None,
) -> Iterator[Array]:
    """Yield batches of indices in random order, each index once, similar lengths together.

    Indices with the same number in `together` are in one batch, which may then exceed `size`.
    """
    numbers = np.arange(len(lengths)) if together is None else np.asarray(together)
    kind = np.unique(numbers, return_inverse=True)[1]
    members = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
    sizes = np.array([np.max(np.asarray(lengths)[each]) for each in members])
    order = draw.permutation(len(members))
    chunk_size = size * sorted_batches
    for chunk in (order[i : i + chunk_size] for i in range(0, len(order), chunk_size)):
        ranked = [members[i] for i in chunk[np.argsort(sizes[chunk], kind="stable")]]
        ends = np.cumsum([len(each) for each in ranked])
        # a new batch begins where the sum so far reaches a multiple of the size
        edges = [*np.flatnonzero(np.diff((ends - 1) // size, prepend=-1)), len(ranked)]
        batches = [np.concatenate(ranked[start:end]) for start, end in pairwise(edges)]
        yield from (batches[i] for i in draw.permutation(len(batches)))


def similar_lengths(lengths: Sequence[int]) -> list[list[int]]:
    """Return groups of indices, longest first, none of them much shorter than its group's first.

    >>> similar_lengths([12, 60, 14, 10, 40])
    [[1], [4], [2, 0, 3]]
    """
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if groups and lengths[row] >= _SIMILAR * lengths[groups[-1][0]]:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def batches_by_step(make: Callable[[int], list[M]]) -> tuple[int, Callable[[int], M]]:
    """Return the number of steps per epoch, and the batch of each step, counted over all epochs.

    `make` returns the batches of an epoch.
    """
    epoch = lru_cache(maxsize=1)(make)
    steps = len(epoch(0))
    return steps, lambda step: epoch(step // steps)[step % steps]


@contextmanager
def training_threads(count: int) -> Iterator[None]:
    """Limit torch to `count` threads inside the context.

    Floating-point sums depend on the number of threads, so interrupted training resumes exactly
    only with the number of threads it was started with.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
