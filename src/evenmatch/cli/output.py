"""What a command says: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any


def say(text: str) -> None:
    """Print a result."""
    # Flushed here and not at the end, so that a reader who has gone is noticed while we run.
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def line_width() -> int:
    """How wide the terminal is; 0 where the result goes elsewhere and lines may be long."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def say_json(document: Any) -> None:
    """Print one JSON document."""
    say(as_json(document))


def as_json(document: Any) -> str:
    """A document as JSON to read and to parse."""
    return json.dumps(document, indent=2)


def tell(message: str) -> None:
    """Say something beside the result."""
    sys.stderr.write(f"evenmatch: {message}\n")
    sys.stderr.flush()
