"""How many threads aligning takes: one for small matrix products, all there are for loops."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from evenmatch.types import Run


def one_thread() -> AbstractContextManager[Any]:
    """Keep numpy's matrix products to one thread for as long as the context lasts.

    A similarity matrix takes some 20 microseconds on one thread and no less on two, which then
    wait for each other; beside other work that wait was measured at forty times the product.
    """
    limited: AbstractContextManager[Any] = _products().limit(limits=1)
    return limited


def threads_of(run: Run) -> int:
    """The threads a call may use: torch's own number where it names none and torch is there."""
    torch = sys.modules.get("torch")
    return run.threads or (torch.get_num_threads() if torch else 1)


@cache
def _products() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
