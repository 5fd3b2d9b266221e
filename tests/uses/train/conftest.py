from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_reading import read_ratings
from evenmatch.vectors.quiet import quiet_transformers
from tests.vectors.families import FAMILIES, save

REFERENCES = (
    "the quick brown fox jumps over the lazy dog",
    "a cat sat on the mat and looked at the dog",
    "rain is expected in the north tomorrow",
    "pack my box with five dozen liquor jugs",
    "prices fell by 3 percent to 12 euros",
    "the dog looked at the lazy cat on the mat",
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a BERT with four small blocks and random weights."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    bert = next(family for family in FAMILIES if family.name == "bert")
    with quiet_transformers():
        return str(save(bert, tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of ratings: the share of the reference's words that each output has."""
    path = tmp_path_factory.mktemp("ratings") / "rated.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _rows()))
    return str(path)


def _rows() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for segment, reference in enumerate(REFERENCES):
        words = reference.split()
        other = REFERENCES[segment - 1].split()
        for kept in range(len(words) + 1):
            candidate = " ".join([*words[:kept], *other[kept : len(words)]])
            found.append(
                {
                    "system": f"keeps {kept}",
                    "segment": str(segment),
                    "candidate": candidate,
                    "references": [reference],
                    "rating": 100 * kept / len(words),
                    "subset": "ab"[segment % 2],
                }
            )
    return found


@pytest.fixture(scope="session")
def rated(table: str) -> list[RatedSet]:
    """The same as rated sets."""
    return read_ratings(Path(table))
