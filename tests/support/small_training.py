"""Small training data and a small model, to train in seconds."""

from __future__ import annotations

import json
from pathlib import Path

from evenmatch.models.loading import quiet_transformers
from tests.support.model_families import FAMILIES, save

REFERENCES = (
    "the quick brown fox jumps over the lazy dog",
    "a cat sat on the mat and looked at the dog",
    "rain is expected in the north tomorrow",
    "pack my box with five dozen liquor jugs",
    "prices fell by 3 percent to 12 euros",
    "the dog looked at the lazy cat on the mat",
)


def save_tiny(folder: Path) -> str:
    """Save a BERT with four small blocks and random weights."""
    bert = next(family for family in FAMILIES if family.name == "bert")
    with quiet_transformers():
        return str(save(bert, folder))


def write_table(folder: Path) -> str:
    """Write ratings equal to the share of reference words in each output."""
    path = folder / "rated.jsonl"
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
