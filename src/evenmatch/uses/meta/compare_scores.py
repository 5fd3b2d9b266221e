"""Scores of several systems on the same segments, ready to be resampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.scoring.ask import name_of, score
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.pairs import make_pairs
from evenmatch.scoring.shared import with_counts
from evenmatch.scoring.together import as_metric
from evenmatch.stats.totals import mean_score
from evenmatch.types import Array, Metric, Pair, Scores, Totalled


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """One metric on one system: the counts of each segment, the mean, and the corpus score."""

    counts: Array
    mean: float
    corpus: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One metric on all systems; `score` turns totals of counts into the `statistic` tested."""

    metric: str
    signature: str
    higher_is_better: bool
    statistic: str  # 'corpus' or 'mean'
    score: Callable[[Array], Array]
    verdicts: Mapping[str, Verdict]


def judge(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Any],
    metrics: Sequence[str | Metric],
    sources: Sequence[str] | None,
    run: Mapping[str, Any],
) -> list[Judged]:
    """Each metric's verdict on each system; all texts go through in one call."""
    own = {name: _pairs(name, texts, references, sources) for name, texts in systems.items()}
    if not next(iter(own.values())):
        raise InputError("there is nothing to compare: the test set has no segment")
    if not metrics:
        raise InputError("the list of metrics is empty; name at least one")
    ready = {name_of(given): _frozen(as_metric(given), own) for given in metrics}
    shared = [metric for metric in ready.values() if not isinstance(metric, Totalled)]
    every = [pair for pairs in own.values() for pair in pairs]
    scored = _scored(every, shared, run) if shared else {}
    return [
        _by_totals(name, metric, own)
        if isinstance(metric, Totalled)
        else _by_mean(name, metric, scored[name_of(metric)], own)
        for name, metric in ready.items()
    ]


def _pairs(
    name: str, texts: Sequence[str], references: Sequence[Any], sources: Sequence[str] | None
) -> list[Pair]:
    try:
        return make_pairs(texts, references, sources)
    except InputError as error:
        raise InputError(f"system {name!r}: {error}") from None


def _frozen(metric: Metric, own: Mapping[str, list[Pair]]) -> Metric:
    """The metric with idf counted from the test set's references, once and not once a system."""
    if not isinstance(metric, AlignMetric):
        return metric
    return with_counts(metric, next(iter(own.values())))


def _scored(
    pairs: Sequence[Pair], metrics: Sequence[Metric], run: Mapping[str, Any]
) -> dict[str, Scores]:
    given = [pair.source for pair in pairs if pair.source is not None]
    return score(
        [pair.candidate for pair in pairs],
        [pair.references for pair in pairs],
        metrics,
        sources=given or None,
        **run,
    )


def _by_totals(name: str, metric: Any, own: Mapping[str, list[Pair]]) -> Judged:
    verdicts, signature = {}, ""
    for system, pairs in own.items():
        scores, counts = metric.counted(pairs)
        verdicts[system] = Verdict(counts, scores.mean, scores.corpus)
        signature = scores.signature
    return Judged(name, signature, metric.higher_is_better, "corpus", metric.of_totals, verdicts)


def _by_mean(name: str, metric: Metric, scores: Scores, own: Mapping[str, list[Pair]]) -> Judged:
    verdicts, start = {}, 0
    for system, pairs in own.items():
        values = np.array([s.value for s in scores.segments[start : start + len(pairs)]])
        # A corpus score of all systems together is nobody's: ask for each one's own.
        corpus = None if scores.corpus is None else metric(pairs).corpus
        verdicts[system] = Verdict(values, float(values.mean()), corpus)
        start += len(pairs)
    return Judged(name, scores.signature, metric.higher_is_better, "mean", mean_score, verdicts)
