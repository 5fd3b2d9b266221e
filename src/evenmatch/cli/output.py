"""What a command says: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_command: ContextVar[str] = ContextVar("command", default="")


@contextmanager
def commanded(arguments: Sequence[str]) -> Iterator[None]:
    """The command that is carried out meanwhile; results say it."""
    token = _command.set(shlex.join(["evenmatch", *arguments]))
    try:
        yield
    finally:
        _command.reset(token)


def say(text: str) -> None:
    """Print a result."""
    # Flushed here and not at the end, so that a reader who has gone is noticed while we run.
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def line_width() -> int:
    """How wide the terminal is; 0 where the result goes elsewhere and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def say_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    say(as_json(document))


def say_either(found: object, document: Mapping[str, Any], *, json: bool) -> None:
    """Print a result: its document for programs, or itself for people."""
    say(as_json(document) if json else str(found))


def as_json(document: Mapping[str, Any]) -> str:
    """A document as JSON to read and to parse, with the command that made it."""
    command = _command.get()
    return json.dumps({**document, **({"command": command} if command else {})}, indent=2)


def tell(message: str) -> None:
    """Say something beside the result."""
    sys.stderr.write(f"evenmatch: {message}\n")
    sys.stderr.flush()
