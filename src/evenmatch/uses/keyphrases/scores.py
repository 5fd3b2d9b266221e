"""score_keyphrases: one table over data sets, systems and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.data.documents import DocumentSet
from evenmatch.data.documents_reading import read_documents
from evenmatch.errors import InputError
from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.settings import make_run
from evenmatch.stats.adjustments import holm
from evenmatch.stats.intervals import check_interval
from evenmatch.types import Metric
from evenmatch.uses.keyphrases.judging import COLUMNS, Judged, judge_documents, keyphrase_metrics
from evenmatch.uses.keyphrases.resampling import (
    Drawn,
    bootstrap_p,
    draw,
    interval,
    mean_of_seeds,
    randomisation_p,
)
from evenmatch.uses.keyphrases.table import (
    Cell,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
    Resampling,
)

Data: TypeAlias = str | Path | DocumentSet
Scored: TypeAlias = Mapping[Any, Drawn]

USUAL = ("fg", "f1_at_5", "f1_at_m")
_SEED = re.compile(r"(.+?)[-_. ]?seed[-_ ]?\d+")


def score_keyphrases(
    data: Data | Sequence[Data],
    metric: str | Metric | Sequence[str | Metric] = USUAL,
    *,
    predictions: Sequence[str] = (),
    strict: bool = False,
    mean_seeds: bool = False,
    confidence: float = 0.95,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = 0,
    **run: Any,
) -> KeyphraseTable:
    """Every system's keyphrases by every metric: over present phrases, absent ones, and all.

    `data` is what `read_documents` takes or gives, or several of it; `predictions` and
    `strict` are its settings. With `mean_seeds` systems whose names differ in the number after
    'seed' also get a row with their mean. Documents are drawn again `resamples` times for the
    intervals and the paired bootstrap, and swapped in `trials` trials. `run` is as in `score`.
    """
    resampling = Resampling(confidence, resamples, trials, seed)
    _check(resampling)
    metrics = keyphrase_metrics(metric if isinstance(metric, (list, tuple)) else [metric])  # type: ignore[list-item]  # one metric
    how = make_run(**run)
    judged = [judge_documents(each, metrics, how) for each in _sets(data, predictions, strict)]
    rows: list[KeyphraseRow] = []
    gaps: list[KeyphraseGap] = []
    for each in judged:
        scored = _draw(each, metrics, resampling)
        rows += _rows(each, scored, metrics, resampling, mean_seeds)
        gaps += _gaps(each, scored, metrics, resampling)
    return KeyphraseTable(
        tuple(rows),
        tuple(gaps),
        {each.data: each.flagged for each in judged},
        tuple(line for each in judged for line in each.trouble),
        {name: replace(each, which="all").signature for name, each in metrics.items()},
        resampling,
    )


def _check(resampling: Resampling) -> None:
    check_interval("percentile", resampling.confidence)
    for what, count in (("resamples", resampling.resamples), ("trials", resampling.trials)):
        if type(count) is not int or count < 1:
            raise InputError(f"{what} must be a whole number, at least 1, got {count!r}")


def _sets(
    data: Data | Sequence[Data], predictions: Sequence[str], strict: bool
) -> Iterator[DocumentSet]:
    several = [data] if isinstance(data, (str, Path, DocumentSet)) else data
    for each in several:
        if isinstance(each, DocumentSet):
            yield each
        else:
            yield from read_documents(each, predictions=predictions, strict=strict)


def _draw(judged: Judged, metrics: Mapping[str, KeyphraseMetric], r: Resampling) -> Scored:
    scores = {key: metrics[key[0]].of_totals for key in judged.counts}
    trials = r.trials if len(judged.systems) > 1 else 0
    return draw(judged.counts, scores, resamples=r.resamples, trials=trials, seed=r.seed)


def _rows(
    judged: Judged, scored: Scored, metrics: Mapping[str, Any], r: Resampling, mean_seeds: bool
) -> Iterator[KeyphraseRow]:
    groups: dict[str, tuple[str, ...]] = {system: (system,) for system in judged.systems}
    if mean_seeds:
        groups |= _by_seed(judged.systems)
    for name, members in groups.items():
        for metric in metrics:
            cells = {}
            for column in COLUMNS:
                value, draws = mean_of_seeds([scored[metric, column, s] for s in members])
                cells[column] = Cell(value, *interval(draws, r.confidence))
            yield KeyphraseRow(judged.data, name, metric, cells, judged.documents)


def _by_seed(systems: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Systems that differ in their seed only, under one name.

    >>> _by_seed(["a-seed1", "a-seed2", "b"])
    {'a (mean of 2 seeds)': ('a-seed1', 'a-seed2')}
    """
    found: dict[str, list[str]] = {}
    for system in systems:
        if match := _SEED.fullmatch(system):
            found.setdefault(match[1], []).append(system)
    return {
        f"{name} (mean of {len(own)} seeds)": tuple(own)
        for name, own in found.items()
        if len(own) > 1
    }


def _gaps(
    judged: Judged, scored: Scored, metrics: Mapping[str, Any], r: Resampling
) -> Iterator[KeyphraseGap]:
    pairs = list(combinations(judged.systems, 2))
    for metric in metrics if pairs else ():
        for column in COLUMNS:
            own = {system: scored[metric, column, system] for system in judged.systems}
            tests = [
                (bootstrap_p(own[b], own[a]), randomisation_p(own[b], own[a])) for a, b in pairs
            ]
            # The family is one metric's on one column: what others say must not change it.
            adjusted = zip(*(holm(p) for p in zip(*tests, strict=True)), strict=True)
            for (a, b), p, holms in zip(pairs, tests, adjusted, strict=True):
                bounds = interval(own[b].draws - own[a].draws, r.confidence)
                value = own[b].value - own[a].value
                yield KeyphraseGap(
                    judged.data, metric, column, a, b, value, *bounds, *p, *map(float, holms)
                )
