"""Solve many alignment problems at once, as padded arrays or with compiled loops.

`solve_in_batches` is the entry point; the solvers of `lisa.py` call it. It has two ways to solve,
which give the same result to the last bit:

- Arrays: problems of similar size are stacked into one padded array (`PaddedBatch`), and numpy or
  torch takes each step for all of them at once.
- Compiled loops (`compiled.py`): matrices are packed one after another, and numba loops over the
  cells of each. This takes a fifth of the time, but importing numba takes about a second, as long
  as arrays need for a thousand pairs. So a process begins with arrays and switches once they have
  taken `MAX_ARRAY_SECONDS`. Without numba, arrays do everything.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from evenmatch.alignment.assignment import map_in_threads
from evenmatch.types import Alignment, Array, Problem

# Seconds that arrays may take in a process before importing numba pays off.
MAX_ARRAY_SECONDS = 0.25

MAX_ITERATIONS = 1_000_000  # steps that a solver may be set to take

# Cells in one padded array. On a CPU more is no faster, since the arrays leave its cache; a GPU
# needs enough work per step to outlast the call that starts it.
_MAX_CELLS = 1 << 16
_MAX_CELLS_ON_DEVICE = 1 << 22

# Long sides of the matrices in a batch are rounded up to a multiple of this before sorting.
_BUCKET_SIZE = 4

# Cells in one chunk of packed matrices.
_MAX_FLAT_CELLS = 1 << 16

# Devices whose tensors share memory with numpy: numpy's steps are several times faster there.
_NUMPY_DEVICES = ("cpu",)

_array_seconds = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """Matrices stacked into one array, each with its long side as rows.

    `similarity` has shape (matrices, long, short), in double precision, and is -inf outside a
    smaller matrix. Matrices are sorted by decreasing length of their short side.
    """

    similarity: Array
    long: Array  # number of units on the long side of each matrix
    short: Array  # number of units on the short side of each matrix
    transposed: Array  # whether the candidate's units are the columns (it is the shorter side)

    @property
    def present(self) -> Array:
        """Boolean mask of the cells that are not padding."""
        _, long, short = self.similarity.shape
        in_rows = arange_like(long, self.similarity)[None, :] < self.long[:, None]
        in_cols = arange_like(short, self.similarity)[None, :] < self.short[:, None]
        return in_rows[:, :, None] & in_cols[:, None, :]


# Shares of the long side's units, shares of the short side's units, and steps taken per matrix.
SolverResult = tuple[Array, Array, Sequence[int]]
BatchSolve = Callable[[PaddedBatch], SolverResult]
# A compiled loop takes the cells of many matrices in one flat array, each matrix with its long side
# as rows, and their sizes (matrices, 2): the number of units on the long and on the short side.
CompiledLoop = Callable[[Array, Array], SolverResult]


def solve_in_batches(
    problems: Sequence[Problem], solve: BatchSolve, loop: CompiledLoop | None = None
) -> list[Alignment]:
    """Return one inexact alignment per problem, in order, on the device of its similarity.

    No operation of `solve` may mix the matrices of a batch; then an alignment is the same to the
    last bit in any batch. `loop` computes the same with compiled loops; it is used once that pays.
    """
    if loop is None or any(array_namespace(p.similarity) is not np for p in problems):
        return _solve_with_arrays(problems, solve)
    if should_use_loops():
        return _solve_with_loops(problems, loop)
    with track_array_time():
        return _solve_with_arrays(problems, solve)


def should_use_loops() -> bool:
    """Whether arrays have taken long enough to justify importing numba, and it is installed."""
    return _array_seconds >= MAX_ARRAY_SECONDS and _has_numba()


@contextmanager
def track_array_time() -> Iterator[None]:
    """Add the time of the block to what arrays have taken in this process."""
    global _array_seconds
    start = time.perf_counter()
    yield
    _array_seconds += time.perf_counter() - start


@cache
def _has_numba() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:  # not installed, or not compatible with this numpy
        return False
    return True


def array_namespace(values: Array) -> Any:
    """Return the module with the functions for these values: torch for tensors, else numpy."""
    # A caller with a tensor has imported torch already; no other caller should wait for it.
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(values, torch.Tensor) else np


def arange_like(count: int, like: Array) -> Array:
    """Return 0, 1, …, `count` - 1 as an array on the device of `like`."""
    xp = array_namespace(like)
    return np.arange(count) if xp is np else xp.arange(count, device=like.device)


def _empty_alignment(similarity: Array) -> Alignment:
    empty = array_namespace(similarity).zeros_like(similarity)
    return Alignment(empty, empty, exact=False, steps=0)


def _upright_alignment(long: Array, short: Array, transposed: bool, steps: int) -> Alignment:
    """Return the alignment with the candidate's units as rows, given the shares of each side."""
    rows, cols = (short.T, long.T) if transposed else (long, short)
    return Alignment(rows, cols, exact=False, steps=steps)


# Padded arrays: group problems by size, stack each group, solve it, cut the results out again.


def _solve_with_arrays(problems: Sequence[Problem], solve: BatchSolve) -> list[Alignment]:
    solved: dict[int, Alignment] = {}
    for indexes in _group_by_size([p.similarity for p in problems]):
        matrices = [problems[i].similarity for i in indexes]
        by_long, by_short, steps = solve(_stack_matrices(matrices))
        if (xp := array_namespace(matrices[0])) is not np:
            dtype = matrices[0].dtype
            by_long, by_short = (xp.as_tensor(plan).to(dtype) for plan in (by_long, by_short))
        for k, index in enumerate(indexes):
            m, n = matrices[k].shape
            cells = (k, slice(max(m, n)), slice(min(m, n)))
            solved[index] = _upright_alignment(by_long[cells], by_short[cells], m < n, steps[k])
    return [
        solved[i] if i in solved else _empty_alignment(p.similarity) for i, p in enumerate(problems)
    ]


