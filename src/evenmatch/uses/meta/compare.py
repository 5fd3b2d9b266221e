"""compare: systems against each other on one test set, with intervals and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from evenmatch.errors import InputError
from evenmatch.stats.adjustments import holm
from evenmatch.stats.totals import (
    Difference,
    approximate_randomisation,
    paired_bootstrap,
    score_interval,
)
from evenmatch.types import Metric
from evenmatch.uses.meta.compare_result import Comparison, Gap, SystemScore, Testing
from evenmatch.uses.meta.compare_scores import Judged, judge

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
    _check(systems, resamples, trials)
    wanted: list[Any] = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    testing = Testing(confidence, resamples, trials, seed)
    judged = judge(systems, references, wanted, sources, run)
    return Comparison(
        systems=tuple(systems),
        scores=tuple(score for each in judged for score in _scores(each, testing)),
        gaps=tuple(gap for each in judged for gap in _gaps(each, testing)),
        higher_is_better={each.metric: each.higher_is_better for each in judged},
        signatures={each.metric: each.signature for each in judged},
        testing=testing,
    )


def _check(systems: Mapping[str, Texts], resamples: int, trials: int) -> None:
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


def _scores(judged: Judged, testing: Testing) -> Iterator[SystemScore]:
    for system, verdict in judged.verdicts.items():
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


def _gaps(judged: Judged, testing: Testing) -> list[Gap]:
    pairs = list(combinations(judged.verdicts, 2))
    tests = [_test(judged, system, baseline, testing) for baseline, system in pairs]
    # The family of tests is one metric's: what another metric says must not change it.
    adjusted = zip(*(holm(p) for p in zip(*((d.p, p) for d, p in tests), strict=True)), strict=True)
    return [
        Gap(judged.metric, *pair, d.value, d.low, d.high, d.p, p, *map(float, both))
        for pair, (d, p), both in zip(pairs, tests, adjusted, strict=True)
    ]


def _test(judged: Judged, system: str, baseline: str, testing: Testing) -> tuple[Difference, float]:
    """The difference with its bootstrap interval and p-value, and the randomisation's p-value."""
    own, other = judged.verdicts[system].counts, judged.verdicts[baseline].counts
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
