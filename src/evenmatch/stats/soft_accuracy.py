"""Soft pairwise accuracy of systems, SPA (Thompson, Mathur, Deutsch & Khayrallah 2024).

Pairwise accuracy asks whether a metric orders two systems as humans do. SPA asks whether it is as
sure of the order: it is the mean over pairs of systems of 1 - |p - q|, where p and q are the
p-values of the two systems' difference by the humans and by the metric. A p-value comes from a
paired permutation test, which exchanges the two systems' outputs of random segments. The same
exchanges serve all pairs of systems, so that one matrix product tests them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.panel import Flags, Floats, Panel, blocks

_EXCHANGES = 1000
_SEED = 0
_ROUNDING = 1e-9  # sums this close, as a share of the sum of all differences, are equal


def prepare_soft_accuracy(panel: Panel) -> Callable[[Floats, Floats], Floats]:
    """Prepare each metric's SPA as a function of the weights of systems.

    Only segments with a score of every system by every metric and the humans count.
    """
    scores, human = _complete_segments(panel)
    signs = _exchange_signs(human.shape[-1])
    agreements = 1 - abs(system_p_values(scores, signs) - system_p_values(human[None], signs))

    def accuracy(systems: Floats, segments: Floats) -> Floats:
        if (segments != 1).any():
            raise InputError("soft_accuracy resamples systems; use another method for segments")
        # copies of a system do not form a pair
        pairs = systems.sum(-1) ** 2 - (systems**2).sum(-1)
        alike = np.einsum("wi,mij,wj->wm", systems, agreements, systems)
        own = np.einsum("wi,mii->wm", systems**2, agreements)
        known = (pairs > 0)[:, None] & bool(human.shape[-1])
        return np.where(known, (alike - own) / np.where(pairs > 0, pairs, 1.0)[:, None], np.nan)

    return accuracy


def permute_soft_accuracy(
    panel: Panel, masks: Iterable[Flags]
) -> Iterator[tuple[int, int, Floats]]:
    """Yield the differences in SPA of each pair of metrics, one per mask of swapped outputs."""
    scores, human = _complete_segments(panel)
    complete = ~(np.isnan(panel.metrics).any((0, 1)) | np.isnan(panel.human).any(0))
    swaps = np.concatenate([mask[..., complete] for mask in masks])
    signs = _exchange_signs(human.shape[-1])
    q = system_p_values(human[None], signs)
    upper = np.triu_indices(len(human), 1)

    def spa(some: Floats) -> Floats:
        agreement: Floats = (1 - abs(system_p_values(some, signs) - q))[:, *upper].mean(-1)
        return agreement

    for a, b in combinations(range(len(scores)), 2):
        parts = []
        for some in blocks(len(swaps), len(signs) * len(human) ** 2):
            first = np.where(swaps[some], scores[b], scores[a])
            second = np.where(swaps[some], scores[a], scores[b])
            parts.append(spa(first) - spa(second))
        yield a, b, np.concatenate(parts)


def system_p_values(scores: Floats, signs: Floats) -> Floats:
    """Compute p-values that row systems are better than column systems.

    `scores` is (groups, systems, segments) and `signs` (exchanges, segments); the result is
    (groups, systems, systems). Exchanges that give the observed difference count half, so the
    p-values of a pair in both directions sum to 1.
    """
    sums = scores @ signs.T
    exchanged = sums[:, :, None] - sums[:, None]
    totals = scores.sum(-1)
    observed = (totals[:, :, None] - totals[:, None])[..., None]
    largest = abs(scores[:, :, None] - scores[:, None]).sum(-1)[..., None]
    equal = abs(exchanged - observed) <= _ROUNDING * largest
    p: Floats = np.where(equal, 0.5, exchanged > observed).mean(-1)
    return p


def _complete_segments(panel: Panel) -> tuple[Floats, Floats]:
    if panel.metrics.shape[-1] != panel.human.shape[-1] or panel.segments < 2:
        raise InputError(
            "soft_accuracy tests systems on segments, and these scores have one number per system; "
            "give scores and ratings of segments, or use the method accuracy"
        )
    complete = ~(np.isnan(panel.metrics).any((0, 1)) | np.isnan(panel.human).any(0))
    return panel.metrics[..., complete], panel.human[:, complete]


def _exchange_signs(segments: int) -> Floats:
    """Return 1 for segments that stay and -1 for exchanged ones; all exchanges if they are few."""
    if 2**segments <= _EXCHANGES:
        return np.array(list(product([1.0, -1.0], repeat=segments)))
    rng = np.random.default_rng(_SEED)
    return rng.choice([1.0, -1.0], size=(_EXCHANGES, segments))
