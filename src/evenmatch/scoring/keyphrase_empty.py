"""What is odd about two lists of phrases: a side without any, or nothing in common."""

from __future__ import annotations

from evenmatch.types import NO_FLAGS, Embedded


def empty_flags(x: Embedded, y: Embedded) -> frozenset[str]:
    """Which sides have no phrase."""
    sides = {"empty_candidate": x, "empty_reference": y}
    return frozenset(flag for flag, side in sides.items() if not len(side.weights))


def odd(value: float, x: Embedded, y: Embedded) -> frozenset[str]:
    """The flags of a score: those of its sides, empty sides, and no match where there is none."""
    found = empty_flags(x, y) | x.flags | y.flags
    return found or (NO_FLAGS if value else frozenset({"no_match"}))
