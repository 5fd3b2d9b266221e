"""The bootstrap: systems, segments or both drawn again with replacement.

Which to draw is a question of what the interval is to generalise to: other systems, other segments,
or both at once (Deutsch, Dror & Roth 2021).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.arrays import Floats
from evenmatch.stats.levels import Level, leveled
from evenmatch.stats.panel import Panel
from evenmatch.stats.rows import Method

Over: TypeAlias = Literal["systems", "segments", "both"]

# What a level's correlation is over: few systems at the system level, else many segments.
FITTING: dict[Level, Over] = {
    "system": "systems",
    "pooled": "segments",
    "per_item": "segments",
    "per_system": "segments",
}


def drawn(count: int, resamples: int, rng: np.random.Generator) -> Floats:
    """How often each of `count` things is drawn in each resample of as many.

    >>> drawn(4, 2, np.random.default_rng(0))
    array([[0., 1., 2., 1.],
           [3., 1., 0., 0.]])
    """
    picks = rng.integers(count, size=(resamples, count))
    picks += count * np.arange(resamples)[:, None]
    counts = np.bincount(picks.ravel(), minlength=resamples * count)
    return counts.reshape(resamples, count).astype(np.float64)


def weightings(panel: Panel, over: Over, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """How often each system and each segment counts in each resample; one row where not drawn."""
    _check(panel, over, resamples)
    rng = np.random.default_rng(seed)
    systems, segments = np.ones((1, panel.systems)), np.ones((1, panel.segments))
    if over != "segments":
        systems = drawn(panel.systems, resamples, rng)
    if over != "systems":
        segments = drawn(panel.segments, resamples, rng)
    return systems, segments


def resampled(
    panel: Panel,
    *,
    level: Level,
    method: Method,
    over: Over,
    resamples: int = 1000,
    seed: int = 0,
) -> Floats:
    """Each metric's correlation in each resample: (resamples, metrics).

    All metrics see the same resamples, so differences between columns are paired.
    """
    return leveled(panel, level, method)(*weightings(panel, over, resamples, seed))


def _check(panel: Panel, over: Over, resamples: int) -> None:
    if over not in get_args(Over):
        raise UnknownNameError(f"cannot resample over {over!r}; known: {', '.join(get_args(Over))}")
    if resamples < 1:
        raise InputError(f"{resamples} resamples; give at least 1")
    if over != "systems" and panel.segments == 1:
        raise InputError(
            f"resampling over {over} needs scores per segment, got one per system; "
            "resample over systems"
        )
