"""What a paper says of two arms, and whether it is seen here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenmatch.stats.intervals import Interval
from evenmatch.uses.study.seeds import Seeded, cell, gap, seed_gaps

SEEN, REVERSE, UNSEEN = "seen", "the reverse is seen", "not seen"


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, and by metric or test set the difference seen here with its verdict."""

    said: str
    seen: Mapping[str, tuple[Interval, str]]


def judged(one: Seeded, less: Seeded, metric: str) -> tuple[Interval, str]:
    """The difference, and whether it goes the way claimed: beyond chance and for every seed."""
    seen, gaps = gap(one, less, metric), seed_gaps(one, less, metric)
    if seen.low > 0 and min(gaps) > 0:
        return seen, SEEN
    if seen.high < 0 and max(gaps) < 0:
        return seen, REVERSE
    return seen, UNSEEN


def sentence(claim: Claim) -> str:
    """A claim as a line to read; differences are times 100."""
    parts = [
        f"{where} {cell(seen, signed=True, times=100, places=2)}, {verdict}"
        for where, (seen, verdict) in claim.seen.items()
    ]
    return f"{claim.said}: {'; '.join(parts)}"
