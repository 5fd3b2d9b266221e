"""What commands that train for hours take, so that they can do it in pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from evenmatch.cli.options import count

Minutes: TypeAlias = Annotated[
    int, count("Pause after so long, 0 for never; then run again.", least=0)
]


@dataclass(frozen=True)
class Pieces:
    """How long training goes on at a time, and with how many threads, as options."""

    minutes: Minutes = 40
    threads: Annotated[int, count("Threads to train with.")] = 1


def time_is_up(minutes: float) -> Callable[[], bool]:
    """Whether so many minutes have passed from now on; 0 never do."""
    start = time.monotonic()
    return lambda: bool(minutes) and time.monotonic() - start > 60 * minutes
