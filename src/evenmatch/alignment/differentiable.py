"""Alignments that a gradient goes through, for stacks of similarities in torch.

These take a tensor (..., m, n) and which of its cells are present, and give one alignment of that
shape; `scoring.reduce.precision_recall` makes scores of it. They have no spec, since they are for
training and not for scoring.

The recursive methods as smooth functions of the similarities, in torch.

What is refined here is on a scale of its own: 0 for the highest cell of a matrix, -1 for the
lowest. Refining knows no scale (see `alignment.refine`), so the choices are those of the solvers,
and a temperature means the same for every matrix, however many steps it took.

Refining with a gradient, in torch.

Once it is known which cells are whose rivals, a step is linear, and its gradient goes back the same
way: every cell hands what it lost to a rival back to that rival. So only the rivals' places are
kept, and not the dozens of matrices that writing the step out would keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from evenmatch.alignment.assignment import Lsa
from evenmatch.alignment.batching import arange_like, array_namespace
from evenmatch.alignment.lisa import (
    Auction,
    Recursive,
    TopK,
    credit_shares,
    highest_left_out,
    refine_step,
    rescale,
    steps_between_rescaling,
)
from evenmatch.errors import InputError
from evenmatch.protocols import Solver
from evenmatch.types import Alignment, Array, Problem


class TensorSolver(Protocol):
    """Aligns a stack of similarities of one size; cells that are not present are left out."""

    def __call__(self, similarity: Array, present: Array, /) -> Alignment: ...


@dataclass(frozen=True)
class StraightThrough:
    """A recursive method as it is forward; backward as if its choices were a softmax.

    So a score is what the metric gives, and still says which cells should have been chosen. A
    lower `temperature` brings the softmax nearer to the choice, and its gradient to nothing.
    """

    base: RefiningSolver = Recursive()
    temperature: float = 0.1

    def __post_init__(self) -> None:
        _check_base(self.base, self.temperature)

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Rows and columns with the values of `base` and the gradient of the softmax."""
        cells, there = _flatten_stack(similarity, present)
        logits = soft_logits(cells, there, self.base, self.temperature)
        return _straight_through(similarity, *soft_choice(logits, there, self.base))


@dataclass(frozen=True)
class Gumbel:
    """A recursive method that draws its choices; backward the softmax it drew them from.

    Each line draws a cell with the probability of the softmax (the Gumbel trick), so that training
    also meets what is nearly best. The noise of a cell depends on `seed` and its place alone: the
    same part draws the same again, in any batch. Take another seed for every step.
    """

    base: RefiningSolver = Recursive()
    temperature: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        _check_base(self.base, self.temperature)

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Rows and columns with what was drawn and the gradient of the softmax."""
        cells, there = _flatten_stack(similarity, present)
        noise = cells.new_tensor(gumbel_noise(cells.shape[1], cells.shape[2], self.seed))
        logits = soft_logits(cells, there, self.base, self.temperature) + noise
        return _straight_through(similarity, *soft_choice(logits, there, self.base))


@dataclass(frozen=True)
class FixedAlignment:
    """Any solver's alignment, held constant: the gradient reaches the similarities only.

    For exact one-to-one alignment that is the true gradient wherever there is one, since its plan
    stays as it is under small changes of the similarities.
    """

    solver: Solver = Lsa()

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Solved as arrays, one problem for each matrix of the stack."""
        cells, there = (a.detach().cpu().numpy() for a in _flatten_stack(similarity, present))
        places = [np.ix_(own.any(1), own.any(0)) for own in there]
        problems = [
            Problem(own[at], np.ones(at[0].size), np.ones(at[1].size))
            for own, at in zip(cells, places, strict=True)
        ]
        found = self.solver(problems)
        plans = np.zeros((2, *cells.shape))
        for k, (alignment, at) in enumerate(zip(found, places, strict=True)):
            plans[0, k][at], plans[1, k][at] = alignment.rows, alignment.cols
        rows, cols = (similarity.new_tensor(plan).reshape(similarity.shape) for plan in plans)
        return Alignment(rows, cols, exact=all(alignment.exact for alignment in found))


