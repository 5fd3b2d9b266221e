"""Batches through a model, as many at a time as there are threads."""

from __future__ import annotations

from collections.abc import Callable

from evenmatch.types import Run


def side_by_side(one: Callable[[list[int]], None], batches: list[list[int]], run: Run) -> None:
    """Every batch, as many at a time as there are threads, each on one of them.

    Threads that share one batch wait for each other after every product; beside other work on
    the same cores that made them ten times slower than threads with a batch each.
    """
    from concurrent.futures import ThreadPoolExecutor

    import torch

    before = torch.get_num_threads()
    threads = run.threads or before
    workers = min(threads, len(batches)) if run.device == "cpu" else 1
    torch.set_num_threads(max(1, threads // max(workers, 1)))
    try:
        with ThreadPoolExecutor(max(workers, 1)) as pool:
            for _ in pool.map(one, batches):
                pass
    finally:
        torch.set_num_threads(before)
