"""Agreement of metrics with human ratings, with intervals and significance clusters.

`correlate` scores rated sets and correlates the scores with the ratings, set by set
(`measure_agreement`) and averaged over language pairs or criteria (`average_entries`).
`agreement_differences` compares the agreement of two metrics. The result type is in
`agreement_result.py`, the scoring in `rated_scores.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import RatingsLike, as_rated_sets
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.evaluation.agreement_result import (
    AVERAGE_SUBSET,
    Agreement,
    AgreementEntry,
    AgreementTestSettings,
)
from evenmatch.evaluation.rated_scores import RatedSetScores, ScoredSet, score_rated_sets
from evenmatch.protocols import MetricLike
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric
from evenmatch.stats.bootstrap import correlation_intervals, difference_interval
from evenmatch.stats.levels import (
    CorrelationMethod,
    Level,
    arrange_rows,
    prepare_coefficient,
)
from evenmatch.stats.p_values import rank_clusters
from evenmatch.stats.paired import williams_matrix
from evenmatch.stats.panel import Flags, Floats, Panel, find_outliers, make_panel
from evenmatch.stats.permutation import permutation_matrix

OutlierRule: TypeAlias = Literal["listed", "mad", "keep"]

METHODS: tuple[str, ...] = get_args(CorrelationMethod)
_MIN_WILLIAMS_POINTS = 4


@check_arguments
def correlate(
    metrics: MetricLike | Sequence[MetricLike],
    ratings: RatingsLike,
    level: Level = "system",
    method: CorrelationMethod = "pearson",
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

    `ratings` are a name or path, or the result of `read_ratings`. The level `segment` pools all
    rated outputs; `per_item` and `per_system` average correlations
    over segments and over systems. Human references among the systems are excluded. At the system
    level outlier systems are excluded too: those the organisers `listed`, those by the `mad` rule,
    or none (`keep`). A system's score is the metric's corpus score where it has one, unless
    `corpus` is False. `published` adds the metric scores of systems that come with the data. `run`
    takes the run settings of `score`.
    """
    _check_options(level, method, outliers, published)
    given: list[Any] = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given and not published:
        raise InputError("the list of metrics is empty; give at least one")
    named = {metric_name(metric): as_metric(metric) for metric in given}
    sets = as_rated_sets(ratings)
    by_system = level == "system"
    chosen = [
        (rated, _included_systems(rated, level, outliers))
        for rated in sets
        if not np.isnan(rated.by_system if by_system else rated.ratings).all()
    ]
    scored = score_rated_sets(
        named, chosen, make_run(**run), rated_only=not by_system, corpus=corpus and by_system
    )
    if published:
        scored = [add_published(each) for each in scored]
    usable = [each for each in scored if each.scores]
    if not usable:
        names = ", ".join(dict.fromkeys(each.name for each in sets)) or "the list of rated sets"
        what = "system" if by_system else "output"
        hint = "" if by_system else "; there may be ratings at level 'system'"
        raise DataError(f"{names} has no {what} with a text, a reference and a rating{hint}")
    testing = AgreementTestSettings(confidence, resamples, seed)
    entries: list[AgreementEntry] = []
    tests: dict[str, None] = {}
    for _, of_data in groupby(usable, key=lambda each: each.rated.name):
        subsets = list(of_data)
        found = [measure_agreement(each, level, method, testing) for each in subsets]
        by_set = [rows for rows, _ in found]
        entries += [entry for rows in by_set for entry in rows]
        entries += average_entries(by_set, [each.group for each in subsets])
        tests |= {test: None for _, test in found if test}
    return Agreement(tuple(entries), tuple(usable), testing, outliers, tuple(tests))


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
    return [
        [
            _difference(agreement, scored, *pair)
            for pair in pairs
            if pair[0] in scored.scores and pair[1] in scored.scores
        ]
        for scored in agreement.scored
    ]


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
    by_metric: dict[str, list[tuple[AgreementEntry, int]]] = {}
    for rows, group in zip(by_set, groups, strict=True):
        for entry in rows:
            by_metric.setdefault(entry.metric, []).append((entry, group))
    return [_average_entry(several) for several in by_metric.values() if len(several) > 1]


def measure_agreement(
    scored: ScoredSet, level: Level, method: CorrelationMethod, testing: AgreementTestSettings
) -> tuple[list[AgreementEntry], str]:
    """Measure the agreement of each metric of a set with the human ratings.

    Returns the entries and the name of the significance test, which is empty if none was made.
    """
    panel = agreement_panel(scored, level, method)
    # criteria of the same texts share their resamples; language pairs are resampled independently
    settings = asdict(testing) | {"seed": testing.seed + scored.group}
    found = correlation_intervals(panel, level=level, method=method, **settings)
    test, p = _test_differences(panel, level, method, testing.resamples, settings["seed"])
    clusters: Sequence[int | None] = [None] * len(found)
    if p is not None:
        clusters = rank_clusters([each.value for each in found], p)
    entries = [
        AgreementEntry(
            data=scored.rated.name,
            subset=scored.rated.subset,
            metric=metric,
            level=level,
            method=method,
            n=n,
            cluster=cluster,
            **asdict(interval),
        )
        for metric, interval, n, cluster in zip(
            scored.scores, found, count_points(panel, level, method), clusters, strict=True
        )
    ]
    return entries, test


