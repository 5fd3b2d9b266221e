"""correlate: how closely metrics agree with people, with intervals and significance clusters.

The mean agreement over language pairs or criteria, with an interval.

By how much one metric agrees with people better than another, set by set.

One scored set at one level: agreements, their intervals, and which metrics differ.

Other people's scores of the systems, beside ours.
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
from evenmatch.stats.panel import Flags, Floats, Panel, make_panel
from evenmatch.stats.panel import find_outliers as far_out
from evenmatch.stats.permutation import permutation_matrix

OutlierRule: TypeAlias = Literal["listed", "mad", "keep"]


AgreementMethod: TypeAlias = Literal[
    "pearson", "spearman", "kendall", "kendall_c", "accuracy", "calibrated_accuracy"
]


AgreementLevel: TypeAlias = Literal["system", "segment", "per_item", "per_system"]


# People say segment level; the statistics call it by what they do.
LEVELS: Mapping[str, Level] = {
    "system": "system",
    "segment": "pooled",
    "per_item": "per_item",
    "per_system": "per_system",
}


METHODS: tuple[str, ...] = get_args(AgreementMethod)


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
    """The agreement of each metric with people on each rated set.

    `segment` pools all rated outputs, `per_item` and `per_system` average correlations over
    segments and over systems. People as systems are left out; at the system level so are the
    outliers the organisers `listed`, those by the `mad` rule, or none (`keep`). A system's score is
    the metric's corpus score where it has one, unless `corpus` is False. `published` adds other
    people's scores of the systems that come with the data. `run` is as in `score`.
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


def _metrics_by_name(metrics: Any, published: bool) -> dict[str, Metric]:
    given = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given and not published:
        raise InputError("the list of metrics is empty; name at least one")
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
    for _, several in groupby(scored, key=lambda each: each.rated.name):
        own = list(several)
        by_set = []
        for each in own:
            found = measure_agreement(each, LEVELS[level], method, testing)
            by_set.append(list(_entries(each, level, method, found)))
            tests |= {found.test: None} if found.test else {}
        entries += [entry for rows in by_set for entry in rows]
        entries += average_entries(by_set, [each.group for each in own])
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
    """The systems that count: no people, no outliers, and rated."""
    kept = np.array([system not in rated.humans for system in rated.systems], dtype=bool)
    if level != "system":
        return kept
    kept &= ~np.isnan(rated.by_system)
    if outliers == "listed":
        kept &= np.array([system not in rated.outliers for system in rated.systems], dtype=bool)
    elif outliers == "mad":
        kept &= ~far_out(np.where(kept, rated.by_system, np.nan))
    return kept


def _has_ratings(rated: RatedSet, level: str) -> bool:
    """Whether there are ratings to compare with at this level."""
    return not np.isnan(rated.by_system if level == "system" else rated.ratings).all()


def _check_options(level: str, method: str, outliers: str, published: bool) -> None:
    known = (("level", level, tuple(LEVELS)), ("method", method, METHODS))
    for what, given, names in (*known, ("way with outliers", outliers, get_args(OutlierRule))):
        if given not in names:
            raise UnknownNameError(f"no {what} is called {given!r}; known: {', '.join(names)}")
    if published and level != "system":
        raise InputError(f"published scores are of systems, got level {level!r}; take 'system'")


def _no_data_message(sets: Sequence[RatedSet], level: str) -> str:
    names = ", ".join(dict.fromkeys(each.name for each in sets)) or "the list of rated sets"
    what = "system" if level == "system" else "output"
    hint = "" if level == "system" else "; there may be ratings at the level system"
    return f"{names} has no {what} with a text, a reference and a rating to compare{hint}"


def average_entries(
    by_set: Sequence[Sequence[AgreementEntry]], groups: Sequence[int]
) -> list[AgreementEntry]:
    """A row per metric that several sets have, its `n` the number of sets with a value.

    Distances to the bounds add up as squares where sets are independent (Zou & Donner 2008). Sets
    with the same number in `groups` are over the same texts: there the bounds are averaged, which
    is right if they vary together and else too wide.
    """
    if len(by_set) < 2:
        return []
    metrics = dict.fromkeys(entry.metric for rows in by_set for entry in rows)
    found = []
    for metric in metrics:
        own = [
            (entry, group)
            for rows, group in zip(by_set, groups, strict=True)
            for entry in rows
            if entry.metric == metric
        ]
        if len(own) > 1:
            found.append(_average_entry([e for e, _ in own], [g for _, g in own]))
    return found


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
    """How far the bound of a mean lies from it, given how far those of its terms do.

    >>> _bound_distance([(0.3, 0), (0.4, 1)]), _bound_distance([(0.3, 0), (0.4, 0)])
    (0.25, 0.35)
    """
    if not sides:
        return math.nan
    together: dict[int, float] = {}
    for side, group in sides:
        together[group] = together.get(group, 0.0) + side
    return math.sqrt(math.fsum(total**2 for total in together.values())) / len(sides)


def agreement_differences(
    agreement: Agreement, pairs: Sequence[tuple[str, str]]
) -> list[list[AgreementEntry]]:
    """For each set the differences of these pairs of metrics, both on the same resamples.

    An entry's metric is `FIRST - SECOND`. A set that has not both metrics is left out of them.
    """
    unknown = [name for pair in pairs for name in pair if name not in agreement.metrics]
    if unknown:
        raise InputError(f"{unknown[0]!r} was not compared; known: {', '.join(agreement.metrics)}")
    return [list(_differences(agreement, scored, pairs)) for scored in agreement.scored]


