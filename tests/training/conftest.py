from __future__ import annotations

from pathlib import Path

import pytest

from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import read_ratings
from tests.support.small_training import save_tiny, write_table


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="transformers is not installed")
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_table(tmp_path_factory.mktemp("ratings"))


@pytest.fixture(scope="session")
def rated(table: str) -> list[RatedSet]:
    """The same as rated sets."""
    return read_ratings(Path(table))
