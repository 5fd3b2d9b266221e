"""How long and how fast something is trained, and the batches it is shown.

Training on so many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array

_SORTED_BATCHES = 32  # batches whose pairs are sorted by length together, so that little is padding


_WARMUP_SHARE = 0.1  # the share of steps in which the rate rises


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Passes over the pairs, pairs a step, the learning rates of encoder and head, the draw."""

    epochs: int = 1
    batch: int = 16
    rate: float = 1e-4
    head_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise InputError(
                f"training takes at least 1 epoch and 1 pair a batch, got {self.epochs} and "
                f"{self.batch}"
            )
        if not (self.rate > 0 and self.head_rate > 0):
            raise InputError(
                f"learning rates must be above 0, got {self.rate} and {self.head_rate}"
            )


def length_grouped_batches(lengths: Sequence[int], lesson: FitSettings) -> Iterator[Array]:
    """Numbers of pairs, batch by batch, each pair once an epoch, those of like length together."""
    draw = np.random.default_rng(lesson.seed)
    sizes = np.asarray(lengths)
    for _ in range(lesson.epochs):
        order = draw.permutation(len(sizes))
        wide = lesson.batch * _SORTED_BATCHES
        for some in (order[i : i + wide] for i in range(0, len(order), wide)):
            ranked = some[np.argsort(sizes[some], kind="stable")]
            cut = [ranked[i : i + lesson.batch] for i in range(0, len(ranked), lesson.batch)]
            yield from (cut[i] for i in draw.permutation(len(cut)))


def run_training_loop(
    groups: Sequence[dict[str, Any]],
    lengths: Sequence[int],
    lesson: FitSettings,
    loss: Callable[[Array], Any],
    progress: Callable[[int, int], None] | None,
) -> list[float]:
    """Take one step a batch, the rate rising and then falling to 0; the loss of every step."""
    import torch

    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    every = list(length_grouped_batches(lengths, lesson))
    total, done = len(lengths) * lesson.epochs, 0
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_factor(s, len(every)))
    losses = []
    for batch in every:
        value = loss(batch)
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(value.detach()))
        done += len(batch)
        if progress:
            progress(done, total)
    return losses


def _rate_factor(step: int, steps: int) -> float:
    """The share of the full rate at a step.

    >>> [_rate_factor(step, 20) for step in (0, 1, 2, 19)]
    [0.5, 1.0, 1.0, 0.05555555555555555]
    """
    warm = max(1, round(_WARMUP_SHARE * steps))
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))


@contextmanager
def training_threads(count: int) -> Iterator[None]:
    """Keep torch to so many threads for as long as the context lasts.

    Sums come out a little different on another number of threads, so that training goes on
    exactly only on the number it was begun on.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
