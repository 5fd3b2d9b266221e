"""Problems of like size as one padded array, so that a solver loops over steps, not over pairs.

Matrices laid end to end, for compiled loops that take one after the other.

Loops over cells as machine code (numba), for what takes several times as long on whole arrays.

Loading the compiler takes about a second, as long as a thousand pairs take without it. So a process
begins with arrays, and loads it only once they have cost it some time. Which of the two was at work
cannot be told from the outcome: it is the same to the last bit. Without numba arrays do everything.

Work that needs no Python while it runs, on as many threads as a call may use.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from evenmatch.types import Alignment, Array, Problem

# Numbers in one padded array. On a processor more is no faster, since the arrays leave its cache;
# an accelerator wants enough work per step to outlast the call that starts it.
_MAX_CELLS = 1 << 16


_MAX_CELLS_ON_DEVICE = 1 << 22


_BUCKET_SIZE = 4


# Where tensors share memory with numpy, its steps are several times faster than torch's.
_NUMPY_DEVICES = ("cpu",)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """Matrices stacked with their long side down and their short side across.

    `similarity` is (matrices, long, short) in double precision, -inf where a smaller matrix has
    nothing. Matrices come with the longest short side first.
    """

    similarity: Array
    long: Array  # units of each matrix on its long side
    short: Array  # and on its short side
    transposed: Array  # whether the candidate is across, which it is where it is the shorter side

    @property
    def present(self) -> Array:
        """Which cells belong to their matrix."""
        _, long, short = self.similarity.shape
        down = arange_like(long, self.similarity)[None, :] < self.long[:, None]
        across = arange_like(short, self.similarity)[None, :] < self.short[:, None]
        return down[:, :, None] & across[:, None, :]


# From a batch: shares of the long side's units, of the short side's units, and steps taken by each.
BatchSolve = Callable[[PaddedBatch], tuple[Array, Array, Sequence[int]]]


def solve_in_batches(
    problems: Sequence[Problem], solve: BatchSolve, loop: CompiledLoop | None = None
) -> list[Alignment]:
    """One inexact alignment per problem, in order, where the problem's similarity is.

    Every operation of `solve` must keep the matrices of a batch apart; then an alignment is the
    same to the last bit whatever else was solved with it. `loop` gives the same by loops over
    cells, for use once they pay.
    """
    if loop is None or any(array_namespace(p.similarity) is not np for p in problems):
        return _solve_with_arrays(problems, solve)
    if should_use_loops():
        solved = solve_packed([p for p in problems if p.similarity.size], loop)
        return [
            next(solved) if p.similarity.size else _empty_alignment(p.similarity) for p in problems
        ]
    with track_array_time():
        return _solve_with_arrays(problems, solve)


def _solve_with_arrays(problems: Sequence[Problem], solve: BatchSolve) -> list[Alignment]:
    found: dict[int, Alignment] = {}
    for indexes in _group_by_size([p.similarity for p in problems]):
        given = [problems[i].similarity for i in indexes]
        batch = _stack_matrices(given)
        by_long, by_short, steps = solve(batch)
        by_long, by_short = (_as_same_type(given[0], plan) for plan in (by_long, by_short))
        for k, index in enumerate(indexes):
            m, n = given[k].shape
            own = (k, slice(max(m, n)), slice(min(m, n)))
            rows, cols = (
                (by_short[own].T, by_long[own].T) if m < n else (by_long[own], by_short[own])
            )
            found[index] = Alignment(rows, cols, exact=False, steps=steps[k])
    return [
        found[i] if i in found else _empty_alignment(p.similarity) for i, p in enumerate(problems)
    ]


def array_namespace(values: Array) -> Any:
    """The module whose functions take these values: torch for its tensors, numpy for the rest."""
    # Whoever holds a tensor has imported torch; nobody else should wait for it.
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(values, torch.Tensor) else np


def arange_like(count: int, like: Array) -> Array:
    """0, 1, … up to `count`, where `like` is."""
    xp = array_namespace(like)
    return np.arange(count) if xp is np else xp.arange(count, device=like.device)


def _empty_alignment(similarity: Array) -> Alignment:
    empty = array_namespace(similarity).zeros_like(similarity)
    return Alignment(empty, empty, exact=False, steps=0)


def _group_by_size(similarities: Sequence[Array]) -> Iterator[list[int]]:
    """Indexes of problems to be solved together: of like size, in one place, within bounds."""
    shapes = [tuple(s.shape) for s in similarities]
    places: dict[tuple[str, str], list[int]] = {}
    for index, (m, n) in enumerate(shapes):
        if m and n:
            places.setdefault(_device_key(similarities[index]), []).append(index)
    for (device, _), indexes in places.items():
        # Long sides within a few units of each other, then equal short sides: little is padding.
        indexes.sort(
            key=lambda i: (-(-max(shapes[i]) // _BUCKET_SIZE), min(shapes[i])), reverse=True
        )
        most = _MAX_CELLS if device == "cpu" else _MAX_CELLS_ON_DEVICE
        for group in _split_group(indexes, shapes, most):
            yield sorted(group, key=lambda i: -min(shapes[i]))


def _split_group(
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


def _device_key(similarity: Array) -> tuple[str, str]:
    if array_namespace(similarity) is np:
        return "cpu", "numpy"
    return similarity.device.type, f"{similarity.device} {similarity.dtype}"


def _as_same_type(similarity: Array, plan: Array) -> Array:
    """A plan as a tensor of the similarity's kind, where that is one."""
    xp = array_namespace(similarity)
    return plan if xp is np else xp.as_tensor(plan).to(similarity.dtype)


