"""Comparison of systems on one test set, with confidence intervals and significance tests.

`compare` scores all systems (`score_systems`) and tests every pair of them by paired bootstrap and
approximate randomisation. The result is a `Comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, TypeVar, cast

import numpy as np

from evenmatch.api import metric_name, score
from evenmatch.data.tables import (
    SystemGrid,
    TextTable,
    format_number,
    table_to_latex,
    table_to_text,
)
from evenmatch.errors import InputError
from evenmatch.protocols import CorpusMetric, Metric, MetricLike, TextColumn
from evenmatch.registry import CallContext
from evenmatch.registry.opening import count_idf
from evenmatch.scoring.inputs import make_pairs
from evenmatch.scoring.metric import as_metric
from evenmatch.stats.bootstrap import name_bounds, percentile_bounds
from evenmatch.stats.paired import (
    Resampling,
    approximate_randomisation,
    compare_pairs,
    mean_counts,
    mean_score,
    resample_scores,
)
from evenmatch.types import Array, Pair, Scores

T = TypeVar("T")
Texts = Sequence[str] | TextColumn
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def compare(
    systems: Mapping[str, Texts],
    references: Texts | Sequence[Texts],
    metric: MetricLike | Sequence[MetricLike] = "bertscore",
    *,
    sources: Texts | None = None,
    confidence: float = 0.95,
    resamples: int | None = None,
    trials: int | None = None,
    seed: int = 0,
    **run: Any,
) -> Comparison:
    """Score every system and test the difference between every two, with one or more metrics.

    `systems` maps each system's name to its candidates; the first is the baseline. Each text is
    encoded once, whatever the number of systems and metrics. Metrics with a corpus score computed
    from counts (BLEU, chrF, TER) are compared by that score, all others by the mean over segments.
    `resamples` is the number of bootstrap resamples, `trials` the number of random swaps; by
    default 10,000, or more if there are so many pairs of systems that three stars could not be
    reached. `run` takes the run settings of `score`.

    >>> found = compare({"A": ["a b", "c"], "B": ["a b", "c d"]}, ["a b", "c d"], "chrf")
    >>> found.gaps[0].p_randomisation
    1.0
    """
    _check_systems(systems)
    metrics: list[Any] = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    # The smallest p-value is 1 / (n + 1); Holm's adjustment multiplies it by the number of pairs.
    enough = max(10_000, 1000 * math.comb(len(systems), 2))
    testing = Resampling(
        confidence,
        enough if resamples is None else resamples,
        enough if trials is None else trials,
        seed,
    )
    scored = score_systems(systems, references, metrics, sources, run)
    tested = [_test_systems(each, testing) for each in scored]
    return Comparison(
        systems=tuple(systems),
        scores=tuple(score for scores, _ in tested for score in scores),
        gaps=tuple(gap for _, gaps in tested for gap in gaps),
        higher_is_better={each.metric: each.higher_is_better for each in scored},
        signatures={each.metric: each.signature for each in scored},
        testing=testing,
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a comparison: scores by metric and system, gaps by metric and pair of systems."""

    systems: tuple[str, ...]
    scores: tuple[SystemScore, ...]
    gaps: tuple[Gap, ...]
    higher_is_better: Mapping[str, bool]
    signatures: Mapping[str, str]
    testing: Resampling
    scale: float = 1.0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each gap as a plain dictionary, with both scores and the `better` system.

        `better` is None unless both adjusted p-values are below .05.
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
        """The significantly better system of the two, or None."""
        if not gap.stars:
            return None
        ahead = gap.difference > 0
        return gap.system if ahead is self.higher_is_better[gap.metric] else gap.baseline

    def scaled(self, factor: float) -> Comparison:
        """Return the comparison with scores and differences multiplied by a factor."""
        if factor == 1:
            return self
        return replace(
            self,
            scores=tuple(_scaled(s, factor, "score low high mean corpus") for s in self.scores),
            gaps=tuple(_scaled(gap, factor, "difference low high") for gap in self.gaps),
            signatures={n: f"{s} · scale {factor:g}" for n, s in self.signatures.items()},
            scale=self.scale * factor,
        )

    def grid(self) -> SystemGrid:
        """Table of systems and metrics, as in papers.

        Stars mark systems that differ significantly from the first one.
        """
        scores: dict[str, dict[str, float]] = {system: {} for system in self.systems}
        for s in self.scores:
            scores[s.system][s.metric] = s.score
        baseline = self.systems[0]
        marks = {(g.system, g.metric): g.stars for g in self.gaps if g.baseline == baseline}
        return SystemGrid(self.higher_is_better, scores, marks, self.scale)

    def score_table(self) -> TextTable:
        """Table of scores by metric and system; the interval is of the tested statistic."""
        bounds = name_bounds(self.testing.confidence)
        table = [["metric", "system", "mean", "corpus", *bounds, "tested"]]
        for s in self.scores:
            numbers = (format_number(n, self.scale) for n in (s.mean, s.corpus, s.low, s.high))
            table.append([s.metric, s.system, *numbers, s.statistic])
        return table

    def gap_table(self) -> TextTable:
        """Table of differences by metric and pair of systems."""
        header = ["metric", "system", "baseline", "difference"]
        header += name_bounds(self.testing.confidence)
        header += ["bootstrap", "bootstrap (Holm)", "randomised", "randomised (Holm)", "better"]
        return [header, *map(self._gap_row, self.gaps)]

    def to_latex(self) -> str:
        """The `grid` and the `gap_table` as LaTeX."""
        return f"{self.grid().to_latex()}\n\n{table_to_latex(self.gap_table())}"

    def notes(self) -> list[str]:
        """How the numbers are computed: the tests, the stars, and the metrics' signatures."""
        t = self.testing
        corpus = dict.fromkeys(s.metric for s in self.scores if s.statistic == "corpus")
        shown = corpus_scores_note(corpus, {s.metric for s in self.scores}, "segments")
        lower = [name for name, higher in self.higher_is_better.items() if not higher]
        return [
            *shown,
            f"p-values: paired bootstrap ({t.resamples} resamples) and approximate randomisation "
            f"({t.trials} trials), two-sided, seed {t.seed}",
            "* p < .05, ** p < .01, *** p < .001 by both tests, Holm-adjusted for the pairs of "
            f"systems of a metric; in the first table against {self.systems[0]}",
            *([f"↓ lower is better: {', '.join(lower)}"] if lower else []),
            *(f"{name}: {signature}" for name, signature in self.signatures.items()),
        ]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the tables in notebooks instead of all fields."""
        printer.text(str(self))

    def __str__(self) -> str:
        tables = self.grid().to_text(), table_to_text(self.gap_table())
        return "\n\n".join([*tables, "\n".join(self.notes())])

    def _gap_row(self, gap: Gap) -> list[str]:
        numbers = (format_number(n, self.scale) for n in (gap.difference, gap.low, gap.high))
        p_values = (
            gap.p_bootstrap,
            gap.holm_bootstrap,
            gap.p_randomisation,
            gap.holm_randomisation,
        )
        shown = [*numbers, *map(format_number, p_values)]
        better = self.better_system(gap)
        label = f"{better} {gap.stars}" if better else "-"
        return [gap.metric, gap.system, gap.baseline, *shown, label]


def corpus_scores_note(corpus: Collection[str], metrics: Collection[str], units: str) -> list[str]:
    """Return a line about which metrics are shown by corpus score, if there are any.

    >>> corpus_scores_note(["bleu"], ["bleu", "f_disc"], "pairs")
    ['corpus scores: bleu; others: mean over pairs']
    >>> corpus_scores_note(["bleu"], ["bleu"], "pairs")
    ['corpus scores: bleu']
    """
    others = f"; others: mean over {units}" if len(corpus) < len(metrics) else ""
    return [f"corpus scores: {', '.join(corpus)}{others}"] if corpus else []


@dataclass(frozen=True, slots=True)
class SystemScore:
    """One metric's score of one system with its bootstrap interval.

    `score` is the statistic that was resampled: the corpus score or the mean over segments, as
    given in `statistic`.
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
    """Score of a system minus score of a baseline, by one metric.

    P-values are two-sided; `holm_…` are adjusted (Holm) for the number of pairs of systems.
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
        """Stars for .05, .01 and .001, by the larger of the two adjusted p-values."""
        p = max(self.holm_bootstrap, self.holm_randomisation)
        return next((stars for level, stars in _STARS if p < level), "")


def _scaled(part: T, factor: float, names: str) -> T:
    """Return a dataclass with some of its numbers multiplied by a factor."""
    numbers = {name: getattr(part, name) for name in names.split()}
    known = {name: n * factor for name, n in numbers.items() if n is not None}
    scaled: T = replace(cast(Any, part), **known)
    return scaled


def score_systems(
    systems: Mapping[str, Texts],
    references: Texts | Sequence[Texts],
    metrics: Sequence[MetricLike],
    sources: Texts | None,
    run: Mapping[str, Any],
) -> list[MetricSystemScores]:
    """Score all systems with each metric; all texts are scored in one call."""
    by_system = {
        name: _system_pairs(name, texts, references, sources) for name, texts in systems.items()
    }
    if not next(iter(by_system.values())):
        raise InputError("nothing to compare: the test set has no segments")
    if not metrics:
        raise InputError("the list of metrics is empty; give at least one")
    # count idf in the references of the test set once, not once for each system
    test_set = CallContext(pairs=next(iter(by_system.values())))
    ready = {metric_name(given): count_idf(as_metric(given), test_set) for given in metrics}
    shared = [metric for metric in ready.values() if not isinstance(metric, CorpusMetric)]
    every = [pair for pairs in by_system.values() for pair in pairs]
    scored = {}
    if shared:
        scored = score(
            [pair.candidate for pair in every],
            [pair.references for pair in every],
            shared,
            sources=[pair.source for pair in every if pair.source is not None] or None,
            **run,
        )
    return [
        _from_totals(name, metric, by_system)
        if isinstance(metric, CorpusMetric)
        else _from_segments(name, metric, scored[metric_name(metric)], by_system)
        for name, metric in ready.items()
    ]


@dataclass(frozen=True, slots=True, eq=False)
class MetricSystemScores:
    """One metric on all systems; `score` maps total counts to the tested `statistic`."""

    metric: str
    signature: str
    higher_is_better: bool
    statistic: str  # 'corpus' or 'mean'
    score: Callable[[Array], Array]
    systems: Mapping[str, SystemStatistics]


@dataclass(frozen=True, slots=True, eq=False)
class SystemStatistics:
    """One metric on one system: counts of each segment, and its scores."""

    counts: Array
    scores: Scores


def _check_systems(systems: Mapping[str, Texts]) -> None:
    if not isinstance(systems, Mapping):
        raise InputError(
            f"systems must be a dictionary of candidates by name, got {type(systems).__name__}; "
            "write {'A': [...], 'B': [...]}"
        )
    if len(systems) < 2:
        raise InputError(f"a comparison needs at least two systems, got {len(systems)}")
    for name in systems:
        if not isinstance(name, str) or not name:
            raise InputError(f"a system's name must be a non-empty string, got {name!r}")


def _test_systems(
    scored: MetricSystemScores, testing: Resampling
) -> tuple[list[SystemScore], list[Gap]]:
    """Compute each system's interval and test every pair of systems, by one metric.

    P-values are adjusted within the metric, so that they do not depend on which others are used.
    """
    systems = scored.systems
    resampled = resample_scores(
        {name: system.counts for name, system in systems.items()},
        dict.fromkeys(systems, scored.score),
        resamples=testing.resamples,
        trials=0,
        seed=testing.seed,
    )
    scores = []
    for name, found in resampled.items():
        interval = found.value, *percentile_bounds(found.resamples, testing.confidence)
        means = systems[name].scores.mean, systems[name].scores.corpus
        scores.append(SystemScore(scored.metric, name, scored.statistic, *interval, *means))
    swap_p = [
        approximate_randomisation(
            b.counts, a.counts, scored.score, resamples=testing.trials, seed=testing.seed
        )
        for a, b in combinations(systems.values(), 2)
    ]
    pairs = compare_pairs(resampled, swap_p, testing.confidence)
    return scores, [Gap(scored.metric, *pair) for pair in pairs]


def _system_pairs(
    name: str, texts: Texts, references: Texts | Sequence[Texts], sources: Texts | None
) -> list[Pair]:
    try:
        return make_pairs(texts, references, sources)
    except InputError as error:
        raise InputError(f"system {name!r}: {error}") from None


def _from_totals(name: str, metric: Any, by_system: Mapping[str, list[Pair]]) -> MetricSystemScores:
    statistics, signature = {}, ""
    for system, pairs in by_system.items():
        scores = metric(pairs)
        counts = np.asarray(scores.counts, dtype=np.float64)
        statistics[system] = SystemStatistics(counts, scores)
        signature = scores.signature
    return MetricSystemScores(
        name, signature, metric.higher_is_better, "corpus", metric.score_totals, statistics
    )


def _from_segments(
    name: str, metric: Metric, scores: Scores, by_system: Mapping[str, list[Pair]]
) -> MetricSystemScores:
    statistics, start = {}, 0
    for system, pairs in by_system.items():
        segments = scores[start : start + len(pairs)]
        # The corpus score of the joint call mixes all systems, so score each system separately.
        corpus = None if scores.corpus is None else metric(pairs).corpus
        own = Scores(segments, scores.signature, corpus)
        statistics[system] = SystemStatistics(mean_counts(own.values), own)
        start += len(pairs)
    return MetricSystemScores(
        name, scores.signature, metric.higher_is_better, "mean", mean_score, statistics
    )
