"""The outputs that two metrics judge most differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.stats.correlations import correlation
from evenmatch.stats.ranks import ranks
from evenmatch.uses.meta.agreement_scores import Marks, ScoredSet


@dataclass(frozen=True, slots=True)
class Disputed:
    """One output with two metrics' scores and places; a place is 0 for the worst, 1 for the best.

    `rating` is None where people did not rate the output.
    """

    data: str
    subset: str
    system: str
    segment: str
    candidate: str
    references: tuple[str, ...]
    scores: tuple[float, float]
    places: tuple[float, float]
    rating: float | None
    rating_place: float | None

    @property
    def gap(self) -> float:
        """By how much the first metric places the output higher."""
        return self.places[0] - self.places[1]


def furthest_metrics(scored: Sequence[ScoredSet], *, most: int = 3) -> list[tuple[str, str]]:
    """The pairs of metrics whose scores of outputs go together least, over all sets."""
    found: dict[tuple[str, str], list[float]] = {}
    for each in _once(scored):
        names = [n for n, marks in each.marks.items() if not np.isnan(marks.segments).all()]
        for a, b in combinations(names, 2):
            value = correlation(_ranked(each.marks[a]), _ranked(each.marks[b]), "pearson").item()
            if not np.isnan(value):
                found.setdefault((a, b), []).append(value)
    return sorted(found, key=lambda pair: float(np.mean(found[pair])))[:most]


def disputed(
    scored: Sequence[ScoredSet], first: str, second: str, *, most: int = 5
) -> list[Disputed]:
    """The outputs whose places by two metrics are furthest apart, each text once."""
    found: list[Disputed] = []
    for each in _once(scored):
        if first in each.marks and second in each.marks:
            found += _of_set(each, first, second, most)
    found.sort(key=lambda text: -abs(text.gap))
    return list({(d.candidate, d.references): d for d in reversed(found)}.values())[::-1][:most]


def _once(scored: Sequence[ScoredSet]) -> list[ScoredSet]:
    """One set of each group with the same texts."""
    return list({each.group: each for each in reversed(scored)}.values())[::-1]


def _of_set(scored: ScoredSet, first: str, second: str, most: int) -> list[Disputed]:
    rated, marks = scored.rated, (scored.marks[first], scored.marks[second])
    shape = rated.ratings.shape
    one, other = (_ranked(m).reshape(shape) for m in marks)
    people = _places(rated.ratings.ravel()).reshape(shape)
    gap = np.where(np.isnan(one) | np.isnan(other), 0.0, abs(one - other))
    # several systems may have given the same text, so more than are wanted
    furthest = np.argsort(-gap, axis=None, kind="stable")[: 4 * most]
    found = []
    for system, segment in zip(*np.unravel_index(furthest, shape), strict=True):
        candidate = rated.candidates[system][segment]
        if candidate is None or not gap[system, segment]:
            continue
        at = (system, segment)
        known = not np.isnan(rated.ratings[at])
        found.append(
            Disputed(
                rated.name,
                rated.subset,
                rated.systems[system],
                rated.segments[segment],
                candidate,
                rated.references[segment],
                (float(marks[0].segments[at]), float(marks[1].segments[at])),
                (float(one[at]), float(other[at])),
                float(rated.ratings[at]) if known else None,
                float(people[at]) if known else None,
            )
        )
    return found


def _ranked(marks: Marks) -> Floats:
    sign = 1.0 if marks.higher_is_better else -1.0
    return _places(sign * marks.segments.ravel())


def _places(values: Floats) -> Floats:
    """Ranks as shares of the way from the worst to the best, NaN where there is no value."""
    count = int((~np.isnan(values)).sum())
    return (ranks(values) - 1) / max(count - 1, 1)
