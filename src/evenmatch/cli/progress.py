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
def telling_progress(wanted: bool | None, word: str = "scored") -> Iterator[Progress | None]:
    """A function to call with (done, total) pairs, total 0 where unknown; None for silence.

    `word` says what is done with a pair.
    """
    terminal = sys.stderr.isatty()
    if wanted is False or (wanted is None and not terminal):
        yield None
    elif terminal:
        with _bar(word) as bar:
            yield bar
    else:
        yield _lines(word)


@contextmanager
def _bar(word: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"pairs {word}"),
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


def _lines(word: str) -> Progress:
    """Plain lines, for a log: not more often than every few seconds, and always the last."""
    last = time.monotonic()
    pace = Pace()

    def line(done: int, total: int) -> None:
        nonlocal last
        rate = pace.rate(done)
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            known = f"{done} of {total} pairs {word}" if total else f"{done} pairs {word}"
            tell(known + (f", {rate:.0f} a second" if rate else "") + _left(done, total, rate))
            last = time.monotonic()

    return line


def _left(done: int, total: int, rate: float) -> str:
    if not rate or done >= total:
        return ""
    return f", {timedelta(seconds=round((total - done) / rate))} left"


class Pace:
    """How many pairs a second, since the first that were told: what an earlier run did is no work.

    >>> pace = Pace(iter([0.0, 10.0, 20.0]).__next__)
    >>> pace.rate(500), pace.rate(700), pace.rate(16)  # fewer than before: other work has begun
    (0.0, 20.0, 0.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = (0, 0.0)
        self._last: int | None = None

    def rate(self, done: int) -> float:
        """Pairs a second up to now; 0.0 where that is not known yet."""
        now = self._clock()
        if self._last is None or done < self._last:
            self._start = (done, now)
        self._last = done
        before, start = self._start
        return (done - before) / (now - start) if now > start else 0.0
