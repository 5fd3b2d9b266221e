"""score_keyphrases: one table over data sets, systems and metrics.

Every system's keyphrases on one set of documents, by every metric: numbers to resample.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from evenmatch.api import metric_name, score_with_counts
from evenmatch.data.documents import DocumentSet, read_documents
from evenmatch.errors import InputError
from evenmatch.evaluation.keyphrase_table import (
    COLUMNS,
    Column,
    KeyphraseCell,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
    Resampling,
)
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric
from evenmatch.stats.bootstrap import check_interval
from evenmatch.stats.p_values import holm
from evenmatch.stats.paired import (
    ResampledScore,
    bootstrap_p_value,
    mean_of_seeds,
    percentile_bounds,
    randomisation_p_value,
    resample_scores,
)
from evenmatch.types import Array, Run

DocumentSource: TypeAlias = str | Path | DocumentSet


ScoresByKey: TypeAlias = Mapping[Any, ResampledScore]


DEFAULT_KEYPHRASE_METRICS = ("fg", "f1_at_5", "f1_at_m")


_SEED_NAME = re.compile(r"(.+?)[-_. ]?seed[-_ ]?\d+")


def score_keyphrases(
    data: DocumentSource | Sequence[DocumentSource],
    metric: str | Metric | Sequence[str | Metric] = DEFAULT_KEYPHRASE_METRICS,
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
    _check_resampling(resampling)
    metrics = build_keyphrase_metrics(metric if isinstance(metric, (list, tuple)) else [metric])  # type: ignore[list-item]  # one metric
    how = make_run(**run)
    judged = [
        score_document_set(each, metrics, how) for each in _document_sets(data, predictions, strict)
    ]
    rows: list[KeyphraseRow] = []
    gaps: list[KeyphraseGap] = []
    for each in judged:
        scored = _resample(each, metrics, resampling)
        rows += _rows(each, scored, metrics, resampling, mean_seeds)
        gaps += _gaps(each, scored, metrics, resampling)
    return KeyphraseTable(
        tuple(rows),
        tuple(gaps),
        {each.data: each.flagged for each in judged},
        tuple(line for each in judged for line in each.errors),
        {name: replace(each, which="all").signature for name, each in metrics.items()},
        resampling,
    )


def _check_resampling(resampling: Resampling) -> None:
    check_interval("percentile", resampling.confidence)
    for what, count in (("resamples", resampling.resamples), ("trials", resampling.trials)):
        if type(count) is not int or count < 1:
            raise InputError(f"{what} must be a whole number, at least 1, got {count!r}")


def _document_sets(
    data: DocumentSource | Sequence[DocumentSource], predictions: Sequence[str], strict: bool
) -> Iterator[DocumentSet]:
    several = [data] if isinstance(data, (str, Path, DocumentSet)) else data
    for each in several:
        if isinstance(each, DocumentSet):
            yield each
        else:
            yield from read_documents(each, predictions=predictions, strict=strict)


def _resample(
    judged: KeyphraseCounts, metrics: Mapping[str, KeyphraseMetric], r: Resampling
) -> ScoresByKey:
    scores = {key: metrics[key[0]].score_totals for key in judged.counts}
    trials = r.trials if len(judged.systems) > 1 else 0
    return resample_scores(judged.counts, scores, resamples=r.resamples, trials=trials, seed=r.seed)


def _rows(
    judged: KeyphraseCounts,
    scored: ScoresByKey,
    metrics: Mapping[str, Any],
    r: Resampling,
    mean_seeds: bool,
) -> Iterator[KeyphraseRow]:
    groups: dict[str, tuple[str, ...]] = {system: (system,) for system in judged.systems}
    if mean_seeds:
        groups |= _group_seeds(judged.systems)
    for name, members in groups.items():
        for metric in metrics:
            cells = {}
            for column in COLUMNS:
                value, draws = mean_of_seeds([scored[metric, column, s] for s in members])
                cells[column] = KeyphraseCell(value, *percentile_bounds(draws, r.confidence))
            yield KeyphraseRow(judged.data, name, metric, cells, judged.documents)


def _group_seeds(systems: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Systems that differ in their seed only, under one name.

    >>> _group_seeds(["a-seed1", "a-seed2", "b"])
    {'a (mean of 2 seeds)': ('a-seed1', 'a-seed2')}
    """
    found: dict[str, list[str]] = {}
    for system in systems:
        if match := _SEED_NAME.fullmatch(system):
            found.setdefault(match[1], []).append(system)
    return {
        f"{name} (mean of {len(own)} seeds)": tuple(own)
        for name, own in found.items()
        if len(own) > 1
    }


