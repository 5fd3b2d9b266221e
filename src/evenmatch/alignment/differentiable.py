"""Differentiable alignments in torch, for training with an alignment metric as the loss.

A `TensorSolver` takes a tensor of similarities (..., m, n), a mask of the cells that are not
padding and, for transport, the masses of both sides. It returns one `Alignment` of that shape;
`scoring.reducers.precision_recall` turns it into scores. Tensor solvers have no spec, since they
are for training and not for scoring.

- `StraightThrough`: forward the choices of `recursive` (LiSAScore) or samples of them, backward
  those of a softmax.
- `FixedAlignment`: any solver, with its alignment as a constant; the plan of `emd` follows its
  masses, so that the gradient of F_CONT is exact (`follow_masses`).

The softmax needs refined cells with a gradient. Refined cells are scaled to the range from -1
(lowest cell of a matrix) to 0 (highest). Refinement is invariant to scale (see `lisa.py`), so the
choices stay those of the solver, and a temperature means the same for every matrix and any number
of steps. `refine_with_gradient` is refinement as a torch autograd function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from evenmatch.alignment.assignment import Lsa
from evenmatch.alignment.batching import array_namespace
from evenmatch.alignment.lisa import Recursive, cell_indexes, credit_shares, refine_cells
from evenmatch.alignment.transport import Emd
from evenmatch.errors import InputError
from evenmatch.protocols import Solver
from evenmatch.types import Alignment, Array, Problem

# For the rows and for the columns of every matrix: the index of the best cell, the index of the
# second-best cell, and whether there is a second one.
Rivals = tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]

_ABSENT_LOGIT = -1e9  # finite, so that a softmax over padding alone is finite and has a gradient
_MIN_RANGE = 1e-6
_RIDGE = 1e-10
_TINY = 1e-12

# The masses of the units of both sides, (..., m) and (..., n).
Masses = tuple[Array, Array]


class TensorSolver(Protocol):
    """Aligns a stack of similarity matrices of one size; ignores cells that are not present."""

    def __call__(
        self, similarity: Array, present: Array, masses: Masses | None = None, /
    ) -> Alignment: ...


@dataclass(frozen=True)
class StraightThrough:
    """Straight-through estimator of `recursive`: hard choices forward, softmax backward.

    The score is the one the metric gives, and its gradient still says which cells should have been
    chosen. A lower `temperature` brings the softmax closer to the hard choice, and its gradient
    closer to 0.

    With a `seed`, each line samples a cell with the softmax probability (the Gumbel-max trick), so
    that training also sees nearly optimal alignments. The noise of a cell depends only on the seed
    and the cell's position: an equal solver samples the same again, in any batch. Use a new seed
    for every step.
    """

    base: Recursive = Recursive()
    temperature: float = 0.1
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.base.legacy:
            raise InputError("recursive(legacy=True) has no useful gradient; leave out legacy=True")
        if self.temperature <= 0:
            raise InputError(f"a temperature must be above 0, got {self.temperature}")

    def __call__(
        self, similarity: Array, present: Array, masses: Masses | None = None
    ) -> Alignment:
        """Return shares with the values of the choice and the gradient of the softmax.

        Masses are ignored, as by `recursive`.
        """
        cells, mask = _flatten_stack(similarity, present)
        logits = soft_logits(cells, mask, self.base, self.temperature)
        if self.seed is not None:
            _, m, n = cells.shape
            logits = logits + cells.new_tensor(gumbel_noise(m, n, self.seed))
        strength, chosen = soft_choice(logits, mask)
        gradient_only = strength - strength.detach()  # 0 in value
        rows, cols = (
            (plan + gradient_only).reshape(similarity.shape)
            for plan in credit_shares(cells.detach(), chosen)
        )
        return Alignment(rows, cols, exact=False)


@dataclass(frozen=True)
class FixedAlignment:
    """Any solver's alignment as a constant: the gradient reaches the similarities and the masses.

    For exact one-to-one alignment and exact transport this is the true gradient wherever one
    exists, since the optimal plan does not change under small changes of the similarities. It does
    change with the masses: under `emd` the shares follow them (see `follow_masses`). Other solvers
    hold masses constant.
    """

    solver: Solver = Lsa()

    def __call__(
        self, similarity: Array, present: Array, masses: Masses | None = None
    ) -> Alignment:
        """Solve each matrix of the stack as a separate problem, in numpy; without masses all are 1.

        Units without a present cell have no mass.
        """
        cells, mask = (a.detach().cpu().numpy() for a in _flatten_stack(similarity, present))
        shape = similarity.shape
        given = masses or (similarity.new_ones(()), similarity.new_ones(()))
        whole = present.expand(shape)
        h, r = given[0] * whole.any(-1), given[1] * whole.any(-2)
        numbers = [m.detach().cpu().numpy().reshape(len(cells), -1) for m in (h, r)]
        places = [np.ix_(cell_mask.any(1), cell_mask.any(0)) for cell_mask in mask]
        problems = [
            Problem(matrix[at], x[at[0][:, 0]], y[at[1][0]])
            for matrix, x, y, at in zip(cells, *numbers, places, strict=True)
        ]
        alignments = self.solver(problems)
        plans = np.zeros((2, *cells.shape))
        for k, (alignment, at) in enumerate(zip(alignments, places, strict=True)):
            plans[0, k][at], plans[1, k][at] = alignment.rows, alignment.cols
        rows, cols = (similarity.new_tensor(plan).reshape(shape) for plan in plans)
        found = Alignment(rows, cols, exact=all(alignment.exact for alignment in alignments))
        return follow_masses(found, h, r) if isinstance(self.solver, Emd) else found


def follow_masses(alignment: Alignment, row_mass: Array, col_mass: Array) -> Alignment:
    """Return the shares of exact transport as functions of the masses, with the same values.

    The cells that carry mass stay the same under small changes of the masses, and form a forest of
    rows and columns. So the plan is a linear function of the masses, and its gradient has a closed
    form: if G is the gradient at the plan, that at the masses is the λ and μ with
    λ[i] + μ[j] = G[i, j] at every cell that carries mass.
    """
    if not (row_mass.requires_grad or col_mass.requires_grad):
        return alignment
    import torch

    h, r = (m / m.sum(-1, keepdim=True).clamp(min=_TINY) for m in (row_mass, col_mass))
    rows = torch.as_tensor(alignment.rows, dtype=h.dtype, device=h.device)
    plan = _plan_function().apply(rows * h.detach()[..., None], h, r)
    return Alignment(
        plan / h.clamp(min=_TINY)[..., None],
        plan / r.clamp(min=_TINY)[..., None, :],
        exact=alignment.exact,
    )


@cache
def _plan_function() -> Any:
    import torch

    class Plan(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, plan: Any, h: Any, r: Any) -> Any:
            ctx.used = plan > 0
            return plan.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> tuple[None, Any, Any]:
            return None, *_mass_gradient(gradient, ctx.used)

    return Plan


def _mass_gradient(gradient: Array, used: Array) -> tuple[Array, Array]:
    """Return λ and μ, by the normal equations; their free constants are 0."""
    import torch

    cells, links = (gradient * used).double(), used.double()
    m, n = cells.shape[-2:]
    system = cells.new_zeros((*cells.shape[:-2], m + n, m + n))
    system[..., :m, m:], system[..., m:, :m] = links, links.mT
    # A little on the diagonal settles the constants, and units without a cell.
    degrees = torch.cat([links.sum(-1), links.sum(-2)], -1) + _RIDGE
    system.diagonal(dim1=-2, dim2=-1).copy_(degrees)
    found = torch.linalg.solve(system, torch.cat([cells.sum(-1), cells.sum(-2)], -1))
    return found[..., :m].to(gradient.dtype), found[..., m:].to(gradient.dtype)


def _flatten_stack(similarity: Array, present: Array) -> tuple[Array, Array]:
    """Reshape both to (matrices, m, n), whatever dimensions come before the last two."""
    shape = (-1, *similarity.shape[-2:])
    return similarity.reshape(shape), present.expand(similarity.shape).reshape(shape)


# Soft choices


def soft_logits(similarity: Array, present: Array, base: Recursive, temperature: float) -> Array:
    """Return (matrices, m, n): refined cells divided by the temperature; padding is far below."""
    masked = similarity.masked_fill(~present, -float("inf"))
    cells = refine_with_gradient(masked, base.iterations, base.factor)
    return (_scale_to_unit_range(cells, present) / temperature).masked_fill(~present, _ABSENT_LOGIT)


def soft_choice(logits: Array, present: Array) -> tuple[Array, Array]:
    """Return how strongly each cell is chosen, from 0 to 1, and the cells that are chosen.

    The strengths are a softmax over each line of the shorter side.
    """
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
    best = logits.argmax(axis, keepdim=True)
    return logits.new_zeros(logits.shape).bool().scatter(axis, best, True)


# Refinement with a gradient. Once it is known which cells are whose rivals, a step is linear, and
# its gradient takes the same path back: every cell passes what it lost to a rival on to that
# rival. So only the indexes of the rivals are stored, not the dozens of intermediate matrices
# that autograd would store for the step.


def refine_with_gradient(similarity: Array, iterations: int, factor: float) -> Array:
    """Compute `lisa.refine_cells` of a tensor, with a gradient."""
    refined: Array = _autograd_function().apply(similarity, iterations, factor)
    return refined


@cache
def _autograd_function() -> Any:
    """Define the autograd function at its first use, since its base class needs torch."""
    import torch

    class Refine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, similarity: Any, iterations: int, factor: float) -> Any:
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
    similarity: Array, iterations: int, factor: float
) -> tuple[Array, list[Rivals | Array]]:
    """Return the refined cells and, in order, the rivals of each step and powers of rescalings."""
    history: list[Rivals | Array] = []
    cells = refine_cells(
        similarity,
        [iterations] * len(similarity),
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
    """Return the gradient before all steps, given the gradient after them."""
    matrix, row, col = cell_indexes(gradient)
    for step in reversed(history):
        if not isinstance(step, tuple):  # the powers of a rescaling
            gradient = gradient / step[:, None, None]
            continue
        (best_col, second_col, has_second_col), (best_row, second_row, has_second_row) = step
        at_row_best, at_col_best = gradient[matrix, row, best_col], gradient[matrix, best_row, col]
        back = gradient + 0.0
        # The best of a line was subtracted from all others there, the second best from the best.
        back[matrix, row, best_col] -= (gradient.sum(2) - at_row_best) / factor
        back[matrix, row, second_col] -= at_row_best * has_second_col / factor
        back[matrix, best_row, col] -= (gradient.sum(1) - at_col_best) / factor
        back[matrix, second_row, col] -= at_col_best * has_second_row / factor
        gradient = back
    return gradient
