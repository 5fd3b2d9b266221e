"""Refining with a gradient, in torch.

Once it is known which cells are whose rivals, a step is linear, and its gradient goes back the same
way: every cell hands what it lost to a rival back to that rival. So only the rivals' places are
kept, and not the dozens of matrices that writing the step out would keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from evenmatch.alignment.batching import counting, namespace
from evenmatch.alignment.refine import rescaled, step, steps_between
from evenmatch.types import Array

# For the rows and the columns of every matrix: the place of the best cell, that of the second best,
# and whether there is a second.
Rivals = tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]


def refined_with_gradient(similarity: Array, iterations: Sequence[int], factor: float) -> Array:
    """As `refine.refined`, for a tensor that may want its gradient."""
    found: Array = _function().apply(similarity, tuple(iterations), factor)
    return found


@cache
def _function() -> Any:
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
    cells, powers = rescaled(similarity)
    trail: list[tuple[int, Rivals | Array]] = [(len(cells), powers)]
    for number in range(max(iterations, default=0)):
        live = sum(count > number for count in iterations)
        if number and number % steps_between(factor) == 0:
            cells[:live], powers = rescaled(cells[:live])
            trail.append((live, powers))
        trail.append((live, _rivals(cells[:live])))
        step(cells[:live], factor)
    return cells, trail


def _rivals(cells: Array) -> Rivals:
    count, long, short = cells.shape
    matrix = counting(count, cells)[:, None]
    row, col = counting(long, cells)[None, :], counting(short, cells)[None, :]
    right, down = cells.argmax(2), cells.argmax(1)
    return (
        (right, *_seconds(cells, (matrix, row, right), 2)),
        (down, *_seconds(cells, (matrix, down, col), 1)),
    )


def _seconds(cells: Array, best: tuple[Array, ...], axis: int) -> tuple[Array, Array]:
    xp = namespace(cells)
    first = cells[best]
    cells[best] = -xp.inf
    place, value = cells.argmax(axis), xp.amax(cells, axis)
    cells[best] = first
    return place, xp.isfinite(value)


def _backward(gradient: Array, trail: Sequence[tuple[int, Rivals | Array]], factor: float) -> Array:
    back = gradient + 0.0
    for live, done in reversed(trail):
        if isinstance(done, tuple):
            back[:live] = _step_back(back[:live], done, factor)
        else:
            back[:live] /= done[:, None, None]
    return back


def _step_back(gradient: Array, rivals: Rivals, factor: float) -> Array:
    """The gradient before a step, from the gradient after it."""
    count, long, short = gradient.shape
    matrix = counting(count, gradient)[:, None]
    row, col = counting(long, gradient)[None, :], counting(short, gradient)[None, :]
    (right, next_right, any_right), (down, next_down, any_down) = rivals
    from_row, from_col = gradient[matrix, row, right], gradient[matrix, down, col]
    back = gradient + 0.0
    # The best of a line took from all others there, and the second best took from the best.
    back[matrix, row, right] -= (gradient.sum(2) - from_row) / factor
    back[matrix, row, next_right] -= from_row * any_right / factor
    back[matrix, down, col] -= (gradient.sum(1) - from_col) / factor
    back[matrix, next_down, col] -= from_col * any_down / factor
    return back