def _group_by_size(similarities: Sequence[Array]) -> Iterator[list[int]]:
    """Yield indexes of problems to solve together: similar in size, on one device, not too many.

    Empty matrices are left out.
    """
    shapes = [tuple(s.shape) for s in similarities]
    by_device: dict[tuple[str, str], list[int]] = {}
    for index, (m, n) in enumerate(shapes):
        if m and n:
            by_device.setdefault(_device_key(similarities[index]), []).append(index)
    for (device, _), indexes in by_device.items():
        # Long sides within a few units of each other, then equal short sides: little is padding.
        indexes.sort(
            key=lambda i: (-(-max(shapes[i]) // _BUCKET_SIZE), min(shapes[i])), reverse=True
        )
        max_cells = _MAX_CELLS if device == "cpu" else _MAX_CELLS_ON_DEVICE
        for group in _split_group(indexes, shapes, max_cells):
            yield sorted(group, key=lambda i: -min(shapes[i]))


def _split_group(
    indexes: Sequence[int], shapes: Sequence[tuple[int, ...]], max_cells: int
) -> Iterator[list[int]]:
    """Yield groups that fit into `max_cells` padded cells and differ at most twofold in length."""
    group: list[int] = []
    long = short = 0
    for index in indexes:
        this_long, this_short = max(shapes[index]), min(shapes[index])
        new_long, new_short = max(long, this_long), max(short, this_short)
        if group and ((len(group) + 1) * new_long * new_short > max_cells or 2 * this_long < long):
            yield group
            group, new_long, new_short = [], this_long, this_short
        group.append(index)
        long, short = new_long, new_short
    if group:
        yield group


def _device_key(similarity: Array) -> tuple[str, str]:
    if array_namespace(similarity) is np:
        return "cpu", "numpy"
    return similarity.device.type, f"{similarity.device} {similarity.dtype}"


def _stack_matrices(similarities: Sequence[Array]) -> PaddedBatch:
    """Stack the matrices; all their cells are written with one indexed assignment."""
    transposed = np.array([s.shape[0] < s.shape[1] for s in similarities])
    sizes = np.array([(max(s.shape), min(s.shape)) for s in similarities])
    upright = [s.T if turn else s for s, turn in zip(similarities, transposed, strict=True)]
    # An odd width: rows a power of two apart would compete for the same few lines of the cache.
    shape = (len(sizes), int(sizes[:, 0].max()), int(sizes[:, 1].max()) | 1)
    cells = _concatenate_cells(upright)
    xp = array_namespace(cells)
    if xp is np:
        batch = PaddedBatch(np.full(shape, -np.inf), sizes[:, 0], sizes[:, 1], transposed)
    else:
        padded = xp.full(shape, -xp.inf, dtype=cells.dtype, device=cells.device)
        fields = (sizes[:, 0].copy(), sizes[:, 1].copy(), transposed)
        batch = PaddedBatch(padded, *(xp.as_tensor(f, device=cells.device) for f in fields))
    batch.similarity[batch.present] = cells
    return batch


def _concatenate_cells(matrices: Sequence[Array]) -> Array:
    """Return the cells of all matrices in one flat array, in double precision."""
    xp = array_namespace(matrices[0])
    if xp is np:
        return np.concatenate([np.ravel(s) for s in matrices])
    cells = xp.cat([s.detach().reshape(-1) for s in matrices])
    if cells.device.type in _NUMPY_DEVICES:
        return cells.double().numpy()
    # Apple's GPUs (mps) have no double precision.
    return cells.float() if cells.device.type == "mps" else cells.double()


# Compiled loops: pack matrices into flat chunks and solve the chunks on several threads.


def _solve_with_loops(problems: Sequence[Problem], loop: CompiledLoop) -> list[Alignment]:
    chunks = list(_iter_chunks([p.similarity for p in problems if p.similarity.size]))
    packed = map(_pack_matrices, chunks)
    results = map_in_threads(lambda each: loop(*each), packed, len(chunks))
    solved = _unpack_alignments(chunks, results)
    return [next(solved) if p.similarity.size else _empty_alignment(p.similarity) for p in problems]


def _iter_chunks(similarities: Sequence[Array]) -> Iterator[list[Array]]:
    """Yield consecutive matrices with at most `_MAX_FLAT_CELLS` cells together."""
    chunk: list[Array] = []
    cells = 0
    for similarity in similarities:
        cells += similarity.size
        if chunk and cells > _MAX_FLAT_CELLS:
            yield chunk
            chunk, cells = [], similarity.size
        chunk.append(similarity)
    if chunk:
        yield chunk


def _pack_matrices(similarities: Sequence[Array]) -> tuple[Array, Array]:
    upright = [s.T if s.shape[0] < s.shape[1] else s for s in similarities]
    cells = np.concatenate([s.ravel() for s in upright], dtype=np.float64)
    return cells, np.array([s.shape for s in upright])


def _unpack_alignments(
    chunks: Sequence[list[Array]], results: Iterable[SolverResult]
) -> Iterator[Alignment]:
    for chunk, (by_long, by_short, steps) in zip(chunks, results, strict=True):
        stop = 0
        for (m, n), count in zip((s.shape for s in chunk), steps, strict=True):
            start, stop = stop, stop + m * n
            shape = (max(m, n), min(m, n))
            long, short = by_long[start:stop].reshape(shape), by_short[start:stop].reshape(shape)
            yield _upright_alignment(long, short, m < n, count)
