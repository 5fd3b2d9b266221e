"""Alignments that a gradient goes through, for stacks of similarities in torch.

These take a tensor (..., m, n) and which of its cells are present, and give one alignment of that
shape; `scoring.reduce.precision_recall` makes scores of it. They have no spec, since they are for
training and not for scoring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenmatch.alignment.assign import Lsa
from evenmatch.alignment.credit import shares
from evenmatch.alignment.recursive import Recursive
from evenmatch.alignment.soft_choice import Refining, gumbel_noise, soft_choice, soft_logits
from evenmatch.errors import InputError
from evenmatch.types import Alignment, Array, Problem, Solver


class TensorSolver(Protocol):
    """Aligns a stack of similarities of one size; cells that are not present are left out."""

    def __call__(self, similarity: Array, present: Array, /) -> Alignment: ...


@dataclass(frozen=True)
class StraightThrough:
    """A recursive method as it is forward; backward as if its choices were a softmax.

    So a score is what the metric gives, and still says which cells should have been chosen. A
    lower `temperature` brings the softmax nearer to the choice, and its gradient to nothing.
    """

    base: Refining = Recursive()
    temperature: float = 0.1

    def __post_init__(self) -> None:
        _check(self.base, self.temperature)

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Rows and columns with the values of `base` and the gradient of the softmax."""
        cells, there = _stacked(similarity, present)
        logits = soft_logits(cells, there, self.base, self.temperature)
        return _through(similarity, *soft_choice(logits, there, self.base))


@dataclass(frozen=True)
class Gumbel:
    """A recursive method that draws its choices; backward the softmax it drew them from.

    Each line draws a cell with the probability of the softmax (the Gumbel trick), so that training
    also meets what is nearly best. The noise of a cell depends on `seed` and its place alone: the
    same part draws the same again, in any batch. Take another seed for every step.
    """

    base: Refining = Recursive()
    temperature: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.base, self.temperature)

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Rows and columns with what was drawn and the gradient of the softmax."""
        cells, there = _stacked(similarity, present)
        noise = cells.new_tensor(gumbel_noise(cells.shape[1], cells.shape[2], self.seed))
        logits = soft_logits(cells, there, self.base, self.temperature) + noise
        return _through(similarity, *soft_choice(logits, there, self.base))


@dataclass(frozen=True)
class Held:
    """Any solver's alignment, held constant: the gradient reaches the similarities only.

    For exact one-to-one alignment that is the true gradient wherever there is one, since its plan
    stays as it is under small changes of the similarities.
    """

    solver: Solver = Lsa()

    def __call__(self, similarity: Array, present: Array) -> Alignment:
        """Solved as arrays, one problem for each matrix of the stack."""
        cells, there = (a.detach().cpu().numpy() for a in _stacked(similarity, present))
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


def _check(base: Refining, temperature: float) -> None:
    if isinstance(base, Recursive) and base.legacy:
        raise InputError("the released step has no gradient to speak of; leave out legacy=True")
    if temperature <= 0:
        raise InputError(f"a temperature must be above 0, got {temperature}")


def _stacked(similarity: Array, present: Array) -> tuple[Array, Array]:
    """Both as (matrices, m, n), however many dimensions come before the last two."""
    shape = (-1, *similarity.shape[-2:])
    return similarity.reshape(shape), present.expand(similarity.shape).reshape(shape)


def _through(similarity: Array, strength: Array, chosen: Array) -> Alignment:
    """Shares with the values that were chosen and the gradient of how strongly."""
    cells = similarity.detach().reshape(strength.shape)
    passing = strength - strength.detach()
    rows, cols = (plan + passing for plan in shares(cells, chosen))
    return Alignment(rows.reshape(similarity.shape), cols.reshape(similarity.shape), exact=False)
