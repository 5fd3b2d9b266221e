"""Comparison of systems on one test set, with confidence intervals and significance tests.

`compare` scores all systems in one call and tests every pair of them by paired bootstrap and
approximate randomisation. The result is a `Comparison`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.tables import TextTable, format_number, table_to_text
from evenmatch.errors import InputError
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.registry import CallContext
from evenmatch.registry.opening import count_idf
from evenmatch.scoring.inputs import make_pairs, make_run, warn_of_other_languages
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.bootstrap import name_bounds
from evenmatch.stats.paired import (
    Resampling,
    TotalsScore,
    approximate_randomisation,
    compare_pairs,
    mean_counts,
    mean_score,
    percentile_bounds,
    resample_scores,
)
from evenmatch.types import Pair, Scores

Texts = Sequence[str]
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


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
    """Score every system and test the difference between every two, with one or more metrics.

    `systems` maps each system's name to its candidates; the first is the baseline. Each text is
    encoded once, whatever the number of systems and metrics. Metrics with a corpus score computed
    from counts (BLEU, chrF, TER) are compared by that score, all others by the mean over segments.
    `resamples` is the number of bootstrap resamples, `trials` the number of random swaps. `run`
    takes the run settings of `score`.

    >>> found = compare({"A": ["a b", "c"], "B": ["a b", "c d"]}, ["a b", "c d"], "chrf")
    >>> found.gaps[0].p_randomisation
    1.0
    """
    _check_systems(systems)
    metrics: list[Any] = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    testing = Resampling(confidence, resamples, trials, seed)
    by_system = {
        name: _system_pairs(name, texts, references, sources) for name, texts in systems.items()
    }
    test_set = next(iter(by_system.values()))
    if not test_set:
        raise InputError("nothing to compare: the test set has no segments")
    if not metrics:
        raise InputError("the list of metrics is empty; give at least one")
    # count idf in the references of the test set once, not once for each system
    context = CallContext(pairs=test_set)
    ready = {metric_name(given): count_idf(as_metric(given), context) for given in metrics}
    every = [pair for pairs in by_system.values() for pair in pairs]
    warn_of_other_languages([*ready.values()], every)
    joint = score_metrics([*ready.values()], every, make_run(**run))
    scored = dict(zip(ready, joint, strict=True))
    tested = [
        _test_systems(name, metric, scored[name], by_system, testing)
        for name, metric in ready.items()
    ]
    return Comparison(
        systems=tuple(systems),
        scores=tuple(score for scores, _ in tested for score in scores),
        gaps=tuple(gap for _, gaps in tested for gap in gaps),
        higher_is_better={name: metric.higher_is_better for name, metric in ready.items()},
        signatures={name: scores.signature for name, scores in scored.items()},
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

    def score_table(self) -> TextTable:
        """Table of scores by metric and system; the interval is of the tested statistic."""
        bounds = name_bounds(self.testing.confidence)
        header = ["metric", "system", "mean", "corpus", *bounds, "tested"]
        table = [header]
        for s in self.scores:
            numbers = map(format_number, (s.mean, s.corpus, s.low, s.high))
            table.append([s.metric, s.system, *numbers, s.statistic])
        return table

    def gap_table(self) -> TextTable:
        """Table of differences by metric and pair of systems."""
        bounds = name_bounds(self.testing.confidence)
        header = ["metric", "system", "baseline", "difference", *bounds]
        header += ["bootstrap", "Holm", "randomised", "Holm", "better"]
        return [header, *map(self._gap_row, self.gaps)]

    def notes(self) -> list[str]:
        """How the numbers are computed: the tests, the stars, and the metrics' signatures."""
        t = self.testing
        lower = [name for name, higher in self.higher_is_better.items() if not higher]
        return [
            f"p-values: paired bootstrap ({t.resamples} resamples) and approximate randomisation "
            f"({t.trials} trials), two-sided, seed {t.seed}",
            "better: * p < .05, ** p < .01, *** p < .001 by both tests, Holm-adjusted for the "
            "pairs of systems of a metric",
            *([f"lower is better: {', '.join(lower)}"] if lower else []),
            *(f"{name}: {signature}" for name, signature in self.signatures.items()),
        ]

    def __str__(self) -> str:
        tables = table_to_text(self.score_table()), table_to_text(self.gap_table())
        return "\n\n".join([*tables, "\n".join(self.notes())])

    def _gap_row(self, gap: Gap) -> list[str]:
        numbers = (gap.difference, gap.low, gap.high, gap.p_bootstrap, gap.holm_bootstrap)
        shown = [*map(format_number, (*numbers, gap.p_randomisation, gap.holm_randomisation))]
        better = self.better_system(gap)
        label = f"{better} {gap.stars}" if better else "-"
        return [gap.metric, gap.system, gap.baseline, *shown, label]


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


def _check_systems(systems: Mapping[str, Texts]) -> None:
    if not isinstance(systems, Mapping):
        raise InputError(
            f"systems must be a dictionary of candidates by name, got {type(systems).__name__}; "
            "write {'A': [...], 'B': [...]}"
        )
    if len(systems) < 2:
        raise InputError(f"{len(systems)} systems to compare; give at least two")
    for name in systems:
        if not isinstance(name, str) or not name:
            raise InputError(f"a system's name must be a non-empty string, got {name!r}")


def _test_systems(
    name: str,
    metric: Any,
    scores: Scores,
    by_system: Mapping[str, Sequence[Pair]],
    testing: Resampling,
) -> tuple[list[SystemScore], list[Gap]]:
    """Compute each system's interval and test every pair of systems, by one metric.

    `scores` are those of all systems, one after the other. P-values are adjusted within the metric,
    so that they do not depend on which others are used.
    """
    values = np.split(np.array([s.value for s in scores.segments]), len(by_system))
    score_totals: TotalsScore = mean_score
    statistic, counts = "mean", [mean_counts(own) for own in values]
    if isinstance(metric, CorpusMetric):
        statistic, score_totals = "corpus", metric.score_totals
        counts = np.split(np.asarray(scores.counts, dtype=np.float64), len(by_system))
    resampled = resample_scores(
        dict(zip(by_system, counts, strict=True)),
        dict.fromkeys(by_system, score_totals),
        resamples=testing.resamples,
        trials=0,
        seed=testing.seed,
    )
    found = []
    for (system, each), own in zip(resampled.items(), values, strict=True):
        interval = each.value, *percentile_bounds(each.resamples, testing.confidence)
        corpus = None
        if scores.corpus is not None:  # that of the joint call mixes all systems
            corpus = each.value if statistic == "corpus" else metric(by_system[system]).corpus
        found.append(SystemScore(name, system, statistic, *interval, float(own.mean()), corpus))
    swap_p = [
        approximate_randomisation(b, a, score_totals, resamples=testing.trials, seed=testing.seed)
        for a, b in combinations(counts, 2)
    ]
    pairs = compare_pairs(resampled, swap_p, testing.confidence)
    return found, [Gap(name, *pair) for pair in pairs]


def _system_pairs(
    name: str, texts: Sequence[str], references: Sequence[Any], sources: Sequence[str] | None
) -> list[Pair]:
    try:
        return make_pairs(texts, references, sources)
    except InputError as error:
        raise InputError(f"system {name!r}: {error}") from None
