"""Layers chosen by ratings on this machine, each with the content hash of its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evenmatch.storage.contents import write_note
from evenmatch.storage.folders import cache_dir
from evenmatch.vectors.checkpoints import Checkpoint


def choice_file(checkpoint: Checkpoint) -> Path:
    """Where the choice for a model of that content is kept."""
    return cache_dir() / "layers" / f"{checkpoint.digest}.json"


def write_choice(checkpoint: Checkpoint, layer: int, facts: Mapping[str, object]) -> None:
    """Keep a choice with what it rests on; the one before it is replaced."""
    record = {"layer": layer, **facts}
    write_note(choice_file(checkpoint), json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def read_choice(checkpoint: Checkpoint, deepest: int) -> int | None:
    """The layer chosen for a model of that content, if one was; a damaged note is none."""
    # Read-only folders, notes cut short and notes of another shape are as good as absent.
    with suppress(OSError, ValueError, KeyError, TypeError):
        layer = json.loads(choice_file(checkpoint).read_text("utf-8"))["layer"]
        if type(layer) is int and 0 <= layer <= deepest:
            return layer
    return None
