"""Errors and warnings as a command says them: one line each, on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from evenmatch.cli.output import tell
from evenmatch.errors import EvenmatchError


@contextmanager
def one_line_trouble(*, debug: bool = False) -> Iterator[None]:
    """End with exit 1 and one line where evenmatch or the system refuses; `debug` lets it fly."""
    _never_fail_to_print()
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        except (EvenmatchError, OSError) as error:
            if debug:
                raise
            tell(_one_line(error))
            sys.exit(1)


def _one_line(error: EvenmatchError | OSError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split())


def _never_fail_to_print() -> None:
    """Show a character that the terminal cannot take as its code, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text file


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    tell(f"warning: {' '.join(str(message).split())}")
