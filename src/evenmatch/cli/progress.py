"""How far long work has come, told on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from evenmatch.cli.output import tell

Progress: TypeAlias = Callable[[int, int], None]

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def telling_progress(wanted: bool | None) -> Iterator[Progress | None]:
    """A function to call with (done, total) pairs, total 0 where unknown; None for silence."""
    terminal = sys.stderr.isatty()
    if wanted is False or (wanted is None and not terminal):
        yield None
    elif terminal:
        with _bar() as bar:
            yield bar
    else:
        yield _lines()


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = (
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pairs"),
        TimeRemainingColumn(),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=None)
        yield lambda done, total: display.update(task, completed=done, total=total or None)


def _lines() -> Progress:
    """Plain lines, for a log: not more often than every few seconds, and always the last."""
    last = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            tell(f"{done} of {total} pairs scored" if total else f"{done} pairs scored")
            last = time.monotonic()

    return line