def _differences(
    agreement: Agreement, scored: ScoredSet, pairs: Sequence[tuple[str, str]]
) -> Iterator[AgreementEntry]:
    first, testing, names = agreement.entries[0], agreement.testing, list(scored.scores)
    level = LEVELS[first.level]
    own = agreement_panel(scored, level)
    counts = count_points(own, level)
    for one, other in pairs:
        if one not in names or other not in names:
            continue
        a, b = names.index(one), names.index(other)
        found = difference_interval(
            own,
            a,
            b,
            level=level,
            method=first.method,  # type: ignore[arg-type]  # checked when it was compared
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


WILLIAMS = "Williams"


PERM_BOTH = "permutation (PERM-BOTH)"


PERM_SYSTEMS = "permutation (PERM-SYSTEMS)"


_MIN_WILLIAMS_POINTS = 4


@dataclass(frozen=True, slots=True)
class MetricAgreements:
    """Each metric's agreement, over how many points, and the rank of its cluster."""

    intervals: tuple[Interval, ...]
    counts: tuple[int, ...]
    clusters: tuple[int | None, ...]
    test: str


def measure_agreement(
    scored: ScoredSet, level: Level, method: CorrelationMethod, testing: AgreementTestSettings
) -> MetricAgreements:
    """How closely each metric of a set agrees with people."""
    own = agreement_panel(scored, level)
    # criteria of the same texts draw the same systems, language pairs each their own
    seed = testing.seed + scored.group
    found = correlation_intervals(
        own,
        level=level,
        method=method,
        over=DEFAULT_RESAMPLE_OVER[level],
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=seed,
    )
    test, p = _test_differences(own, level, method, testing.resamples, seed)
    values = [each.value for each in found]
    ranks: tuple[int | None, ...] = (None,) * len(found)
    if p is not None:
        ranks = rank_clusters(values, p)
    return MetricAgreements(found, count_points(own, level), ranks, test)


def agreement_panel(scored: ScoredSet, level: Level) -> Panel:
    """Scores beside ratings of the systems that count; where lower is better, negated.

    At the system level single outputs are kept where both sides have them, as a permutation test
    wants to swap these; else there is one number per system.
    """
    kept, marks = scored.included, scored.scores.values()
    signs = np.array([1.0 if m.higher_is_better else -1.0 for m in marks])[:, None, None]
    segments = np.stack([m.segments[kept] for m in marks])
    if level != "system" or _has_segment_scores(scored):
        return make_panel(signs * segments, scored.rated.ratings[kept])
    systems = np.stack([m.systems[kept] for m in marks])[:, :, None]
    return make_panel(signs * systems, scored.rated.by_system[kept])


def _has_segment_scores(scored: ScoredSet) -> bool:
    """Whether both a system's score and its rating are means over outputs."""
    official = not np.isnan(scored.rated.system_ratings).all()
    return not official and not any(m.by_corpus for m in scored.scores.values())


def count_points(own: Panel, level: Level) -> tuple[int, ...]:
    """How many points each metric is correlated over; rows of at least two for means of rows."""
    known = ~np.isnan(own.metrics) & ~np.isnan(own.human)
    if level == "system":
        systems = (~np.isnan(own.metrics)).any(-1) & (~np.isnan(own.human)).any(-1)
        return tuple(systems.sum(-1).tolist())
    if level == "pooled":
        return tuple(known.sum((1, 2)).tolist())
    rows = known.sum(1 if level == "per_item" else 2)
    return tuple((rows > 1).sum(-1).tolist())


def _test_differences(
    own: Panel, level: Level, method: CorrelationMethod, resamples: int, seed: int
) -> tuple[str, Floats | None]:
    """The name of the fitting test and its p-values; none where too few points are shared."""
    if len(own.metrics) < 2:
        return "", None
    per_system = level == "system" and own.segments == 1
    if not per_system:
        return PERM_BOTH, permutation_matrix(
            own, level=level, method=method, resamples=resamples, seed=seed
        )
    shared = ~np.isnan(own.metrics).any((0, 2)) & ~np.isnan(own.human).any(1)
    if shared.sum() < _MIN_WILLIAMS_POINTS:
        return "", None
    if method == "pearson":
        return WILLIAMS, williams_matrix(own)
    return PERM_SYSTEMS, permutation_matrix(
        own, level=level, method=method, swap="systems", resamples=resamples, seed=seed
    )


def add_published(scored: ScoredSet) -> ScoredSet:
    """The set with every published metric that has scores of at least two systems that count.

    One that is called as one of ours is marked as published.
    """
    rated, marks = scored.rated, dict(scored.scores)
    nothing = np.full((len(rated.systems), len(rated.segments)), np.nan)
    for metric, systems in rated.published.items():
        if (~np.isnan(systems[scored.included])).sum() < 2:
            continue
        name = f"{metric} (published)" if metric in marks else metric
        marks[name] = RatedSetScores(nothing, systems, True, True, signature="")
    return replace(scored, scores=marks)
