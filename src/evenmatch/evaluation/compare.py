"""compare: systems against each other on one test set, with intervals and tests.

The outcome of a comparison of systems, and how it reads.

Scores of several systems on the same segments, ready to be resampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evenmatch.api import metric_name, score
from evenmatch.data.tables import TextTable, format_number, table_to_text
from evenmatch.errors import InputError
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.scoring.engine import with_idf_counts
from evenmatch.scoring.inputs import make_pairs
from evenmatch.scoring.metric import AlignMetric, as_metric
from evenmatch.stats.p_values import holm
from evenmatch.stats.paired import (
    Difference,
    approximate_randomisation,
    mean_score,
    paired_bootstrap,
    score_interval,
)
from evenmatch.types import Array, Pair, Scores

Texts = Sequence[str]


def compare(
    systems: Mapping[str, Texts],
    references: Texts | Sequence[Texts],
    metric: str | Metric | Sequence[str | Metric] = "bertscore",
    *,
    sources: Texts | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = 0,
    **run: Any,
) -> Comparison:
    """Every system's score, and the difference between every two, by one metric or many.

    `systems` gives each system's candidates by its name; the first is the baseline. All texts go
    through a model once, whatever the number of systems and metrics. Where a metric's corpus score
    comes from totals (BLEU, chrF, TER), that is what is compared, else the mean over segments.
    Segments are drawn again `resamples` times, and outputs swapped in `trials` trials. `run` is as
    in `score`.

    >>> found = compare({"A": ["a b", "c"], "B": ["a b", "c d"]}, ["a b", "c d"], "chrf")
    >>> found.gaps[0].p_randomisation
    1.0
    """
    _check_arguments(systems, resamples, trials)
    wanted: list[Any] = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    testing = ComparisonTestSettings(confidence, resamples, trials, seed)
    judged = score_systems(systems, references, wanted, sources, run)
    return Comparison(
        systems=tuple(systems),
        scores=tuple(score for each in judged for score in _system_scores(each, testing)),
        gaps=tuple(gap for each in judged for gap in _gaps(each, testing)),
        higher_is_better={each.metric: each.higher_is_better for each in judged},
        signatures={each.metric: each.signature for each in judged},
        testing=testing,
    )


def _check_arguments(systems: Mapping[str, Texts], resamples: int, trials: int) -> None:
    if not isinstance(systems, Mapping):
        raise InputError(
            f"systems must be a dictionary of candidates by name, got {type(systems).__name__}; "
            "write {'A': [...], 'B': [...]}"
        )
    if len(systems) < 2:
        raise InputError(f"{len(systems)} systems to compare; give at least two")
    for name in systems:
        if not isinstance(name, str) or not name:
            raise InputError(f"a system's name must be a string that is not empty, got {name!r}")
    for what, count in (("resamples", resamples), ("trials", trials)):
        if type(count) is not int or count < 1:
            raise InputError(f"{what} must be a whole number, at least 1, got {count!r}")


def _system_scores(
    judged: MetricSystemScores, testing: ComparisonTestSettings
) -> Iterator[SystemScore]:
    for system, verdict in judged.systems.items():
        found = score_interval(
            verdict.counts,
            score=judged.score,
            confidence=testing.confidence,
            resamples=testing.resamples,
            seed=testing.seed,
        )
        yield SystemScore(
            judged.metric,
            system,
            judged.statistic,
            found.value,
            found.low,
            found.high,
            verdict.mean,
            verdict.corpus,
        )


def _gaps(judged: MetricSystemScores, testing: ComparisonTestSettings) -> list[Gap]:
    pairs = list(combinations(judged.systems, 2))
    tests = [_test_difference(judged, system, baseline, testing) for baseline, system in pairs]
    # The family of tests is one metric's: what another metric says must not change it.
    adjusted = zip(*(holm(p) for p in zip(*((d.p, p) for d, p in tests), strict=True)), strict=True)
    return [
        Gap(judged.metric, *pair, d.value, d.low, d.high, d.p, p, *map(float, both))
        for pair, (d, p), both in zip(pairs, tests, adjusted, strict=True)
    ]


def _test_difference(
    judged: MetricSystemScores, system: str, baseline: str, testing: ComparisonTestSettings
) -> tuple[Difference, float]:
    """The difference with its bootstrap interval and p-value, and the randomisation's p-value."""
    own, other = judged.systems[system].counts, judged.systems[baseline].counts
    difference = paired_bootstrap(
        own,
        other,
        score=judged.score,
        confidence=testing.confidence,
        resamples=testing.resamples,
        seed=testing.seed,
    )
    swapped = approximate_randomisation(
        own, other, score=judged.score, resamples=testing.trials, seed=testing.seed
    )
    return difference, swapped.p


