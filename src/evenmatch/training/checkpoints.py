"""The checkpoint file from which interrupted training resumes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.data.scores import atomic_write
from evenmatch.errors import DataError

_State = TypeVar("_State")

_READ_ERRORS = (pickle.UnpicklingError, RuntimeError, KeyError, TypeError, EOFError, ValueError)


@dataclass(frozen=True)
class CheckpointFile:
    """Tensors and plain values in one file that is replaced atomically.

    `recipe` identifies model, data and settings; a file with a different recipe is refused.
    """

    path: Path
    recipe: Mapping[str, Any]

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the stored state by `state`."""
        import torch

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(str(self.path)) as place:
            torch.save({**state, "recipe": dict(self.recipe)}, place)

    def read(self, parse: Callable[[Mapping[str, Any]], _State]) -> _State | None:
        """Return the stored state as converted by `parse`, or None if there is no file.

        A state that `parse` fails on is reported as damaged, so `parse` must have no side effects.
        """
        import torch

        for left in self.path.parent.glob(f".{self.path.name}.*"):
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
