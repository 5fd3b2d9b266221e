"""Small matrix products on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Keep numpy's matrix products to one thread for as long as the context lasts.

    A similarity matrix takes some 20 microseconds on one thread and no less on two, which then
    wait for each other; beside other work that wait was measured at forty times the product.
    """
    limited: AbstractContextManager[Any] = _products().limit(limits=1)
    return limited


@cache
def _products() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
