"""The rules of a row that every n-gram metric keeps: empty sides, flags, the best reference."""

from __future__ import annotations

from collections.abc import Callable

from evenmatch.types import NO_FLAGS, Pair, Score

NO_MATCH = frozenset({"no_match"})


def flags(pair: Pair) -> frozenset[str]:
    """Which sides are empty; the reference is where it is the one an empty candidate equals."""
    bare = [not reference.strip() for reference in pair.references]
    empty = not pair.candidate.strip()
    found = {"empty_candidate"} if empty else set()
    if all(bare) or (empty and any(bare)):
        found.add("empty_reference")
    return frozenset(found) if found else NO_FLAGS


def side_flags(candidate: str, reference: str) -> frozenset[str]:
    """Which of two texts are empty."""
    return flags(Pair(candidate, (reference,)))


def empty_score(pair: Pair) -> Score | None:
    """0 for an empty side and 1 for two, flagged; None where both sides hold text."""
    found = flags(pair)
    return Score(float(len(found) == 2), flags=found) if found else None


def overlap(value: float, precision: float | None = None, recall: float | None = None) -> Score:
    """A score of two sides that hold text, flagged where they have nothing in common."""
    return Score(value, precision, recall, NO_FLAGS if value else NO_MATCH)


def best(pair: Pair, score: Callable[[str, str], Score]) -> Score:
    """The highest score of the candidate over its references; ties go to the first."""
    if found := empty_score(pair):
        return found
    # An empty reference beside a full one scores 0, so it can be passed over.
    full = [reference for reference in pair.references if reference.strip()]
    return max((score(pair.candidate, r) for r in full), key=lambda each: each.value)
