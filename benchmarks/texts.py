"""Real text for benchmarks: WMT if available, otherwise the bundled sample repeated."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

from evenmatch.data.pairs import read_everyday_sample


def pairs(count: int, seed: int = 0) -> tuple[list[str], list[str], str]:
    """Candidates, references and their source: first two systems' outputs per reference."""
    rows = [row for pair in ("de-en", "fi-en", "zh-en") for row in _wmt("wmt19-da", pair)]
    rng = random.Random(seed)
    rng.shuffle(rows)
    drawn = [(row, rng.sample(sorted(row["out"]), 2)) for row in rows]
    found = [(row["out"][system], row["ref"]) for row, two in drawn for system in two]
    name = "WMT19 de-en, fi-en, zh-en: two systems' outputs per reference"
    if 0 < len(found) < count:
        name += ", then the other systems'"
        found += [
            (o, row["ref"]) for row, two in drawn for s, o in row["out"].items() if s not in two
        ]
    if not found:
        name = "the bundled sample, each text numbered to be distinct"
        sample = [pair for own in read_everyday_sample().values() for pair in own]
        items = [(pair.candidate, pair.references[0]) for pair in sample]
        for n in range(count):
            candidate, reference = items[n % len(items)]
            found.append((f"{candidate} ({n})", f"{reference} ({n // 2})"))
    return [c for c, _ in found[:count]], [r for _, r in found[:count]], name


def systems(references: int) -> tuple[dict[str, list[str]], list[str]] | None:
    """The sixteen judged systems of WMT20 zh-en with that many references, or None without data."""
    rows = [row for row in _wmt("wmt20-da", "zh-en") if row["ref"]][:references]
    if not rows:
        return None
    judged = sorted(s for s in rows[0]["out"] if not s.startswith("trans-"))
    return {s: [row["out"][s] for row in rows] for s in judged}, [row["ref"] for row in rows]


def _wmt(year: str, pair: str) -> list[dict[str, Any]]:
    path = Path(os.environ.get("EVENMATCH_DATA", "")) / year / f"{pair}.jsonl.gz"
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
