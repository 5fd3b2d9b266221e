"""How far long work has come, told on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
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
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("", total=None, rate="")
        pace = Pace()

        def show(done: int, total: int) -> None:
            rate = f"{pace.rate(done):.0f} a second"
            display.update(task, completed=done, total=total or None, rate=rate)

        yield show


def _lines() -> Progress:
    """Plain lines, for a log: not more often than every few seconds, and always the last."""
    last = time.monotonic()
    pace = Pace()

    def line(done: int, total: int) -> None:
        nonlocal last
        rate = pace.rate(done)
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            known = f"{done} of {total} pairs scored" if total else f"{done} pairs scored"
            tell(known + (f", {rate:.0f} a second" if rate else "") + _left(done, total, rate))
            last = time.monotonic()

    return line


def _left(done: int, total: int, rate: float) -> str:
    if not rate or done >= total:
        return ""
    return f", {timedelta(seconds=round((total - done) / rate))} left"


class Pace:
    """How many pairs a second, since the first that were told: what an earlier run did is no work.

    >>> pace = Pace(iter([0.0, 10.0]).__next__)
    >>> pace.rate(500), pace.rate(700)
    (0.0, 20.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start: tuple[int, float] | None = None

    def rate(self, done: int) -> float:
        """Pairs a second up to now; 0.0 where that is not known yet."""
        now = self._clock()
        if self._start is None:
            self._start = (done, now)
        before, start = self._start
        return (done - before) / (now - start) if now > start else 0.0