def agreement_panel(
    scored: ScoredSet, level: Level, method: CorrelationMethod = "pearson"
) -> Panel:
    """Scores and ratings of the included systems; scores are negated where lower is better.

    At the system level the panel has segments where both scores and ratings are means over them,
    because the permutation test swaps segments, and for `soft_accuracy`, which tests systems on
    segments; else it has one number for each system.
    """
    included, scores = scored.included, scored.scores.values()
    signs = np.array([1.0 if s.higher_is_better else -1.0 for s in scores])[:, None, None]
    official_ratings = not np.isnan(scored.rated.system_ratings).all()
    averaged = official_ratings or any(s.by_corpus for s in scores)
    if level == "system" and method != "soft_accuracy" and averaged:
        systems = np.stack([s.systems[included] for s in scores])[:, :, None]
        return make_panel(signs * systems, scored.rated.by_system[included])
    segments = np.stack([s.segments[included] for s in scores])
    return make_panel(signs * segments, scored.rated.ratings[included])


def count_points(panel: Panel, level: Level, method: CorrelationMethod) -> tuple[int, ...]:
    """Number of points that each metric is correlated over.

    At the levels `per_item` and `per_system`, the number of rows that have a correlation: at least
    two points, and for most methods scores and ratings that are not constant.
    """
    known = ~np.isnan(panel.metrics) & ~np.isnan(panel.human)
    if level == "system":
        systems = (~np.isnan(panel.metrics)).any(-1) & (~np.isnan(panel.human)).any(-1)
        return tuple(systems.sum(-1).tolist())
    if level == "segment":
        return tuple(known.sum((1, 2)).tolist())
    if method != "calibrated_accuracy" and method != "soft_accuracy":
        x, y = arrange_rows(panel.metrics[None], panel.human, level)
        once = np.ones((1, 1, x.shape[-1]))
        each = (prepare_coefficient(x[:, m], y, method)(once) for m in range(x.shape[1]))
        return tuple(int((~np.isnan(values)).sum()) for values in each)
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


def _check_options(level: str, method: str, outliers: str, published: bool) -> None:
    known = (("level", level, get_args(Level)), ("method", method, METHODS))
    for what, given, names in (*known, ("outlier rule", outliers, get_args(OutlierRule))):
        if given not in names:
            raise UnknownNameError(f"unknown {what} {given!r}; known: {', '.join(names)}")
    if published and level != "system":
        raise InputError(
            f"published scores exist only at level 'system', got level {level!r}; use 'system'"
        )


def _average_entry(entries: Sequence[tuple[AgreementEntry, int]]) -> AgreementEntry:
    known = [(e, group) for e, group in entries if not math.isnan(e.value)]
    value = math.fsum(e.value for e, _ in known) / len(known) if known else math.nan
    return replace(
        entries[0][0],
        subset=AVERAGE_SUBSET,
        value=value,
        n=len(known),
        low=value - _bound_distance([(e.value - e.low, group) for e, group in known]),
        high=value + _bound_distance([(e.high - e.value, group) for e, group in known]),
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


def _difference(agreement: Agreement, scored: ScoredSet, one: str, other: str) -> AgreementEntry:
    first, testing, names = agreement.entries[0], agreement.testing, list(scored.scores)
    level: Any = first.level  # this and the method are checked by `correlate`
    method: Any = first.method
    panel = agreement_panel(scored, level, method)
    a, b = names.index(one), names.index(other)
    settings = asdict(testing) | {"seed": testing.seed + scored.group}
    found = difference_interval(panel, a, b, level=level, method=method, **settings)
    counts = count_points(panel, level, method)
    return replace(
        first,
        data=scored.rated.name,
        subset=scored.rated.subset,
        metric=f"{one} - {other}",
        n=min(counts[a], counts[b]),
        cluster=None,
        **asdict(found),
    )


def _test_differences(
    panel: Panel, level: Level, method: CorrelationMethod, resamples: int, seed: int
) -> tuple[str, Floats | None]:
    """Return the appropriate test and its p-values; None where too few points are shared."""
    if len(panel.metrics) < 2:
        return "", None
    if level != "system" or panel.segments > 1:
        return "permutation (PERM-BOTH)", permutation_matrix(
            panel, level=level, method=method, resamples=resamples, seed=seed
        )
    shared = ~np.isnan(panel.metrics).any((0, 2)) & ~np.isnan(panel.human).any(1)
    if shared.sum() < _MIN_WILLIAMS_POINTS:
        return "", None
    if method == "pearson":
        return "Williams", williams_matrix(panel)
    return "permutation (PERM-SYSTEMS)", permutation_matrix(
        panel, level=level, method=method, swap="systems", resamples=resamples, seed=seed
    )
