"""Disagreement between metrics: the outputs they rank differently, and partial correlations.

`find_disputed_outputs` gives the outputs that two metrics rank most differently.
`metric_partial_correlations` says how similar metrics are beyond what human ratings explain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenmatch.evaluation.agreement import agreement_panel
from evenmatch.evaluation.rated_scores import RatedSetScores, ScoredSet
from evenmatch.stats.correlation import ranks
from evenmatch.stats.levels import correlation, mean_over_segments
from evenmatch.stats.panel import Floats
from evenmatch.stats.partial import PartialMethod, partial_matrix


@dataclass(frozen=True, slots=True)
class DisputedOutput:
    """An output with the scores and relative ranks (0 worst, 1 best) that two metrics give it.

    `rating` is None where the output has no human rating.
    """

    data: str
    subset: str
    system: str
    segment: str
    candidate: str
    references: tuple[str, ...]
    scores: tuple[float, float]
    relative_ranks: tuple[float, float]
    rating: float | None
    rating_rank: float | None

    @property
    def gap(self) -> float:
        """Relative rank by the first metric minus that by the second."""
        return self.relative_ranks[0] - self.relative_ranks[1]


def least_correlated_metrics(
    scored: Sequence[ScoredSet], *, most: int = 3
) -> list[tuple[str, str]]:
    """The `most` pairs of metrics with the lowest mean rank correlation over all sets."""
    found: dict[tuple[str, str], list[float]] = {}
    for each in _unique_sets(scored):
        names = [n for n, scores in each.scores.items() if not np.isnan(scores.segments).all()]
        for a, b in combinations(names, 2):
            value = correlation(
                _metric_ranks(each.scores[a]), _metric_ranks(each.scores[b]), "pearson"
            ).item()
            if not np.isnan(value):
                found.setdefault((a, b), []).append(value)
    return sorted(found, key=lambda pair: float(np.mean(found[pair])))[:most]


def find_disputed_outputs(
    scored: Sequence[ScoredSet], first: str, second: str, *, most: int = 5
) -> list[DisputedOutput]:
    """The `most` outputs whose ranks by two metrics differ most, each text once."""
    found: list[DisputedOutput] = []
    for each in _unique_sets(scored):
        if first in each.scores and second in each.scores:
            found += _disputed_in_set(each, first, second, most)
    found.sort(key=lambda text: -abs(text.gap))
    return list({(d.candidate, d.references): d for d in reversed(found)}.values())[::-1][:most]


def metric_partial_correlations(
    scored: Sequence[ScoredSet], metrics: Sequence[str], *, by_system: bool, method: PartialMethod
) -> Floats:
    """Partial correlation of each pair of metrics given the ratings, averaged over the sets.

    With `by_system` the correlation is over system scores, else over all outputs (Chousa & Hirao,
    figure 3). It is NaN for metrics that share no set with at least four points.
    """
    total = np.zeros((len(metrics), len(metrics)))
    count = np.zeros_like(total)
    for each in scored:
        at = [metrics.index(name) for name in each.scores if name in metrics]
        rows = [i for i, name in enumerate(each.scores) if name in metrics]
        panel = agreement_panel(each, "system" if by_system else "segment")
        x, y = panel.metrics[rows], panel.human
        if by_system:
            weights = np.ones((1, panel.segments))
            x, y = mean_over_segments(x, weights)[0], mean_over_segments(y, weights)[0]
        x, y = x.reshape(len(rows), -1), y.ravel()
        # with three points, the residuals of two regressions are always perfectly correlated
        if (~np.isnan(x).any(0) & ~np.isnan(y)).sum() < 4:
            continue
        found = partial_matrix(x, y, method=method)
        known = ~np.isnan(found)
        total[np.ix_(at, at)] += np.where(known, found, 0.0)
        count[np.ix_(at, at)] += known
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _unique_sets(scored: Sequence[ScoredSet]) -> list[ScoredSet]:
    """The first set of each group of sets with the same texts."""
    return list({each.group: each for each in reversed(scored)}.values())[::-1]


def _disputed_in_set(scored: ScoredSet, first: str, second: str, most: int) -> list[DisputedOutput]:
    rated, scores = scored.rated, (scored.scores[first], scored.scores[second])
    shape = rated.ratings.shape
    one, other = (_metric_ranks(s).reshape(shape) for s in scores)
    human = _relative_ranks(rated.ratings.ravel()).reshape(shape)
    gap = np.where(np.isnan(one) | np.isnan(other), 0.0, abs(one - other))
    # several systems may have given the same text, so collect more than `most`
    furthest = np.argsort(-gap, axis=None, kind="stable")[: 4 * most]
    found = []
    for system, segment in zip(*np.unravel_index(furthest, shape), strict=True):
        candidate = rated.candidates[system][segment]
        if candidate is None or not gap[system, segment]:
            continue
        at = (system, segment)
        known = not np.isnan(rated.ratings[at])
        found.append(
            DisputedOutput(
                rated.name,
                rated.subset,
                rated.systems[system],
                rated.segments[segment],
                candidate,
                rated.references[segment],
                (float(scores[0].segments[at]), float(scores[1].segments[at])),
                (float(one[at]), float(other[at])),
                float(rated.ratings[at]) if known else None,
                float(human[at]) if known else None,
            )
        )
    return found


def _metric_ranks(scores: RatedSetScores) -> Floats:
    sign = 1.0 if scores.higher_is_better else -1.0
    return _relative_ranks(sign * scores.segments.ravel())


def _relative_ranks(values: Floats) -> Floats:
    """Ranks scaled to 0 (worst) … 1 (best); NaN where there is no value."""
    count = int((~np.isnan(values)).sum())
    return (ranks(values) - 1) / max(count - 1, 1)
