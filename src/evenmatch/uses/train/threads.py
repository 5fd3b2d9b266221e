"""Training on so many threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def training_threads(count: int) -> Iterator[None]:
    """Keep torch to so many threads for as long as the context lasts.

    Sums come out a little different on another number of threads, so that training goes on
    exactly only on the number it was begun on.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
