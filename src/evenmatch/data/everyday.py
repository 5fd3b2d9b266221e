"""The small sample that comes with evenmatch: four imagined systems, several references each."""

from __future__ import annotations

import json
from importlib.resources import files

from evenmatch.types import Pair


def read_everyday() -> dict[str, list[Pair]]:
    """The pairs of each system, all in the order of the same twelve items.

    >>> {system: len(pairs) for system, pairs in read_everyday().items()}
    {'good': 12, 'repetitive': 12, 'terse': 12, 'wrong': 12}
    """
    text = (files("evenmatch.data") / "sample" / "everyday.jsonl").read_text("utf-8")
    systems: dict[str, list[Pair]] = {}
    for line in text.splitlines():
        item = json.loads(line)
        for system, candidate in item["systems"].items():
            systems.setdefault(system, []).append(Pair(candidate, tuple(item["references"])))
    return systems
