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
from typing import TypeVar

import numpy as np

from evenmatch.registry import register
from evenmatch.types import Alignment, Problem

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
        alignments = []
        for problem in problems:
            similarity = np.asarray(problem.similarity)
            m, n = similarity.shape
            rows, cols = np.zeros((m, n)), np.zeros((m, n))
            if m and n:
                rows[np.arange(m), similarity.argmax(1)] = 1.0
                cols[similarity.argmax(0), np.arange(n)] = 1.0
            alignments.append(Alignment(rows, cols))
        return alignments


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

        alignments = []
        for problem in problems:
            similarity = np.asarray(problem.similarity)
            plan = np.zeros(similarity.shape)
            plan[linear_sum_assignment(similarity, maximize=True)] = 1.0
            alignments.append(Alignment(plan, plan))
        return alignments


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
