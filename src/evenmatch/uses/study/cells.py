"""Work in cells: each is kept as a small file, so that a study goes on where it was stopped."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenmatch.data.rows import appearing
from evenmatch.errors import DataError, InputError

_ODD = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True, slots=True)
class Cells:
    """A folder of results, each with the recipe it was made by.

    A result is found again only by the same recipe, so other texts or settings are worked out
    anew, in place of the old.
    """

    folder: Path

    def find(self, name: str, recipe: dict[str, Any]) -> dict[str, Any] | None:
        """What was kept under a name for this recipe, if anything was."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            kept = json.loads(path.read_text("utf-8"))
            same: bool = kept["recipe"] == _plain(recipe)
            found: dict[str, Any] = kept["found"]
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"{path} is no result of a study; remove it, and it is redone"
            ) from None
        return found if same else None

    def keep(self, name: str, recipe: dict[str, Any], found: dict[str, Any]) -> None:
        """Keep a result; it appears whole or not at all."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with appearing(str(path)) as place:
            text = json.dumps({"recipe": recipe, "found": found}) + "\n"
            Path(place).write_text(text, "utf-8")

    def _path(self, name: str) -> Path:
        return self.folder / "cells" / f"{slug(name)}.json"


def slug(name: str) -> str:
    """A name as a file can have it.

    >>> slug("org/model layer 4, recursive(legacy=True)")
    'org-model-layer-4-recursive-legacy-True'
    """
    return _ODD.sub("-", name).strip("-")


def study_folder(path: str | Path) -> Path:
    """A folder for a study, made where it is not there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
    return folder


def _plain(recipe: dict[str, Any]) -> Any:
    """A recipe as it comes back from a file."""
    return json.loads(json.dumps(recipe))
