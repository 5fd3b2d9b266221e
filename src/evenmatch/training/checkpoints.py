"""A file with everything that training needs to go on where it was stopped."""

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
    """Tensors and plain values in one file, replaced whole or not at all.

    `recipe` says what is trained on what; a file of another recipe is refused.
    """

    path: Path
    recipe: Mapping[str, Any]

    def write(self, state: Mapping[str, Any]) -> None:
        """Put a state in the place of the one before."""
        import torch

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(str(self.path)) as place:
            torch.save({**state, "recipe": dict(self.recipe)}, place)

    def read(self, taken: Callable[[Mapping[str, Any]], _State]) -> _State | None:
        """What `taken` makes of the state; None where there is no file.

        A state that `taken` fails on counts as damaged, so it must change nothing before it is
        done.
        """
        import torch

        for left in self.path.parent.glob(f".{self.path.name}.*"):
            left.unlink()  # of a process that was killed while it wrote
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, weights_only=True)
            same = state["recipe"] == dict(self.recipe)
            found = taken(state) if same else None
        except _READ_ERRORS as error:
            raise DataError(
                f"cannot read {self.path} ({type(error).__name__}); remove it to start again"
            ) from None
        if not same:
            raise DataError(
                f"{self.path} is from a run with other settings, texts or model; "
                "use those, or another folder, or remove it to start again"
            )
        return found
