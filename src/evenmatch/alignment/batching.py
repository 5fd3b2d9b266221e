"""Problems of like size as one padded array, so that a solver loops over steps, not over pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.alignment import loops
from evenmatch.alignment.end_to_end import Loop, solve_end_to_end
from evenmatch.types import Alignment, Array, Problem

# Numbers in one padded array. On a processor more is no faster, since the arrays leave its cache;
# an accelerator wants enough work per step to outlast the call that starts it.
_MOST_CELLS = 1 << 16
_MOST_CELLS_ON_DEVICE = 1 << 22
_BUCKET = 4
# Where tensors share memory with numpy, its steps are several times faster than torch's.
_BY_NUMPY = ("cpu",)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Matrices stacked with their long side down and their short side across.

    `similarity` is (matrices, long, short) in double precision, -inf where a smaller matrix has
    nothing. Matrices come with the longest short side first.
    """

    similarity: Array
    long: Array  # units of each matrix on its long side
    short: Array  # and on its short side
    turned: Array  # whether the candidate is across, which it is where it is the shorter side

    @property
    def present(self) -> Array:
        """Which cells belong to their matrix."""
        _, long, short = self.similarity.shape
        down = counting(long, self.similarity)[None, :] < self.long[:, None]
        across = counting(short, self.similarity)[None, :] < self.short[:, None]
        return down[:, :, None] & across[:, None, :]


# From a batch: shares of the long side's units, of the short side's units, and steps taken by each.
Solve = Callable[[Batch], tuple[Array, Array, Sequence[int]]]


def solve_batched(
    problems: Sequence[Problem], solve: Solve, loop: Loop | None = None
) -> list[Alignment]:
    """One inexact alignment per problem, in order, where the problem's similarity is.

    Every operation of `solve` must keep the matrices of a batch apart; then an alignment is the
    same to the last bit whatever else was solved with it. `loop` gives the same by loops over
    cells, for use once they pay.
    """
    if loop is None or any(namespace(p.similarity) is not np for p in problems):
        return _by_batches(problems, solve)
    if loops.pay():
        solved = solve_end_to_end([p for p in problems if p.similarity.size], loop)
        return [next(solved) if p.similarity.size else _nothing(p.similarity) for p in problems]
    with loops.by_arrays():
        return _by_batches(problems, solve)


def _by_batches(problems: Sequence[Problem], solve: Solve) -> list[Alignment]:
    found: dict[int, Alignment] = {}
    for indexes in _grouped([p.similarity for p in problems]):
        given = [problems[i].similarity for i in indexes]
        batch = _stacked(given)
        by_long, by_short, steps = solve(batch)
        by_long, by_short = (_like(given[0], plan) for plan in (by_long, by_short))
        for k, index in enumerate(indexes):
            m, n = given[k].shape
            own = (k, slice(max(m, n)), slice(min(m, n)))
            rows, cols = (
                (by_short[own].T, by_long[own].T) if m < n else (by_long[own], by_short[own])
            )
            found[index] = Alignment(rows, cols, exact=False, steps=steps[k])
    return [found[i] if i in found else _nothing(p.similarity) for i, p in enumerate(problems)]


def namespace(values: Array) -> Any:
    """The module whose functions take these values: torch for its tensors, numpy for the rest."""
    # Whoever holds a tensor has imported torch; nobody else should wait for it.
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(values, torch.Tensor) else np


def counting(count: int, like: Array) -> Array:
    """0, 1, … up to `count`, where `like` is."""
    xp = namespace(like)
    return np.arange(count) if xp is np else xp.arange(count, device=like.device)


def _nothing(similarity: Array) -> Alignment:
    empty = namespace(similarity).zeros_like(similarity)
    return Alignment(empty, empty, exact=False, steps=0)


def _grouped(similarities: Sequence[Array]) -> Iterator[list[int]]:
    """Indexes of problems to be solved together: of like size, in one place, within bounds."""
    shapes = [tuple(s.shape) for s in similarities]
    places: dict[tuple[str, str], list[int]] = {}
    for index, (m, n) in enumerate(shapes):
        if m and n:
            places.setdefault(_place(similarities[index]), []).append(index)
    for (device, _), indexes in places.items():
        # Long sides within a few units of each other, then equal short sides: little is padding.
        indexes.sort(key=lambda i: (-(-max(shapes[i]) // _BUCKET), min(shapes[i])), reverse=True)
        most = _MOST_CELLS if device == "cpu" else _MOST_CELLS_ON_DEVICE
        for group in _cut(indexes, shapes, most):
            yield sorted(group, key=lambda i: -min(shapes[i]))


def _cut(
    indexes: Sequence[int], shapes: Sequence[tuple[int, ...]], most: int
) -> Iterator[list[int]]:
    group: list[int] = []
    long = short = 0
    for index in indexes:
        own_long, own_short = max(shapes[index]), min(shapes[index])
        longer, broader = max(long, own_long), max(short, own_short)
        if group and ((len(group) + 1) * longer * broader > most or 2 * own_long < long):
            yield group
            group, longer, broader = [], own_long, own_short
        group.append(index)
        long, short = longer, broader
    if group:
        yield group


def _place(similarity: Array) -> tuple[str, str]:
    if namespace(similarity) is np:
        return "cpu", "numpy"
    return similarity.device.type, f"{similarity.device} {similarity.dtype}"


def _like(similarity: Array, plan: Array) -> Array:
    """A plan as a tensor of the similarity's kind, where that is one."""
    xp = namespace(similarity)
    return plan if xp is np else xp.as_tensor(plan).to(similarity.dtype)


def _stacked(similarities: Sequence[Array]) -> Batch:
    """The matrices as one array; their cells are laid end to end and put in place at once."""
    turned = np.array([s.shape[0] < s.shape[1] for s in similarities])
    sizes = np.array([(max(s.shape), min(s.shape)) for s in similarities])
    upright = [s.T if turn else s for s, turn in zip(similarities, turned, strict=True)]
    # An odd width, since lines a power of two apart fall on the same few places in a cache.
    shape = (len(sizes), int(sizes[:, 0].max()), int(sizes[:, 1].max()) | 1)
    cells = _end_to_end(upright)
    xp = namespace(cells)
    if xp is np:
        batch = Batch(np.full(shape, -np.inf), sizes[:, 0], sizes[:, 1], turned)
    else:
        padded = xp.full(shape, -xp.inf, dtype=cells.dtype, device=cells.device)
        facts = (sizes[:, 0].copy(), sizes[:, 1].copy(), turned)
        batch = Batch(padded, *(xp.as_tensor(fact, device=cells.device) for fact in facts))
    batch.similarity[batch.present] = cells
    return batch


def _end_to_end(matrices: Sequence[Array]) -> Array:
    """All cells in a row, in double precision."""
    xp = namespace(matrices[0])
    if xp is np:
        return np.concatenate([np.ravel(s) for s in matrices])
    cells = xp.cat([s.detach().reshape(-1) for s in matrices])
    if cells.device.type in _BY_NUMPY:
        return cells.double().numpy()
    # One kind of accelerator has no double precision.
    return cells.float() if cells.device.type == "mps" else cells.double()
