"""Pairs scored some thousands at a time, for metrics that share nothing beyond such a portion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evenmatch.scoring.pairs import check_pairs
from evenmatch.types import Pair, Run, Score
from evenmatch.vectors.packing import portions


def scored_in_portions(
    pairs: Sequence[Pair], run: Run, scored: Callable[[Sequence[Pair], Run], Iterable[Score]]
) -> tuple[Score, ...]:
    """The scores that `scored` gives each portion, in order, telling progress as it goes."""
    check_pairs(pairs)
    segments: list[Score] = []
    for some in portions(pairs):
        segments += scored(some, run)
        if run.progress:
            run.progress(len(segments), len(pairs))
    return tuple(segments)
