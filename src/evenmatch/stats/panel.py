"""What a meta-evaluation rests on: metrics' scores of systems × segments beside people's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, as_floats


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Scores by metrics (metrics, systems, segments) and people (systems, segments).

    NaN is a missing score. Either side may have one single column: scores known per system only.
    Made by `panel`, which checks shapes.
    """

    metrics: Floats
    human: Floats

    @property
    def systems(self) -> int:
        """How many systems there are."""
        return int(self.human.shape[0])

    @property
    def segments(self) -> int:
        """How many segments there are; 1 where all scores are per system."""
        return int(max(self.metrics.shape[-1], self.human.shape[-1]))

    def without(self, systems: Sequence[int] | Sequence[bool]) -> Panel:
        """The panel less the systems with these numbers, or those flagged True.

        >>> panel([[1, 2], [3, 4], [5, 6]], [[1, 1], [2, 2], [3, 3]]).without([1]).human
        array([[1., 1.],
               [3., 3.]])
        """
        given = np.asarray(systems, dtype=bool if _are_flags(systems) else np.intp)
        if given.dtype == bool and given.shape != (self.systems,):
            raise InputError(f"{given.size} flags for {self.systems} systems; give one for each")
        if given.dtype != bool and any(not 0 <= s < self.systems for s in given):
            raise InputError(f"systems {given.tolist()} of {self.systems}; they count from 0")
        kept = np.ones(self.systems, dtype=bool)
        kept[given] = False
        return Panel(self.metrics[:, kept], self.human[kept])


def _are_flags(systems: Sequence[int] | Sequence[bool]) -> bool:
    return bool(len(systems)) and np.asarray(systems).dtype == bool


def panel(metrics: ArrayLike, human: ArrayLike) -> Panel:
    """A panel from one metric's scores (systems, segments) or several (metrics, …, …).

    One number per system will do for people (or a metric): give `human` as a list of those.

    >>> panel([[1, 2], [3, 4]], [0.5, 0.7]).human.shape
    (2, 1)
    """
    scores, ratings = as_floats(metrics, "metrics"), as_floats(human, "human")
    scores = scores[:, None] if scores.ndim == 1 else scores
    scores = scores[None] if scores.ndim == 2 else scores
    ratings = ratings[:, None] if ratings.ndim == 1 else ratings
    fits = scores.ndim == 3 and ratings.ndim == 2 and scores.shape[1] == ratings.shape[0]
    if not fits or len({1, scores.shape[2], ratings.shape[1]}) > 2:
        raise InputError(
            f"metrics have shape {np.shape(metrics)} and human {np.shape(human)}; "
            "give both as systems × segments, or one number per system"
        )
    return Panel(scores, ratings)
