"""Loops over cells as machine code (numba), for what takes several times as long on whole arrays.

Loading the compiler takes about a second, as long as a thousand pairs take without it. So a process
begins with arrays, and loads it only once they have cost it some time. Which of the two was at work
cannot be told from the outcome: it is the same to the last bit. Without numba arrays do everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

PATIENCE = 0.25  # seconds that arrays may take before loading the compiler pays
_spent = 0.0


def compiled(function: F) -> F:
    """The function as machine code, made at its first call and kept on disk for later processes."""
    from numba import njit

    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # neither beside the module nor in the user's folder is a place to keep it
        return cast(F, njit(nogil=True, error_model="numpy")(function))


def pay() -> bool:
    """Whether loops are to be used: not while arrays will do, nor where numba is missing."""
    return _spent >= PATIENCE and _can_be_made()


@contextmanager
def by_arrays() -> Iterator[None]:
    """Around the work that loops could have done."""
    global _spent
    start = time.perf_counter()
    yield
    _spent += time.perf_counter() - start


@cache
def _can_be_made() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:  # not installed, or not made for this numpy
        return False
    return True
