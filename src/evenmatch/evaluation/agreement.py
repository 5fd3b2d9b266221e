"""Agreement of metrics with human ratings, with intervals and significance clusters.

`correlate` scores rated sets and correlates the scores with the ratings, set by set
(`measure_agreement`) and averaged over language pairs or criteria (`average_entries`).
`agreement_differences` compares the agreement of two metrics. The result type is in
`agreement_result.py`, the scoring in `rated_scores.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.evaluation.agreement_result import (
    AVERAGE_SUBSET,
    Agreement,
    AgreementEntry,
    AgreementTestSettings,
)
from evenmatch.evaluation.rated_scores import RatedSetScores, ScoredSet, score_rated_sets
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric
from evenmatch.stats.bootstrap import (
    DEFAULT_RESAMPLE_OVER,
    Interval,
    correlation_intervals,
    difference_interval,
)
from evenmatch.stats.levels import CorrelationMethod, Level
from evenmatch.stats.p_values import rank_clusters
from evenmatch.stats.paired import williams_matrix
from evenmatch.stats.panel import Flags, Floats, Panel, find_outliers, make_panel
from evenmatch.stats.permutation import permutation_matrix

OutlierRule: TypeAlias = Literal["listed", "mad", "keep"]

AgreementMethod: TypeAlias = Literal[
    "pearson", "spearman", "kendall", "kendall_c", "accuracy", "calibrated_accuracy"
]

AgreementLevel: TypeAlias = Literal["system", "segment", "per_item", "per_system"]

# Names of the levels in the field, and in evenmatch.stats.
LEVELS: Mapping[str, Level] = {
    "system": "system",
    "segment": "pooled",
    "per_item": "per_item",
    "per_system": "per_system",
}

METHODS: tuple[str, ...] = get_args(AgreementMethod)
WILLIAMS = "Williams"
PERM_BOTH = "permutation (PERM-BOTH)"
PERM_SYSTEMS = "permutation (PERM-SYSTEMS)"
_MIN_WILLIAMS_POINTS = 4


def correlate(
    metrics: str | Metric | Sequence[str | Metric],
    ratings: RatedSet | Sequence[RatedSet],
    level: AgreementLevel = "system",
    method: AgreementMethod = "pearson",
    *,
    outliers: OutlierRule = "listed",
    corpus: bool = True,
    published: bool = False,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    **run: Any,
) -> Agreement:
    """Measure the agreement of each metric with the human ratings of each rated set.

    The level `segment` pools all rated outputs; `per_item` and `per_system` average correlations
    over segments and over systems. Human references among the systems are excluded. At the system
    level outlier systems are excluded too: those the organisers `listed`, those by the `mad` rule,
    or none (`keep`). A system's score is the metric's corpus score where it has one, unless
    `corpus` is False. `published` adds the metric scores of systems that come with the data. `run`
    takes the run settings of `score`.
    """
    _check_options(level, method, outliers, published)
    named = _metrics_by_name(metrics, published)
    sets = [ratings] if isinstance(ratings, RatedSet) else list(ratings)
    by_corpus = corpus and level == "system"
    chosen = [
        (rated, _included_systems(rated, level, outliers))
        for rated in sets
        if _has_ratings(rated, level)
    ]
    scored = score_rated_sets(
        named, chosen, make_run(**run), rated_only=level != "system", corpus=by_corpus
    )
    if published:
        scored = [add_published(each) for each in scored]
    usable = [each for each in scored if each.scores]
    if not usable:
        raise DataError(_no_data_message(sets, level))
    return _build_agreement(
        usable, level, method, outliers, AgreementTestSettings(confidence, resamples, seed)
    )


def agreement_differences(
    agreement: Agreement, pairs: Sequence[tuple[str, str]]
) -> list[list[AgreementEntry]]:
    """Differences in agreement between pairs of metrics on each set, on the same resamples.

    An entry's metric is `FIRST - SECOND`. A set without both metrics has no entry.
    """
    unknown = [name for pair in pairs for name in pair if name not in agreement.metrics]
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is not in this agreement; known: {', '.join(agreement.metrics)}"
        )
    return [list(_differences(agreement, scored, pairs)) for scored in agreement.scored]


def average_entries(
    by_set: Sequence[Sequence[AgreementEntry]], groups: Sequence[int]
) -> list[AgreementEntry]:
    """Average the agreement of each metric over the sets that have it, if there are several.

    `n` of an average is the number of sets with a value. For independent sets the squared distances
    to the bounds add up (Zou & Donner, 2008). Sets with the same number in `groups` share their
    texts: their bounds are averaged, which is exact if they are perfectly correlated and else too
    wide.
    """
    if len(by_set) < 2:
        return []
    metrics = dict.fromkeys(entry.metric for rows in by_set for entry in rows)
    found = []
    for metric in metrics:
        of_metric = [
            (entry, group)
            for rows, group in zip(by_set, groups, strict=True)
            for entry in rows
            if entry.metric == metric
        ]
        if len(of_metric) > 1:
            found.append(_average_entry([e for e, _ in of_metric], [g for _, g in of_metric]))
    return found


def measure_agreement(
    scored: ScoredSet, level: Level, method: CorrelationMethod, testing: AgreementTestSettings
) -> MetricAgreements:
    """Measure the agreement of each metric of a set with the human ratings."""
    panel = agreement_panel(scored, level)
    # criteria of the same texts share their resamples; language pairs are resampled independently
    seed = testing.seed + scored.group
    found = correlation_intervals(
        panel,
        level=level,
        method=method,
        over=DEFAULT_RESAMPLE_OVER[level],
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=seed,
    )
    test, p = _test_differences(panel, level, method, testing.resamples, seed)
    values = [each.value for each in found]
    ranks: tuple[int | None, ...] = (None,) * len(found)
    if p is not None:
        ranks = rank_clusters(values, p)
    return MetricAgreements(found, count_points(panel, level), ranks, test)


@dataclass(frozen=True, slots=True)
class MetricAgreements:
    """Agreement of each metric, its number of points, and the rank of its cluster."""

    intervals: tuple[Interval, ...]
    counts: tuple[int, ...]
    clusters: tuple[int | None, ...]
    test: str


def agreement_panel(scored: ScoredSet, level: Level) -> Panel:
    """Scores and ratings of the included systems; scores are negated where lower is better.

    At the system level the panel has segments where both scores and ratings are means over them,
    because the permutation test swaps segments; else it has one number for each system.
    """
    included, scores = scored.included, scored.scores.values()
    signs = np.array([1.0 if s.higher_is_better else -1.0 for s in scores])[:, None, None]
    segments = np.stack([s.segments[included] for s in scores])
    if level != "system" or _has_segment_scores(scored):
        return make_panel(signs * segments, scored.rated.ratings[included])
    systems = np.stack([s.systems[included] for s in scores])[:, :, None]
    return make_panel(signs * systems, scored.rated.by_system[included])


def count_points(panel: Panel, level: Level) -> tuple[int, ...]:
    """Number of points that each metric is correlated over.

    At the levels `per_item` and `per_system`, the number of rows with at least two points.
    """
    known = ~np.isnan(panel.metrics) & ~np.isnan(panel.human)
    if level == "system":
        systems = (~np.isnan(panel.metrics)).any(-1) & (~np.isnan(panel.human)).any(-1)
        return tuple(systems.sum(-1).tolist())
    if level == "pooled":
        return tuple(known.sum((1, 2)).tolist())
    rows = known.sum(1 if level == "per_item" else 2)
    return tuple((rows > 1).sum(-1).tolist())


def add_published(scored: ScoredSet) -> ScoredSet:
    """Add each published metric that has scores of at least two included systems.

    A published metric with the name of a computed one gets the suffix "(published)".
    """
    rated, scores = scored.rated, dict(scored.scores)
    no_segments = np.full((len(rated.systems), len(rated.segments)), np.nan)
    for metric, systems in rated.published.items():
        if (~np.isnan(systems[scored.included])).sum() < 2:
            continue
        name = f"{metric} (published)" if metric in scores else metric
        scores[name] = RatedSetScores(no_segments, systems, True, True, signature="")
    return replace(scored, scores=scores)


def _metrics_by_name(metrics: Any, published: bool) -> dict[str, Metric]:
    given = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given and not published:
        raise InputError("the list of metrics is empty; give at least one")
    return {metric_name(metric): as_metric(metric) for metric in given}


def _build_agreement(
    scored: Sequence[ScoredSet],
    level: str,
    method: Any,
    outliers: str,
    testing: AgreementTestSettings,
) -> Agreement:
    entries: list[AgreementEntry] = []
    tests: dict[str, None] = {}
    for _, of_data in groupby(scored, key=lambda each: each.rated.name):
        subsets = list(of_data)
        by_set = []
        for each in subsets:
            found = measure_agreement(each, LEVELS[level], method, testing)
            by_set.append(list(_entries(each, level, method, found)))
            tests |= {found.test: None} if found.test else {}
        entries += [entry for rows in by_set for entry in rows]
        entries += average_entries(by_set, [each.group for each in subsets])
    return Agreement(tuple(entries), tuple(scored), testing, outliers, tuple(tests))


def _entries(scored: ScoredSet, level: str, method: str, found: Any) -> Iterator[AgreementEntry]:
    rated = scored.rated
    for metric, interval, n, cluster in zip(
        scored.scores, found.intervals, found.counts, found.clusters, strict=True
    ):
        yield AgreementEntry(
            data=rated.name,
            subset=rated.subset,
            metric=metric,
            level=level,
            method=method,
            value=interval.value,
            n=n,
            low=interval.low,
            high=interval.high,
            cluster=cluster,
        )


def _included_systems(rated: RatedSet, level: str, outliers: str) -> Flags:
    """Mask of the systems to compare: rated, no human references, no outliers."""
    included = np.array([system not in rated.humans for system in rated.systems], dtype=bool)
    if level != "system":
        return included
    included &= ~np.isnan(rated.by_system)
    if outliers == "listed":
        included &= np.array([system not in rated.outliers for system in rated.systems], dtype=bool)
    elif outliers == "mad":
        included &= ~find_outliers(np.where(included, rated.by_system, np.nan))
    return included


def _has_ratings(rated: RatedSet, level: str) -> bool:
    """Whether the set has ratings at this level."""
    return not np.isnan(rated.by_system if level == "system" else rated.ratings).all()


def _check_options(level: str, method: str, outliers: str, published: bool) -> None:
    known = (("level", level, tuple(LEVELS)), ("method", method, METHODS))
    for what, given, names in (*known, ("outlier rule", outliers, get_args(OutlierRule))):
        if given not in names:
            raise UnknownNameError(f"unknown {what} {given!r}; known: {', '.join(names)}")
    if published and level != "system":
        raise InputError(
            f"published scores exist only at level 'system', got level {level!r}; use 'system'"
        )


def _no_data_message(sets: Sequence[RatedSet], level: str) -> str:
    names = ", ".join(dict.fromkeys(each.name for each in sets)) or "the list of rated sets"
    what = "system" if level == "system" else "output"
    hint = "" if level == "system" else "; there may be ratings at level 'system'"
    return f"{names} has no {what} with a text, a reference and a rating{hint}"


def _average_entry(entries: Sequence[AgreementEntry], groups: Sequence[int]) -> AgreementEntry:
    known = [(e, g) for e, g in zip(entries, groups, strict=True) if not math.isnan(e.value)]
    value = math.fsum(e.value for e, _ in known) / len(known) if known else math.nan
    below = _bound_distance([(e.value - e.low, g) for e, g in known])
    above = _bound_distance([(e.high - e.value, g) for e, g in known])
    first = entries[0]
    return AgreementEntry(
        data=first.data,
        subset=AVERAGE_SUBSET,
        metric=first.metric,
        level=first.level,
        method=first.method,
        value=value,
        n=len(known),
        low=value - below,
        high=value + above,
        cluster=None,
    )


def _bound_distance(sides: Sequence[tuple[float, int]]) -> float:
    """Distance of a mean's bound from the mean, given the distances of its terms by group.

    >>> _bound_distance([(0.3, 0), (0.4, 1)]), _bound_distance([(0.3, 0), (0.4, 0)])
    (0.25, 0.35)
    """
    if not sides:
        return math.nan
    together: dict[int, float] = {}
    for side, group in sides:
        together[group] = together.get(group, 0.0) + side
    return math.sqrt(math.fsum(total**2 for total in together.values())) / len(sides)


def _differences(
    agreement: Agreement, scored: ScoredSet, pairs: Sequence[tuple[str, str]]
) -> Iterator[AgreementEntry]:
    first, testing, names = agreement.entries[0], agreement.testing, list(scored.scores)
    level = LEVELS[first.level]
    panel = agreement_panel(scored, level)
    counts = count_points(panel, level)
    for one, other in pairs:
        if one not in names or other not in names:
            continue
        a, b = names.index(one), names.index(other)
        found = difference_interval(
            panel,
            a,
            b,
            level=level,
            method=first.method,  # type: ignore[arg-type]  # checked by correlate
            over=DEFAULT_RESAMPLE_OVER[level],
            confidence=testing.confidence,
            resamples=testing.resamples,
            seed=testing.seed + scored.group,
        )
        yield replace(
            first,
            data=scored.rated.name,
            subset=scored.rated.subset,
            metric=f"{one} - {other}",
            value=found.value,
            n=min(counts[a], counts[b]),
            low=found.low,
            high=found.high,
            cluster=None,
        )


def _has_segment_scores(scored: ScoredSet) -> bool:
    """Whether both a system's score and its rating are means over segments."""
    official = not np.isnan(scored.rated.system_ratings).all()
    return not official and not any(s.by_corpus for s in scored.scores.values())


def _test_differences(
    panel: Panel, level: Level, method: CorrelationMethod, resamples: int, seed: int
) -> tuple[str, Floats | None]:
    """Return the appropriate test and its p-values; None where too few points are shared."""
    if len(panel.metrics) < 2:
        return "", None
    per_system = level == "system" and panel.segments == 1
    if not per_system:
        return PERM_BOTH, permutation_matrix(
            panel, level=level, method=method, resamples=resamples, seed=seed
        )
    shared = ~np.isnan(panel.metrics).any((0, 2)) & ~np.isnan(panel.human).any(1)
    if shared.sum() < _MIN_WILLIAMS_POINTS:
        return "", None
    if method == "pearson":
        return WILLIAMS, williams_matrix(panel)
    return PERM_SYSTEMS, permutation_matrix(
        panel, level=level, method=method, swap="systems", resamples=resamples, seed=seed
    )
