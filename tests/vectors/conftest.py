from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenmatch.vectors.quiet import quiet_transformers
from tests.vectors.families import FAMILIES, save

FolderOf = Callable[[str], Path]


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    """Gives the folder of a tiny model of a family; each is built once."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name not in made:
            family = next(f for f in FAMILIES if f.name == name)
            with quiet_transformers():
                made[name] = save(family, tmp_path_factory.mktemp(name))
        return made[name]

    return find
