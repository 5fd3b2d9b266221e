"""Differentiable alignments in torch, for training with an alignment metric as the loss.

A `TensorSolver` takes a tensor of similarities (..., m, n) and a mask of the cells that are not
padding, and returns one `Alignment` of that shape; `scoring.reducers.precision_recall` turns it
into scores. Tensor solvers have no spec, since they are for training and not for scoring.

- `StraightThrough`: forward the choices of a LiSAScore solver, backward those of a softmax.
- `Gumbel`: the same with sampled choices.
- `FixedAlignment`: any solver, with its alignment as a constant.

The softmax needs refined cells with a gradient. Refined cells are scaled to the range from -1
(lowest cell of a matrix) to 0 (highest). Refinement is invariant to scale (see `lisa.py`), so the
choices stay those of the solver, and a temperature means the same for every matrix and any number
of steps. `refine_with_gradient`, at the end, is refinement as a torch autograd function.
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
    cell_indexes,
    credit_shares,
    highest_left_out,
    refine_cells,
    step_counts,
)
from evenmatch.errors import InputError
from evenmatch.protocols import Solver
from evenmatch.types import Alignment, Array, Problem

RefiningSolver: TypeAlias = Recursive | TopK | Auction

# For the rows and for the columns of every matrix: the index of the best cell, the index of the
# second-best cell, and whether there is a second one.
Rivals = tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]

_ABSENT_LOGIT = -1e9  # finite, so that a softmax over padding alone is finite and has a gradient
_MIN_RANGE = 1e-6
_TINY = 1e-12


class TensorSolver(Protocol):
    """Aligns a stack of similarity matrices of one size; ignores cells that are not present."""

    def __call__(self, similarity: Array, present: Array, /) -> Alignment: ...


@dataclass(frozen=True)
class StraightThrough:
    """Straight-through estimator of a refining solver: hard choices forward, softmax backward.

    The score is the one the metric gives, and its gradient still says which cells should have been
    chosen. A lower `temperature` brings the softmax closer to the hard choice, and its gradient
    closer to 0.
    """

    base: RefiningSolver = Recursive()
    temperature: float = 0.1

    def __post_init__(self) -> None:
        _check_base(self.base, self.temperature)

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Return shares with the values of `base` and the gradient of the softmax."""
        cells, mask = _flatten_stack(similarity, present)
        logits = soft_logits(cells, mask, self.base, self.temperature)
        return _straight_through(similarity, *soft_choice(logits, mask, self.base))


@dataclass(frozen=True)
class Gumbel:
    """A refining solver with sampled choices; backward the softmax they were sampled from.

    Each line samples a cell with the softmax probability (the Gumbel-max trick), so that training
    also sees nearly optimal alignments. The noise of a cell depends only on `seed` and the cell's
    position: an equal solver samples the same again, in any batch. Use a new seed for every step.
    """

    base: RefiningSolver = Recursive()
    temperature: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        _check_base(self.base, self.temperature)

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Return shares with the values of the sampled choice and the gradient of the softmax."""
        cells, mask = _flatten_stack(similarity, present)
        noise = cells.new_tensor(gumbel_noise(cells.shape[1], cells.shape[2], self.seed))
        logits = soft_logits(cells, mask, self.base, self.temperature) + noise
        return _straight_through(similarity, *soft_choice(logits, mask, self.base))


@dataclass(frozen=True)
class FixedAlignment:
    """Any solver's alignment as a constant: the gradient reaches only the similarities.

    For exact one-to-one alignment this is the true gradient wherever one exists, since the optimal
    plan does not change under small changes of the similarities.
    """

    solver: Solver = Lsa()

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Solve each matrix of the stack as a separate problem, in numpy."""
        cells, mask = (a.detach().cpu().numpy() for a in _flatten_stack(similarity, present))
        places = [np.ix_(cell_mask.any(1), cell_mask.any(0)) for cell_mask in mask]
        problems = [
            Problem(matrix[at], np.ones(at[0].size), np.ones(at[1].size))
            for matrix, at in zip(cells, places, strict=True)
        ]
        alignments = self.solver(problems)
        plans = np.zeros((2, *cells.shape))
        for k, (alignment, at) in enumerate(zip(alignments, places, strict=True)):
            plans[0, k][at], plans[1, k][at] = alignment.rows, alignment.cols
        rows, cols = (similarity.new_tensor(plan).reshape(similarity.shape) for plan in plans)
        return Alignment(rows, cols, exact=all(alignment.exact for alignment in alignments))


