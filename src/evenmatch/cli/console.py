"""What a command says: results on standard output, everything else on standard error.

Errors and warnings as a command says them: one line each, on standard error.

How far long work has come, told on standard error.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TextIO, TypeAlias

from evenmatch.errors import EvenmatchError

_current_command: ContextVar[str] = ContextVar("command", default="")


@contextmanager
def record_command(arguments: Sequence[str]) -> Iterator[None]:
    """The command that is carried out meanwhile; results say it."""
    token = _current_command.set(shlex.join(["evenmatch", *arguments]))
    try:
        yield
    finally:
        _current_command.reset(token)


def print_output(text: str) -> None:
    """Print a result."""
    # Flushed here and not at the end, so that a reader who has gone is noticed while we run.
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def terminal_width() -> int:
    """How wide the terminal is; 0 where the result goes elsewhere and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    print_output(as_json(document))


def print_text_or_json(found: object, document: Mapping[str, Any], *, json: bool) -> None:
    """Print a result: its document for programs, or itself for people."""
    print_output(as_json(document) if json else str(found))


def as_json(document: Mapping[str, Any]) -> str:
    """A document as JSON to read and to parse, with the command that made it."""
    command = _current_command.get()
    return json.dumps({**document, **({"command": command} if command else {})}, indent=2)


def print_message(message: str) -> None:
    """Say something beside the result."""
    sys.stderr.write(f"evenmatch: {message}\n")
    sys.stderr.flush()


@contextmanager
def report_errors(*, debug: bool = False) -> Iterator[None]:
    """End with exit 1 and one line where evenmatch or the system refuses; `debug` lets it fly."""
    _escape_unprintable()
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        try:
            yield
        except (EvenmatchError, OSError) as error:
            if debug:
                raise
            print_message(_error_line(error))
            sys.exit(1)


def _error_line(error: EvenmatchError | OSError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _escape_unprintable() -> None:
    """Show a character that the terminal cannot take as its code, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text file


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print_message(f"warning: {' '.join(str(message).split())}")


ProgressCallback: TypeAlias = Callable[[int, int], None]


_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def show_progress(wanted: bool | None, word: str = "scored") -> Iterator[ProgressCallback | None]:
    """A function to call with (done, total) pairs, total 0 where unknown; None for silence.

    `word` says what is done with a pair.
    """
    terminal = sys.stderr.isatty()
    if wanted is False or (wanted is None and not terminal):
        yield None
    elif terminal:
        with _progress_bar(word) as bar:
            yield bar
    else:
        yield _progress_lines(word)


@contextmanager
def _progress_bar(word: str) -> Iterator[ProgressCallback]:
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
        pace = RateMeter()

        def show(done: int, total: int) -> None:
            rate = f"{pace.rate(done):.0f} a second"
            display.update(task, completed=done, total=total or None, rate=rate)

        yield show


def _progress_lines(word: str) -> ProgressCallback:
    """Plain lines, for a log: not more often than every few seconds, and always the last."""
    last = time.monotonic()
    pace = RateMeter()

    def line(done: int, total: int) -> None:
        nonlocal last
        rate = pace.rate(done)
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            known = f"{done} of {total} pairs {word}" if total else f"{done} pairs {word}"
            print_message(
                known + (f", {rate:.0f} a second" if rate else "") + _time_left(done, total, rate)
            )
            last = time.monotonic()

    return line


def _time_left(done: int, total: int, rate: float) -> str:
    if not rate or done >= total:
        return ""
    return f", {timedelta(seconds=round((total - done) / rate))} left"


class RateMeter:
    """How many pairs a second, since the first that were told: what an earlier run did is no work.

    >>> pace = RateMeter(iter([0.0, 10.0, 20.0]).__next__)
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
