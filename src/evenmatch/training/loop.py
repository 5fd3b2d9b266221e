"""The training loop of metrics: settings, batches of similar length, optimizer and schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.types import Array

_SORTED_BATCHES = 32  # batches whose pairs are sorted by length together, to limit padding
_WARMUP_SHARE = 0.1  # the share of steps during which the learning rate rises


@dataclass(frozen=True, slots=True)
class FitSettings:
    """Epochs, pairs per step, the learning rates of encoder and head, and the random seed."""

    epochs: int = 1
    batch: int = 16
    rate: float = 1e-4
    head_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise InputError(
                f"training needs at least 1 epoch and 1 pair per batch, got {self.epochs} and "
                f"{self.batch}"
            )
        if not (self.rate > 0 and self.head_rate > 0):
            raise InputError(
                f"learning rates must be above 0, got {self.rate} and {self.head_rate}"
            )


def length_grouped_batches(lengths: Sequence[int], settings: FitSettings) -> Iterator[Array]:
    """Yield batches of pair indices; each pair once per epoch, similar lengths together."""
    draw = np.random.default_rng(settings.seed)
    sizes = np.asarray(lengths)
    for _ in range(settings.epochs):
        order = draw.permutation(len(sizes))
        chunk_size = settings.batch * _SORTED_BATCHES
        for chunk in (order[i : i + chunk_size] for i in range(0, len(order), chunk_size)):
            ranked = chunk[np.argsort(sizes[chunk], kind="stable")]
            batches = [
                ranked[i : i + settings.batch] for i in range(0, len(ranked), settings.batch)
            ]
            yield from (batches[i] for i in draw.permutation(len(batches)))


def run_training_loop(
    groups: Sequence[dict[str, Any]],
    lengths: Sequence[int],
    settings: FitSettings,
    loss: Callable[[Array], Any],
    progress: Callable[[int, int], None] | None,
) -> list[float]:
    """Run AdamW over all batches with linear warm-up and decay; return the loss of each step.

    `groups` are the optimizer's parameter groups, each with its learning rate; `loss` maps the
    pair indices of a batch to a scalar tensor.
    """
    import torch

    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    batches = list(length_grouped_batches(lengths, settings))
    total, done = len(lengths) * settings.epochs, 0
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _rate_factor(s, len(batches)))
    losses = []
    for batch in batches:
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
    """Return the learning rate at a step as a share of the full rate.

    >>> [_rate_factor(step, 20) for step in (0, 1, 2, 19)]
    [0.5, 1.0, 1.0, 0.05555555555555555]
    """
    warm = max(1, round(_WARMUP_SHARE * steps))
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))


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
