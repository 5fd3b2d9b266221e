"""The checkpoint from which interrupted training resumes: one file format for all trainers."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenmatch.data.cards import check_output_folder
from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError
from evenmatch.files import explain_failed_write

CHECKPOINT_FILE = "checkpoint.pt"
SAVE_EVERY = 100  # steps between two checkpoints, where the trainer has no setting for it

_State = TypeVar("_State")

_READ_ERRORS = (
    pickle.UnpicklingError,
    RuntimeError,
    AttributeError,
    LookupError,
    TypeError,
    EOFError,
    OSError,
    ValueError,
)


@dataclass(frozen=True)
class CheckpointFile:
    """Tensors and plain values in one file of a folder, which is replaced atomically.

    `recipe` identifies model, data and settings; a file with a different recipe is refused.
    """

    folder: Path
    recipe: Mapping[str, Any]
    save_every: int = field(default_factory=lambda: SAVE_EVERY)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / CHECKPOINT_FILE

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the stored state by `state`."""
        import torch

        self.folder.mkdir(parents=True, exist_ok=True)
        with explain_failed_write(self.path), atomic_write(str(self.path)) as place:
            torch.save({**state, "recipe": dict(self.recipe)}, place)

    def read(self, parse: Callable[[Mapping[str, Any]], _State]) -> _State | None:
        """Return the stored state as converted by `parse`, or None if there is no file.

        A state that `parse` fails on is reported as damaged, so `parse` must have no side effects.
        """
        import torch

        for left in self.folder.glob(f".{CHECKPOINT_FILE}.*"):
            left.unlink()  # left by a process that was killed while writing
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, weights_only=True)
            same = state["recipe"] == dict(self.recipe)
            found = parse(state) if same else None
        except _READ_ERRORS as error:
            raise DataError(
                f"cannot read {self.path} ({type(error).__name__}); remove it to start again"
            ) from None
        if not same:
            raise DataError(
                f"{self.path} is from a run with other settings, texts or model; "
                "use those, choose another folder, or remove it to start again"
            )
        return found

    def remove(self) -> None:
        """Remove the file: the run is complete."""
        self.path.unlink(missing_ok=True)


def content_digest(value: Any) -> str:
    """Return a hash of JSON-compatible values, dataclasses and arrays, for the recipe of a run."""

    def to_plain(each: Any) -> Any:
        if isinstance(each, np.ndarray):
            return each.tolist()
        # one level: json asks again for what is inside, and asdict would copy all of it
        return {field.name: getattr(each, field.name) for field in fields(each)}

    return hashlib.sha256(json.dumps(value, default=to_plain).encode()).hexdigest()[:16]


def check_run_folder(out: str | PathLike[str]) -> Path:
    """Return the output folder; raise unless it is new, empty, or that of an unfinished run."""
    folder = Path(out).expanduser()
    return folder if is_unfinished(folder) else check_output_folder(out)


def is_unfinished(folder: Path) -> bool:
    """Return whether the folder holds a checkpoint, perhaps one that was being written."""
    return any(folder.glob(f"*{CHECKPOINT_FILE}*"))