def _check_base(base: RefiningSolver, temperature: float) -> None:
    if isinstance(base, Recursive) and base.legacy:
        raise InputError("recursive(legacy=True) has no useful gradient; leave out legacy=True")
    if temperature <= 0:
        raise InputError(f"a temperature must be above 0, got {temperature}")


def _flatten_stack(similarity: Array, present: Array) -> tuple[Array, Array]:
    """Reshape both to (matrices, m, n), whatever dimensions come before the last two."""
    shape = (-1, *similarity.shape[-2:])
    return similarity.reshape(shape), present.expand(similarity.shape).reshape(shape)


def _straight_through(similarity: Array, strength: Array, chosen: Array) -> Alignment:
    """Return shares with the values of the `chosen` cells and the gradient of `strength`."""
    cells = similarity.detach().reshape(strength.shape)
    gradient_only = strength - strength.detach()  # 0 in value
    rows, cols = (plan + gradient_only for plan in credit_shares(cells, chosen))
    return Alignment(rows.reshape(similarity.shape), cols.reshape(similarity.shape), exact=False)


# Soft choices


def soft_logits(
    similarity: Array, present: Array, base: RefiningSolver, temperature: float
) -> Array:
    """Return (matrices, m, n): refined cells divided by the temperature; padding is far below."""
    # `refine_cells` needs the number of steps not to increase: the longest short side goes first.
    order = _short_side_lengths(present).argsort(descending=True, stable=True)
    steps = step_counts(base.iterations, _short_side_lengths(present)[order])
    masked = similarity.masked_fill(~present, -float("inf"))[order]
    cells = refine_with_gradient(masked, steps, base.factor)[order.argsort()]
    return (_scale_to_unit_range(cells, present) / temperature).masked_fill(~present, _ABSENT_LOGIT)


def soft_choice(logits: Array, present: Array, base: RefiningSolver) -> tuple[Array, Array]:
    """Return how strongly each cell is chosen, from 0 to 1, and the cells that `base` chooses.

    For `recursive` and `auction` the strengths are a softmax over each line of the shorter side.
    For `topk` a strength is the sigmoid of the cell's distance above the highest cell left out.
    """
    if isinstance(base, TopK):
        masked = logits.detach().masked_fill(~present, -float("inf"))
        cut = highest_left_out(masked, _short_side_lengths(present))[:, None, None]
        return (logits - cut).sigmoid() * present, (masked > cut) & present
    tall = (present.any(2).sum(1) >= present.any(1).sum(1))[:, None, None]
    strength = logits.softmax(1).where(tall, logits.softmax(2)) * present
    return strength, _is_best(logits, 1).where(tall, _is_best(logits, 2)) & present


def gumbel_noise(m: int, n: int, seed: int) -> Array:
    """Return standard Gumbel noise; a cell gets the same noise in a matrix of any size.

    >>> bool((gumbel_noise(3, 2, seed=1) == gumbel_noise(5, 7, seed=1)[:3, :2]).all())
    True
    """
    i, j = np.indices((m, n))
    # Cells are numbered by growing squares, so that a larger matrix only adds numbers at the end.
    number = np.where(i < j, j * j + i, i * i + i + j)
    uniform = np.random.default_rng(seed).random(max(m, n) ** 2)[number]
    return -np.log(-np.log(uniform.clip(min=_TINY)))


def _short_side_lengths(present: Array) -> Array:
    """Return the number of units on the shorter side of each matrix."""
    return present.any(2).sum(1).minimum(present.any(1).sum(1))


def _scale_to_unit_range(cells: Array, present: Array) -> Array:
    """Scale the present cells of each matrix to [-1, 0]; equal cells all become 0."""
    high = cells.masked_fill(~present, -float("inf")).amax((1, 2), keepdim=True)
    low = cells.masked_fill(~present, float("inf")).amin((1, 2), keepdim=True)
    spread = high - low
    # Nearly equal cells are not stretched, since that would give huge gradients.
    return (cells.masked_fill(~present, 0.0) - high) / spread.masked_fill(
        ~(spread > _MIN_RANGE), 1.0
    )