def _gaps(
    judged: KeyphraseCounts, scored: ScoresByKey, metrics: Mapping[str, Any], r: Resampling
) -> Iterator[KeyphraseGap]:
    pairs = list(combinations(judged.systems, 2))
    for metric in metrics if pairs else ():
        for column in COLUMNS:
            own = {system: scored[metric, column, system] for system in judged.systems}
            tests = [
                (bootstrap_p_value(own[b], own[a]), randomisation_p_value(own[b], own[a]))
                for a, b in pairs
            ]
            # The family is one metric's on one column: what others say must not change it.
            adjusted = zip(*(holm(p) for p in zip(*tests, strict=True)), strict=True)
            for (a, b), p, holms in zip(pairs, tests, adjusted, strict=True):
                bounds = percentile_bounds(own[b].resamples - own[a].resamples, r.confidence)
                value = own[b].value - own[a].value
                yield KeyphraseGap(
                    judged.data, metric, column, a, b, value, *bounds, *p, *map(float, holms)
                )


@dataclass(frozen=True, slots=True, eq=False)
class KeyphraseCounts:
    """One set of documents judged: counts by metric, column and system, a row per document."""

    data: str
    systems: tuple[str, ...]
    documents: int
    counts: Mapping[tuple[str, Column, str], Array]
    flagged: Mapping[str, Mapping[str, int]]  # by system and flag
    errors: tuple[str, ...]


def build_keyphrase_metrics(given: Sequence[str | Metric]) -> dict[str, KeyphraseMetric]:
    """The metrics by the name each was given, all of them metrics of keyphrases."""
    found = {}
    for each in given:
        metric = as_metric(each)
        if not isinstance(metric, KeyphraseMetric):
            raise InputError(
                f"{metric_name(each)} is no metric of keyphrases; those are fg, fb, f1_at_5, f1_at_m, "
                "keyphrase_f1 and what is made of keyphrases(...)"
            )
        found[metric_name(each)] = metric
    if not found:
        raise InputError("the list of metrics is empty; name at least one")
    return found


def score_document_set(
    documents: DocumentSet, metrics: Mapping[str, KeyphraseMetric], run: Run
) -> KeyphraseCounts:
    """Each metric on the present, the absent and all phrases of each system."""
    systems = documents.predictions
    if not systems:
        raise InputError(
            f"{documents.name} holds no predictions; put them under pred.NAME, "
            "or name their field with --pred"
        )
    # Document by document, so that a document's words are made once for all systems.
    pairs = [each.to_pair(system) for each in documents.documents for system in systems]
    asked = [(name, column) for name in metrics for column in COLUMNS]
    ready = [dataclasses.replace(metrics[name], which=column) for name, column in asked]
    judged = score_with_counts(ready, pairs, run)
    counts = {
        (name, column, system): table[index :: len(systems)]
        for (name, column), (_, table) in zip(asked, judged, strict=True)
        for index, system in enumerate(systems)
        if table is not None  # metrics of keyphrases all count
    }
    whole = judged[asked.index((asked[0][0], "all"))][0].segments
    flagged = {
        system: _count_flags(documents, [score.flags for score in whole[index :: len(systems)]])
        for index, system in enumerate(systems)
    }
    return KeyphraseCounts(
        documents.name, systems, len(documents.documents), counts, flagged, documents.errors
    )


def _count_flags(documents: DocumentSet, flags: Sequence[frozenset[str]]) -> dict[str, int]:
    """How many documents carry each flag; what scores merely nothing is no oddity."""
    found: Counter[str] = Counter()
    for document, own in zip(documents.documents, flags, strict=True):
        found.update((own | document.flags) - {"no_match"})
    return dict(sorted(found.items()))
