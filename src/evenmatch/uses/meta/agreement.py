"""correlate: how closely metrics agree with people, with intervals and significance clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from evenmatch.data.ratings import RatedSet
from evenmatch.errors import DataError, InputError, UnknownNameError
from evenmatch.scoring.ask import name_of
from evenmatch.scoring.settings import make_run
from evenmatch.scoring.together import as_metric
from evenmatch.stats.arrays import Flags
from evenmatch.stats.levels import Level
from evenmatch.stats.outliers import outliers as far_out
from evenmatch.types import Metric
from evenmatch.uses.meta.agreement_average import averages
from evenmatch.uses.meta.agreement_panels import Testing, agreement_of
from evenmatch.uses.meta.agreement_published import with_published
from evenmatch.uses.meta.agreement_result import Agreement, Entry
from evenmatch.uses.meta.agreement_scores import ScoredSet, score_sets

Outliers: TypeAlias = Literal["listed", "mad", "keep"]
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
    outliers: Outliers = "listed",
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
    _check(level, method, outliers, published)
    named = _named(metrics, published)
    sets = [ratings] if isinstance(ratings, RatedSet) else list(ratings)
    by_corpus = corpus and level == "system"
    chosen = [(rated, _kept(rated, level, outliers)) for rated in sets if _rated(rated, level)]
    scored = score_sets(
        named, chosen, make_run(**run), rated_only=level != "system", corpus=by_corpus
    )
    if published:
        scored = [with_published(each) for each in scored]
    usable = [each for each in scored if each.marks]
    if not usable:
        raise DataError(_why_nothing(sets, level))
    return _agreement(usable, level, method, outliers, Testing(confidence, resamples, seed))


def _named(metrics: Any, published: bool) -> dict[str, Metric]:
    given = list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    if not given and not published:
        raise InputError("the list of metrics is empty; name at least one")
    return {name_of(metric): as_metric(metric) for metric in given}


def _agreement(
    scored: Sequence[ScoredSet], level: str, method: Any, outliers: str, testing: Testing
) -> Agreement:
    entries: list[Entry] = []
    tests: dict[str, None] = {}
    for _, several in groupby(scored, key=lambda each: each.rated.name):
        own = list(several)
        by_set = []
        for each in own:
            found = agreement_of(each, LEVELS[level], method, testing)
            by_set.append(list(_entries(each, level, method, found)))
            tests |= {found.test: None} if found.test else {}
        entries += [entry for rows in by_set for entry in rows]
        entries += averages(by_set, [each.group for each in own])
    return Agreement(tuple(entries), tuple(scored), testing, outliers, tuple(tests))


def _entries(scored: ScoredSet, level: str, method: str, found: Any) -> Iterator[Entry]:
    rated = scored.rated
    for metric, interval, n, cluster in zip(
        scored.marks, found.intervals, found.counts, found.clusters, strict=True
    ):
        yield Entry(
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


def _kept(rated: RatedSet, level: str, outliers: str) -> Flags:
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


def _rated(rated: RatedSet, level: str) -> bool:
    """Whether there are ratings to compare with at this level."""
    return not np.isnan(rated.by_system if level == "system" else rated.ratings).all()


def _check(level: str, method: str, outliers: str, published: bool) -> None:
    known = (("level", level, tuple(LEVELS)), ("method", method, METHODS))
    for what, given, names in (*known, ("way with outliers", outliers, get_args(Outliers))):
        if given not in names:
            raise UnknownNameError(f"no {what} is called {given!r}; known: {', '.join(names)}")
    if published and level != "system":
        raise InputError(f"published scores are of systems, got level {level!r}; take 'system'")


def _why_nothing(sets: Sequence[RatedSet], level: str) -> str:
    names = ", ".join(dict.fromkeys(each.name for each in sets)) or "the list of rated sets"
    what = "system" if level == "system" else "output"
    hint = "" if level == "system" else "; there may be ratings at the level system"
    return f"{names} has no {what} with a text, a reference and a rating to compare{hint}"
