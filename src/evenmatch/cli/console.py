"""Output of commands: results on standard output; messages and progress on standard error.

`report_errors` turns errors and warnings into one line each; `show_progress` shows how many pairs
are done.
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
from typing import Any, TypeAlias

from evenmatch.data.tables import wrap_prose
from evenmatch.errors import DataError, EvenmatchError

_SECONDS_BETWEEN_LINES = 5.0
_MAX_LINE = 500  # characters of a message
_INTERRUPTED = 130  # exit code after Ctrl-C


_current_command: ContextVar[str] = ContextVar("command", default="")


@contextmanager
def record_command(arguments: Sequence[str]) -> Iterator[None]:
    """Record the command line that is running, so that `as_json` can add it to results."""
    token = _current_command.set(shlex.join(["evenmatch", *arguments]))
    try:
        yield
    finally:
        _current_command.reset(token)


def print_output(text: str) -> None:
    """Print a result."""
    if sys.stdout is None:
        raise DataError("standard output is closed; open it, or write to a file")
    # Flush now, so that a closed pipe raises here and not when the process exits.
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def terminal_width() -> int:
    """Return the width of the terminal, or 0 (no limit) if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else 0


def print_text_or_json(found: object, document: Mapping[str, Any], *, json: bool) -> None:
    """Print a result as text, or its document as JSON."""
    print_output(as_json(document) if json else wrap_prose(str(found)))


def current_command() -> str:
    """Return the command line that is running; '' outside of one."""
    return _current_command.get()


def as_json(document: Mapping[str, Any]) -> str:
    """Return a document as indented JSON, with the command that produced it."""
    command = current_command()
    return json.dumps({**document, **({"command": command} if command else {})}, indent=2)


def print_message(message: str) -> None:
    """Print a message on standard error, unless that is closed; a long one is cut."""
    if sys.stderr is None:
        return
    line = f"evenmatch: {message}"
    sys.stderr.write((line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 1]}…") + "\n")
    sys.stderr.flush()


def print_first(lines: Sequence[object], most: int, prefix: str = "") -> None:
    """Print the first lines as messages, and how many more there are."""
    for line in lines[:most]:
        print_message(f"{prefix}{line}")
    if len(lines) > most:
        print_message(f"{prefix}and {len(lines) - most} more")


@contextmanager
def report_errors(*, debug: bool = False) -> Iterator[None]:
    """Print an expected error as one line and exit with 1; with `debug`, raise it instead."""
    _escape_unprintable()
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        try:
            yield
        except (EvenmatchError, OSError, RecursionError, MemoryError) as error:
            if debug:
                raise
            print_message(_error_line(error))
            sys.exit(1)
        except SystemExit as end:
            if end.code == _INTERRUPTED:
                print_message("interrupted; the same command continues a run that saves its state")
            raise


def _error_line(error: Exception) -> str:
    match error:
        case RecursionError():
            return "the input is nested too deeply"
        case MemoryError():
            return "not enough memory; give smaller input or settings"
        case OSError() if error.strerror:
            return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _escape_unprintable() -> None:
    """Print characters that the terminal cannot encode as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text file


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    print_message(f"warning: {' '.join(str(message).split())}")


ProgressCallback: TypeAlias = Callable[[int, int], None]


@contextmanager
def show_progress(wanted: bool | None, word: str = "scored") -> Iterator[ProgressCallback | None]:
    """Yield a progress callback that takes (done, total), or None if progress is not shown.

    A total of 0 means unknown. `word` says what is done with a pair, for example 'scored'.
    """
    terminal = sys.stderr is not None and sys.stderr.isatty()
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
            rate = f"{pace.rate(done):.0f} pairs/s"
            display.update(task, completed=done, total=total or None, rate=rate)

        yield show


def _progress_lines(word: str) -> ProgressCallback:
    """Return a callback that prints a line every few seconds, and always the last one."""
    last = time.monotonic()
    pace = RateMeter()

    def line(done: int, total: int) -> None:
        nonlocal last
        rate = pace.rate(done)
        if done == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            shown = f"{done} of {total} pairs {word}" if total else f"{done} pairs {word}"
            if rate:
                shown += f", {rate:.0f} pairs/s"
                if done < total:
                    shown += f", {timedelta(seconds=round((total - done) / rate))} left"
            print_message(shown)
            last = time.monotonic()

    return line


class RateMeter:
    """Pairs per second since the first call, so that pairs of an earlier run do not count.

    >>> pace = RateMeter(iter([0.0, 10.0, 20.0]).__next__)
    >>> pace.rate(500), pace.rate(700), pace.rate(16)  # fewer than before: a new task
    (0.0, 20.0, 0.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = (0, 0.0)
        self._last: int | None = None

    def rate(self, done: int) -> float:
        """Return the pairs per second so far; 0.0 if not known yet."""
        now = self._clock()
        if self._last is None or done < self._last:
            self._start = (done, now)
        self._last = done
        before, start = self._start
        return (done - before) / (now - start) if now > start else 0.0