def _check_base(base: RefiningSolver, temperature: float) -> None:
    if isinstance(base, Recursive) and base.legacy:
        raise InputError("the released step has no gradient to speak of; leave out legacy=True")
    if temperature <= 0:
        raise InputError(f"a temperature must be above 0, got {temperature}")


def _flatten_stack(similarity: Array, present: Array) -> tuple[Array, Array]:
    """Both as (matrices, m, n), however many dimensions come before the last two."""
    shape = (-1, *similarity.shape[-2:])
    return similarity.reshape(shape), present.expand(similarity.shape).reshape(shape)


def _straight_through(similarity: Array, strength: Array, chosen: Array) -> Alignment:
    """Shares with the values that were chosen and the gradient of how strongly."""
    cells = similarity.detach().reshape(strength.shape)
    passing = strength - strength.detach()
    rows, cols = (plan + passing for plan in credit_shares(cells, chosen))
    return Alignment(rows.reshape(similarity.shape), cols.reshape(similarity.shape), exact=False)


RefiningSolver: TypeAlias = Recursive | TopK | Auction


_ABSENT_LOGIT = -1e9  # finite, so that a softmax over nothing is a number and has a gradient


_MIN_RANGE = 1e-6


_TINY = 1e-12


def soft_logits(
    similarity: Array, present: Array, base: RefiningSolver, temperature: float
) -> Array:
    """(matrices, m, n): the refined cells over the temperature; those absent far below."""
    # the longest short side first, since no matrix may take more steps than one before it
    order = _short_side_lengths(present).argsort(descending=True, stable=True)
    short: list[int] = _short_side_lengths(present)[order].tolist()
    steps = short if base.iterations == "short" else [base.iterations] * len(short)
    inside = similarity.masked_fill(~present, -float("inf"))[order]
    cells = refine_with_gradient(inside, steps, base.factor)[order.argsort()]
    return (_scale_to_unit_range(cells, present) / temperature).masked_fill(~present, _ABSENT_LOGIT)


def soft_choice(logits: Array, present: Array, base: RefiningSolver) -> tuple[Array, Array]:
    """How strongly each cell is chosen, from 0 to 1, and the cells that `base` would choose.

    A line's strengths add up to 1, where each line of the shorter side takes one cell; where the
    highest cells are taken, a strength is how far a cell lies above the highest left out.
    """
    if isinstance(base, TopK):
        inside = logits.detach().masked_fill(~present, -float("inf"))
        cut = highest_left_out(inside, _short_side_lengths(present))[:, None, None]
        return (logits - cut).sigmoid() * present, (inside > cut) & present
    tall = (present.any(2).sum(1) >= present.any(1).sum(1))[:, None, None]
    strength = logits.softmax(1).where(tall, logits.softmax(2)) * present
    return strength, _is_best(logits, 1).where(tall, _is_best(logits, 2)) & present


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


def _short_side_lengths(present: Array) -> Array:
    """How many units the shorter side of each matrix has."""
    return present.any(2).sum(1).minimum(present.any(1).sum(1))


def _scale_to_unit_range(cells: Array, present: Array) -> Array:
    """From -1 to 0 over the cells present; equal cells are all 0."""
    high = cells.masked_fill(~present, -float("inf")).amax((1, 2), keepdim=True)
    low = cells.masked_fill(~present, float("inf")).amin((1, 2), keepdim=True)
    spread = high - low
    # Cells that are all but equal stay so: stretched, they would send back huge gradients.
    return (cells.masked_fill(~present, 0.0) - high) / spread.masked_fill(
        ~(spread > _MIN_RANGE), 1.0
    )


def _is_best(logits: Array, axis: int) -> Array:
    return logits.argmax(axis, keepdim=True) == _indexes_along(logits, axis)


