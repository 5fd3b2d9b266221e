"""Work that needs no Python while it runs, on as many threads as a call may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_threads: ContextVar[int] = ContextVar("threads", default=1)


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Within this block solvers may use so many threads; each matrix stays on one."""
    before = _threads.set(count)
    try:
        yield
    finally:
        _threads.reset(before)


def spread(work: Callable[[T], R], portions: Iterable[T], count: int) -> Iterator[R]:
    """What `work` gives for each of `count` portions, in order; the thread that asks makes them."""
    workers = min(_threads.get(), count)
    if workers < 2:
        yield from map(work, portions)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, portions)