def _stack_matrices(similarities: Sequence[Array]) -> PaddedBatch:
    """The matrices as one array; their cells are laid end to end and put in place at once."""
    turned = np.array([s.shape[0] < s.shape[1] for s in similarities])
    sizes = np.array([(max(s.shape), min(s.shape)) for s in similarities])
    upright = [s.T if turn else s for s, turn in zip(similarities, turned, strict=True)]
    # An odd width, since lines a power of two apart fall on the same few places in a cache.
    shape = (len(sizes), int(sizes[:, 0].max()), int(sizes[:, 1].max()) | 1)
    cells = _concatenate_cells(upright)
    xp = array_namespace(cells)
    if xp is np:
        batch = PaddedBatch(np.full(shape, -np.inf), sizes[:, 0], sizes[:, 1], turned)
    else:
        padded = xp.full(shape, -xp.inf, dtype=cells.dtype, device=cells.device)
        facts = (sizes[:, 0].copy(), sizes[:, 1].copy(), turned)
        batch = PaddedBatch(padded, *(xp.as_tensor(fact, device=cells.device) for fact in facts))
    batch.similarity[batch.present] = cells
    return batch


def _concatenate_cells(matrices: Sequence[Array]) -> Array:
    """All cells in a row, in double precision."""
    xp = array_namespace(matrices[0])
    if xp is np:
        return np.concatenate([np.ravel(s) for s in matrices])
    cells = xp.cat([s.detach().reshape(-1) for s in matrices])
    if cells.device.type in _NUMPY_DEVICES:
        return cells.double().numpy()
    # One kind of accelerator has no double precision.
    return cells.float() if cells.device.type == "mps" else cells.double()


_MAX_FLAT_CELLS = 1 << 16  # laid out at a time


@dataclass(frozen=True, slots=True, eq=False)
class PackedMatrices:
    """The cells of many matrices in one row, each matrix with its long side down.

    `sizes` has the units of its long and of its short side for each.
    """

    cells: Array
    sizes: Array


# The shares of the long side's units, of the short side's units, and the steps taken by each.
LoopResult = tuple[Array, Array, Sequence[int]]


CompiledLoop = Callable[[PackedMatrices], LoopResult]


def solve_packed(problems: Sequence[Problem], loop: CompiledLoop) -> Iterator[Alignment]:
    """One inexact alignment per problem, none of them empty, in order."""
    portions = list(_iter_chunks(problems))
    yield from _unpack_alignments(
        portions, map_in_threads(loop, map(_pack_matrices, portions), len(portions))
    )


def _iter_chunks(problems: Sequence[Problem]) -> Iterator[list[Array]]:
    some: list[Array] = []
    count = 0
    for problem in problems:
        count += problem.similarity.size
        if some and count > _MAX_FLAT_CELLS:
            yield some
            some, count = [], problem.similarity.size
        some.append(problem.similarity)
    if some:
        yield some


def _pack_matrices(similarities: Sequence[Array]) -> PackedMatrices:
    upright = [s.T if s.shape[0] < s.shape[1] else s for s in similarities]
    cells = np.concatenate([s.ravel() for s in upright], dtype=np.float64)
    return PackedMatrices(cells, np.array([s.shape for s in upright]))


def _unpack_alignments(
    portions: Sequence[list[Array]], solved: Iterable[LoopResult]
) -> Iterator[Alignment]:
    for some, (by_long, by_short, steps) in zip(portions, solved, strict=True):
        stop = 0
        for (m, n), own in zip((s.shape for s in some), steps, strict=True):
            start, stop = stop, stop + m * n
            longs, shorts = by_long[start:stop], by_short[start:stop]
            if m < n:
                rows, cols = shorts.reshape(n, m).T, longs.reshape(n, m).T
            else:
                rows, cols = longs.reshape(m, n), shorts.reshape(m, n)
            yield Alignment(rows, cols, exact=False, steps=own)


F = TypeVar("F", bound=Callable[..., Any])


MAX_ARRAY_SECONDS = 0.25  # seconds that arrays may take before loading the compiler pays


_array_seconds = 0.0


def jit_compile(function: F) -> F:
    """The function as machine code, made at its first call and kept on disk for later processes."""
    from numba import njit

    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # neither beside the module nor in the user's folder is a place to keep it
        return cast(F, njit(nogil=True, error_model="numpy")(function))


def should_use_loops() -> bool:
    """Whether loops are to be used: not while arrays will do, nor where numba is missing."""
    return _array_seconds >= MAX_ARRAY_SECONDS and _has_numba()


@contextmanager
def track_array_time() -> Iterator[None]:
    """Around the work that loops could have done."""
    global _array_seconds
    start = time.perf_counter()
    yield
    _array_seconds += time.perf_counter() - start


@cache
def _has_numba() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:  # not installed, or not made for this numpy
        return False
    return True


T = TypeVar("T")


R = TypeVar("R")


_thread_count: ContextVar[int] = ContextVar("threads", default=1)


@contextmanager
def solver_threads(count: int) -> Iterator[None]:
    """Within this block solvers may use so many threads; each matrix stays on one."""
    before = _thread_count.set(count)
    try:
        yield
    finally:
        _thread_count.reset(before)


def map_in_threads(work: Callable[[T], R], portions: Iterable[T], count: int) -> Iterator[R]:
    """What `work` gives for each of `count` portions, in order; the thread that asks makes them."""
    workers = min(_thread_count.get(), count)
    if workers < 2:
        yield from map(work, portions)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, portions)
