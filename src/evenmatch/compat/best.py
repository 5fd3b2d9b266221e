"""Precision, recall and F of each candidate, each the best over its references on its own."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np

from evenmatch.scoring.ask import score
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.pairs import make_pairs
from evenmatch.types import Array, Pair, Scores


def best_scores(
    metrics: Sequence[AlignMetric], cands: Sequence[str], refs: Sequence[object], device: str
) -> Array:
    """(metrics, candidates, 3); a candidate's P, R and F may come from different references."""
    pairs = make_pairs(cands, refs)
    candidates = [pair.candidate for pair in pairs for _ in pair.references]
    references = [reference for pair in pairs for reference in pair.references]
    if not pairs:
        return np.zeros((len(metrics), 0, 3))
    found = list(score(candidates, references, list(metrics), device=device).values())
    _warn_of_flags(found[0])
    values = np.array([[(s.precision, s.recall, s.value) for s in f.segments] for f in found])
    return np.maximum.reduceat(values, _starts(pairs), axis=1)


def _starts(pairs: Sequence[Pair]) -> Array:
    counts = [len(pair.references) for pair in pairs]
    return np.cumsum([0, *counts[:-1]])


def _warn_of_flags(scores: Scores) -> None:
    """Say what tensors of numbers cannot: which kinds of pairs were odd, and how many."""
    counts = Counter(flag for segment in scores.segments for flag in segment.flags)
    if counts:
        said = ", ".join(f"{count} {flag}" for flag, count in sorted(counts.items()))
        warnings.warn(
            f"of {len(scores.segments)} pairs some are flagged: {said}; evenmatch.score says "
            "which (to silence: warnings.filterwarnings('ignore', message='of .* are flagged'))",
            stacklevel=4,
        )
