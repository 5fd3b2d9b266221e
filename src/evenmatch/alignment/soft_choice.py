"""The recursive methods as smooth functions of the similarities, in torch.

What is refined here is on a scale of its own: 0 for the highest cell of a matrix, -1 for the
lowest. Refining knows no scale (see `alignment.refine`), so the choices are those of the solvers,
and a temperature means the same for every matrix, however many steps it took.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from evenmatch.alignment.auction import Auction
from evenmatch.alignment.batching import counting
from evenmatch.alignment.recursive import Recursive
from evenmatch.alignment.refine_gradient import refined_with_gradient
from evenmatch.alignment.topk import TopK, highest_left_out
from evenmatch.types import Array

Refining: TypeAlias = Recursive | TopK | Auction

_ABSENT = -1e9  # finite, so that a softmax over nothing is a number and has a gradient
_FLAT = 1e-6
_TINY = 1e-12


def soft_logits(similarity: Array, present: Array, base: Refining, temperature: float) -> Array:
    """(matrices, m, n): the refined cells over the temperature; those absent far below."""
    # the longest short side first, since no matrix may take more steps than one before it
    order = _short_sides(present).argsort(descending=True, stable=True)
    short: list[int] = _short_sides(present)[order].tolist()
    steps = short if base.iterations == "short" else [base.iterations] * len(short)
    inside = similarity.masked_fill(~present, -float("inf"))[order]
    cells = refined_with_gradient(inside, steps, base.factor)[order.argsort()]
    return (_on_own_scale(cells, present) / temperature).masked_fill(~present, _ABSENT)


def soft_choice(logits: Array, present: Array, base: Refining) -> tuple[Array, Array]:
    """How strongly each cell is chosen, from 0 to 1, and the cells that `base` would choose.

    A line's strengths add up to 1, where each line of the shorter side takes one cell; where the
    highest cells are taken, a strength is how far a cell lies above the highest left out.
    """
    if isinstance(base, TopK):
        inside = logits.detach().masked_fill(~present, -float("inf"))
        cut = highest_left_out(inside, _short_sides(present))[:, None, None]
        return (logits - cut).sigmoid() * present, (inside > cut) & present
    tall = (present.any(2).sum(1) >= present.any(1).sum(1))[:, None, None]
    strength = logits.softmax(1).where(tall, logits.softmax(2)) * present
    return strength, _best(logits, 1).where(tall, _best(logits, 2)) & present


def gumbel_noise(m: int, n: int, seed: int) -> Array:
    """Standard Gumbel noise, cell by cell the same in a matrix of any size.

    >>> bool((gumbel_noise(3, 2, seed=1) == gumbel_noise(5, 7, seed=1)[:3, :2]).all())
    True
    """
    i, j = np.indices((m, n))
    # numbered by growing squares, so that a larger matrix only adds numbers at the end
    number = np.where(i < j, j * j + i, i * i + i + j)
    uniform = np.random.default_rng(seed).random(max(m, n) ** 2)[number]
    return -np.log(-np.log(uniform.clip(min=_TINY)))


def _short_sides(present: Array) -> Array:
    """How many units the shorter side of each matrix has."""
    return present.any(2).sum(1).minimum(present.any(1).sum(1))


def _on_own_scale(cells: Array, present: Array) -> Array:
    """From -1 to 0 over the cells present; equal cells are all 0."""
    high = cells.masked_fill(~present, -float("inf")).amax((1, 2), keepdim=True)
    low = cells.masked_fill(~present, float("inf")).amin((1, 2), keepdim=True)
    spread = high - low
    # Cells that are all but equal stay so: stretched, they would send back huge gradients.
    return (cells.masked_fill(~present, 0.0) - high) / spread.masked_fill(~(spread > _FLAT), 1.0)


def _best(logits: Array, axis: int) -> Array:
    return logits.argmax(axis, keepdim=True) == _numbers(logits, axis)


def _numbers(cells: Array, axis: int) -> Array:
    shape = [1, 1, 1]
    shape[axis] = -1
    return counting(cells.shape[axis], cells).reshape(shape)
