"""Alignments that give each unit at most one partner: greedy, mutual best and linear assignment.

These are the shortest examples of a solver. A one-to-one solver that can miss the greatest total
similarity sets `exact=False` in its alignments. Solvers that take longer may share their work over
threads (`map_in_threads`, at the end), as many as `solver_threads` allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import numpy as np

from evenmatch.registry import register
from evenmatch.types import Alignment, Array, Problem

T = TypeVar("T")
R = TypeVar("R")

_thread_count: ContextVar[int] = ContextVar("threads", default=1)


@register("alignment", "greedy")
@dataclass(frozen=True)
class Greedy:
    """Each unit takes its most similar partner; partners may be taken more than once (BERTScore).

    Ties go to the lower index.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem; rows and columns choose independently."""
        similarities = [np.asarray(problem.similarity) for problem in problems]
        shapes = [similarity.shape for similarity in similarities]
        by_rows, by_cols = zero_matrices(shapes), zero_matrices(shapes)
        for similarity, rows, cols in zip(similarities, by_rows, by_cols, strict=True):
            if similarity.size:
                m, n = similarity.shape
                rows[np.arange(m), similarity.argmax(1)] = 1.0
                cols[similarity.argmax(0), np.arange(n)] = 1.0
        return list(map(Alignment, by_rows, by_cols))


@register("alignment", "mutual")
@dataclass(frozen=True)
class Mutual:
    """Match two units if each is the other's most similar one; the others stay unmatched.

    Ties go to the lower index.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem: the cells that `greedy` chooses from both sides."""
        plans = [found.rows * found.cols for found in Greedy()(problems)]
        return [Alignment(plan, plan, exact=False) for plan in plans]


@register("alignment", "lsa")
@dataclass(frozen=True)
class Lsa:
    """The one-to-one alignment with the greatest total similarity: min(m, n) pairs (F_DISC).

    The remaining units of the longer side stay unmatched and get no credit.
    """

    def __call__(self, problems: Sequence[Problem]) -> list[Alignment]:
        """Align each problem exactly, with SciPy's shortest augmenting paths."""
        from scipy.optimize import linear_sum_assignment

        similarities = [np.asarray(problem.similarity) for problem in problems]
        plans = zero_matrices([similarity.shape for similarity in similarities])
        for similarity, plan in zip(similarities, plans, strict=True):
            plan[linear_sum_assignment(similarity, maximize=True)] = 1.0
        return [Alignment(plan, plan) for plan in plans]


def zero_matrices(shapes: Iterable[tuple[int, ...]]) -> list[Array]:
    """Return a matrix of zeros per shape; views of one array take less time than an array each."""
    shapes = list(shapes)
    stops = list(accumulate(m * n for m, n in shapes))
    cells = np.zeros(stops[-1] if stops else 0)
    return [
        cells[stop - m * n : stop].reshape(m, n) for (m, n), stop in zip(shapes, stops, strict=True)
    ]


@contextmanager
def solver_threads(count: int) -> Iterator[None]:
    """Let solvers use up to `count` threads within the block; a matrix stays on one thread."""
    before = _thread_count.set(count)
    try:
        yield
    finally:
        _thread_count.reset(before)


def map_in_threads(work: Callable[[T], R], chunks: Iterable[T], count: int) -> Iterator[R]:
    """Yield `work(chunk)` for each of `count` chunks, in order.

    The chunks themselves are produced on the calling thread.
    """
    workers = min(_thread_count.get(), count)
    if workers < 2:
        yield from map(work, chunks)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, chunks)