def _is_best(logits: Array, axis: int) -> Array:
    return logits.argmax(axis, keepdim=True) == _indexes_along(logits, axis)


def _indexes_along(cells: Array, axis: int) -> Array:
    shape = [1, 1, 1]
    shape[axis] = -1
    return arange_like(cells.shape[axis], cells).reshape(shape)


# Refinement with a gradient. Once it is known which cells are whose rivals, a step is linear, and
# its gradient takes the same path back: every cell passes what it lost to a rival on to that
# rival. So only the indexes of the rivals are stored, not the dozens of intermediate matrices
# that autograd would store for the step.


def refine_with_gradient(similarity: Array, iterations: Sequence[int], factor: float) -> Array:
    """Compute `lisa.refine_cells` of a tensor, with a gradient."""
    refined: Array = _autograd_function().apply(similarity, tuple(iterations), factor)
    return refined


@cache
def _autograd_function() -> Any:
    """Define the autograd function at its first use, since its base class needs torch."""
    import torch

    class Refine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, similarity: Any, iterations: tuple[int, ...], factor: float) -> Any:
            cells, ctx.history = _forward(_as_numpy(similarity), iterations, factor)
            ctx.factor = factor
            return torch.as_tensor(cells)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> tuple[Any, None, None]:
            back = _backward(_as_numpy(gradient), ctx.history, ctx.factor)
            return torch.as_tensor(back), None, None

    def _as_numpy(values: Any) -> Array:
        # On a CPU numpy takes a step in less than half of torch's time.
        plain = values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64)
        return values.numpy() if plain else values

    return Refine


def _forward(
    similarity: Array, iterations: Sequence[int], factor: float
) -> tuple[Array, list[Rivals | Array]]:
    """Return the refined cells and, in order, the rivals of each step and powers of rescalings.

    Of the batch, the first matrices take part in a step, as many as it has rivals or powers.
    """
    history: list[Rivals | Array] = []
    cells = refine_cells(
        similarity,
        iterations,
        factor,
        on_rescale=history.append,
        on_step=lambda before: history.append(_find_rivals(before)),
    )
    return cells, history


def _find_rivals(cells: Array) -> Rivals:
    matrix, row, col = cell_indexes(cells)
    best_col, best_row = cells.argmax(2), cells.argmax(1)
    return (
        (best_col, *_find_second_best(cells, (matrix, row, best_col), 2)),
        (best_row, *_find_second_best(cells, (matrix, best_row, col), 1)),
    )


def _find_second_best(cells: Array, best: tuple[Array, ...], axis: int) -> tuple[Array, Array]:
    xp = array_namespace(cells)
    first = cells[best]
    cells[best] = -xp.inf
    index, value = cells.argmax(axis), xp.amax(cells, axis)
    cells[best] = first
    return index, xp.isfinite(value)


def _backward(gradient: Array, history: Sequence[Rivals | Array], factor: float) -> Array:
    back = gradient + 0.0
    for step in reversed(history):
        if isinstance(step, tuple):
            active = len(step[0][0])
            back[:active] = _backward_step(back[:active], step, factor)
        else:
            back[: len(step)] /= step[:, None, None]
    return back


def _backward_step(gradient: Array, rivals: Rivals, factor: float) -> Array:
    """Return the gradient before a refinement step, given the gradient after it."""
    matrix, row, col = cell_indexes(gradient)
    (best_col, second_col, has_second_col), (best_row, second_row, has_second_row) = rivals
    at_row_best, at_col_best = gradient[matrix, row, best_col], gradient[matrix, best_row, col]
    back = gradient + 0.0
    # The best of a line was subtracted from all others there, and the second best from the best.
    back[matrix, row, best_col] -= (gradient.sum(2) - at_row_best) / factor
    back[matrix, row, second_col] -= at_row_best * has_second_col / factor
    back[matrix, best_row, col] -= (gradient.sum(1) - at_col_best) / factor
    back[matrix, second_row, col] -= at_col_best * has_second_row / factor
    return back