def _indexes_along(cells: Array, axis: int) -> Array:
    shape = [1, 1, 1]
    shape[axis] = -1
    return arange_like(cells.shape[axis], cells).reshape(shape)


# For the rows and the columns of every matrix: the place of the best cell, that of the second best,
# and whether there is a second.
Rivals = tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]


def refine_with_gradient(similarity: Array, iterations: Sequence[int], factor: float) -> Array:
    """As `refine.refined`, for a tensor that may want its gradient."""
    found: Array = _autograd_function().apply(similarity, tuple(iterations), factor)
    return found


@cache
def _autograd_function() -> Any:
    """The pair of passes as torch wants them: in a class below one of its own."""
    import torch

    class Refine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, similarity: Any, iterations: tuple[int, ...], factor: float) -> Any:
            cells, ctx.trail = _forward(_light(similarity), iterations, factor)
            ctx.factor = factor
            return torch.as_tensor(cells)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> tuple[Any, None, None]:
            back = _backward(_light(gradient), ctx.trail, ctx.factor)
            return torch.as_tensor(back), None, None

    def _light(values: Any) -> Array:
        # On a processor numpy takes a step in less than half of torch's time.
        plain = values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64)
        return values.numpy() if plain else values

    return Refine


def _forward(
    similarity: Array, iterations: Sequence[int], factor: float
) -> tuple[Array, list[tuple[int, Rivals | Array]]]:
    """The refined cells, and the trail: how many matrices took each step, and what it did."""
    cells, powers = rescale(similarity)
    trail: list[tuple[int, Rivals | Array]] = [(len(cells), powers)]
    for number in range(max(iterations, default=0)):
        live = sum(count > number for count in iterations)
        if number and number % steps_between_rescaling(factor) == 0:
            cells[:live], powers = rescale(cells[:live])
            trail.append((live, powers))
        trail.append((live, _find_rivals(cells[:live])))
        refine_step(cells[:live], factor)
    return cells, trail


def _find_rivals(cells: Array) -> Rivals:
    count, long, short = cells.shape
    matrix = arange_like(count, cells)[:, None]
    row, col = arange_like(long, cells)[None, :], arange_like(short, cells)[None, :]
    right, down = cells.argmax(2), cells.argmax(1)
    return (
        (right, *_find_second_best(cells, (matrix, row, right), 2)),
        (down, *_find_second_best(cells, (matrix, down, col), 1)),
    )


def _find_second_best(cells: Array, best: tuple[Array, ...], axis: int) -> tuple[Array, Array]:
    xp = array_namespace(cells)
    first = cells[best]
    cells[best] = -xp.inf
    place, value = cells.argmax(axis), xp.amax(cells, axis)
    cells[best] = first
    return place, xp.isfinite(value)


def _backward(gradient: Array, trail: Sequence[tuple[int, Rivals | Array]], factor: float) -> Array:
    back = gradient + 0.0
    for live, done in reversed(trail):
        if isinstance(done, tuple):
            back[:live] = _backward_step(back[:live], done, factor)
        else:
            back[:live] /= done[:, None, None]
    return back


def _backward_step(gradient: Array, rivals: Rivals, factor: float) -> Array:
    """The gradient before a step, from the gradient after it."""
    count, long, short = gradient.shape
    matrix = arange_like(count, gradient)[:, None]
    row, col = arange_like(long, gradient)[None, :], arange_like(short, gradient)[None, :]
    (right, next_right, any_right), (down, next_down, any_down) = rivals
    from_row, from_col = gradient[matrix, row, right], gradient[matrix, down, col]
    back = gradient + 0.0
    # The best of a line took from all others there, and the second best took from the best.
    back[matrix, row, right] -= (gradient.sum(2) - from_row) / factor
    back[matrix, row, next_right] -= from_row * any_right / factor
    back[matrix, down, col] -= (gradient.sum(1) - from_col) / factor
    back[matrix, next_down, col] -= from_col * any_down / factor
    return back