_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True, slots=True)
class ComparisonTestSettings:
    """How intervals and p-values were made."""

    confidence: float
    resamples: int
    trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class SystemScore:
    """One metric's score of one system with its bootstrap interval.

    `score` is what was resampled: the corpus score or the mean over segments, as `statistic` says.
    """

    metric: str
    system: str
    statistic: str
    score: float
    low: float
    high: float
    mean: float
    corpus: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """By how much one metric scores a system higher than a baseline.

    P-values are those of no difference, two-sided; `holm_…` are adjusted for the number of pairs
    of systems this metric compares.
    """

    metric: str
    baseline: str
    system: str
    difference: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float
    holm_bootstrap: float
    holm_randomisation: float

    @property
    def stars(self) -> str:
        """Stars for .05, .01 and .001 of the adjusted p-values, both of them."""
        p = max(self.holm_bootstrap, self.holm_randomisation)
        return next((mark for level, mark in _STARS if p < level), "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems compared: scores by metric and system, gaps by metric and pair of systems."""

    systems: tuple[str, ...]
    scores: tuple[SystemScore, ...]
    gaps: tuple[Gap, ...]
    higher_is_better: Mapping[str, bool]
    signatures: Mapping[str, str]
    testing: ComparisonTestSettings

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each gap as a plain dictionary, with the two scores and which system is `better`.

        `better` is None where the tests, adjusted, do not agree on a difference at .05.
        """
        scores = {(s.metric, s.system): s.score for s in self.scores}
        return [
            {
                **asdict(gap),
                "baseline_score": scores[gap.metric, gap.baseline],
                "system_score": scores[gap.metric, gap.system],
                "better": self.better_system(gap),
            }
            for gap in self.gaps
        ]

    def better_system(self, gap: Gap) -> str | None:
        """The system that is significantly better of the two, if one is."""
        if not gap.stars:
            return None
        ahead = gap.difference > 0
        return gap.system if ahead is self.higher_is_better[gap.metric] else gap.baseline

    def score_table(self) -> TextTable:
        """Scores by metric and system; the interval is that of what was tested."""
        header = ["metric", "system", "mean", "corpus", *self._bounds, "tested"]
        rows = [
            [
                s.metric,
                s.system,
                *map(format_number, (s.mean, s.corpus, s.low, s.high)),
                s.statistic,
            ]
            for s in self.scores
        ]
        return [header, *rows]

    def gap_table(self) -> TextTable:
        """Differences by metric and pair of systems."""
        header = ["metric", "system", "less", "difference", *self._bounds]
        header += ["bootstrap", "Holm", "randomised", "Holm", "better"]
        return [header, *map(self._gap_row, self.gaps)]

    def notes(self) -> list[str]:
        """What the tables rest on: the tests, the marks, and the recipe of each metric."""
        t = self.testing
        lower = [name for name, higher in self.higher_is_better.items() if not higher]
        return [
            f"p-values: paired bootstrap ({t.resamples} resamples) and approximate randomisation "
            f"({t.trials} trials), two-sided, seed {t.seed}",
            "better: * .05, ** .01, *** .001 by both tests, adjusted (Holm) for the pairs of "
            "systems of a metric",
            *([f"lower is better: {', '.join(lower)}"] if lower else []),
            *(f"{name}: {signature}" for name, signature in self.signatures.items()),
        ]

    def __str__(self) -> str:
        tables = table_to_text(self.score_table()), table_to_text(self.gap_table())
        return "\n\n".join([*tables, "\n".join(self.notes())])

    @property
    def _bounds(self) -> tuple[str, str]:
        outside = 50 * (1 - self.testing.confidence)
        return f"{outside:.3g}%", f"{100 - outside:.3g}%"

    def _gap_row(self, gap: Gap) -> list[str]:
        numbers = (gap.difference, gap.low, gap.high, gap.p_bootstrap, gap.holm_bootstrap)
        shown = [*map(format_number, (*numbers, gap.p_randomisation, gap.holm_randomisation))]
        better = self.better_system(gap)
        said = f"{better} {gap.stars}" if better else "-"
        return [gap.metric, gap.system, gap.baseline, *shown, said]


@dataclass(frozen=True, slots=True, eq=False)
class SystemStatistics:
    """One metric on one system: the counts of each segment, the mean, and the corpus score."""

    counts: Array
    mean: float
    corpus: float | None


@dataclass(frozen=True, slots=True, eq=False)
class MetricSystemScores:
    """One metric on all systems; `score` turns totals of counts into the `statistic` tested."""

    metric: str
    signature: str
    higher_is_better: bool
    statistic: str  # 'corpus' or 'mean'
    score: Callable[[Array], Array]
    systems: Mapping[str, SystemStatistics]


def score_systems(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Any],
    metrics: Sequence[str | Metric],
    sources: Sequence[str] | None,
    run: Mapping[str, Any],
) -> list[MetricSystemScores]:
    """Each metric's verdict on each system; all texts go through in one call."""
    own = {name: _system_pairs(name, texts, references, sources) for name, texts in systems.items()}
    if not next(iter(own.values())):
        raise InputError("there is nothing to compare: the test set has no segment")
    if not metrics:
        raise InputError("the list of metrics is empty; name at least one")
    ready = {metric_name(given): _with_idf_counts(as_metric(given), own) for given in metrics}
    shared = [metric for metric in ready.values() if not isinstance(metric, CorpusMetric)]
    every = [pair for pairs in own.values() for pair in pairs]
    scored = _score_pairs(every, shared, run) if shared else {}
    return [
        _from_totals(name, metric, own)
        if isinstance(metric, CorpusMetric)
        else _from_segments(name, metric, scored[metric_name(metric)], own)
        for name, metric in ready.items()
    ]


def _system_pairs(
    name: str, texts: Sequence[str], references: Sequence[Any], sources: Sequence[str] | None
) -> list[Pair]:
    try:
        return make_pairs(texts, references, sources)
    except InputError as error:
        raise InputError(f"system {name!r}: {error}") from None


def _with_idf_counts(metric: Metric, own: Mapping[str, list[Pair]]) -> Metric:
    """The metric with idf counted from the test set's references, once and not once a system."""
    if not isinstance(metric, AlignMetric):
        return metric
    return with_idf_counts(metric, next(iter(own.values())))


def _score_pairs(
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


def _from_totals(name: str, metric: Any, own: Mapping[str, list[Pair]]) -> MetricSystemScores:
    verdicts, signature = {}, ""
    for system, pairs in own.items():
        scores, counts = metric.score_with_counts(pairs)
        verdicts[system] = SystemStatistics(counts, scores.mean, scores.corpus)
        signature = scores.signature
    return MetricSystemScores(
        name, signature, metric.higher_is_better, "corpus", metric.score_totals, verdicts
    )


def _from_segments(
    name: str, metric: Metric, scores: Scores, own: Mapping[str, list[Pair]]
) -> MetricSystemScores:
    verdicts, start = {}, 0
    for system, pairs in own.items():
        values = np.array([s.value for s in scores.segments[start : start + len(pairs)]])
        # A corpus score of all systems together is nobody's: ask for each one's own.
        corpus = None if scores.corpus is None else metric(pairs).corpus
        verdicts[system] = SystemStatistics(values, float(values.mean()), corpus)
        start += len(pairs)
    return MetricSystemScores(
        name, scores.signature, metric.higher_is_better, "mean", mean_score, verdicts
    )
