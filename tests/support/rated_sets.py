"""Synthetic ratings: five systems with a decreasing share of correct words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import read_ratings

WORDS = "the a cat dog rain sun fell rose quickly slowly over under hill house old new".split()
SHARES = {"best": 0.95, "good": 0.85, "fair": 0.7, "weak": 0.5, "poor": 0.3}


def rated_rows(subsets: tuple[str, ...], segments: int = 12) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = []
    for subset in subsets:
        for segment in range(segments):
            words = rng.choice(WORDS, rng.integers(4, 12)).tolist()
            for system, share in SHARES.items():
                own = [w if rng.random() < share else str(rng.choice(WORDS)) for w in words]
                rows.append(
                    {
                        "subset": subset,
                        "system": system,
                        "segment": f"{segment}",
                        "candidate": " ".join(own),
                        "references": [" ".join(words)],
                        "rating": 100 * share + 10 * rng.normal(),
                    }
                )
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rated_sets(folder: Path, *subsets: str) -> list[RatedSet]:
    return read_ratings(write_rows(folder / "mine.jsonl", rated_rows(subsets)))
