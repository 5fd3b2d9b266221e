"""Scores of keyphrase systems over data sets and metrics, with intervals and tests.

`score_keyphrases` counts matches in each document set (`score_document_set`), resamples documents,
and returns a `KeyphraseTable`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.api import metric_name
from evenmatch.data.documents import DocumentSet, read_documents
from evenmatch.errors import InputError
from evenmatch.evaluation.keyphrase_table import (
    COLUMNS,
    Column,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
)
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.paired import (
    ResampledScore,
    Resampling,
    compare_pairs,
    mean_of_seeds,
    percentile_bounds,
    randomisation_p_value,
    resample_scores,
)
from evenmatch.types import Array, Run
from evenmatch.units.keyphrases import PHRASE_SEPARATOR

DocumentSource: TypeAlias = str | Path | DocumentSet
ScoresByKey: TypeAlias = Mapping[Any, ResampledScore]
DEFAULT_KEYPHRASE_METRICS = ("fg", "f1_at_5", "f1_at_m")
_SEED_NAME = re.compile(r"(.+?)[-_. ]?seed[-_ ]?\d+")


@check_arguments
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
    """Score the keyphrases of every system with every metric: present, absent and all phrases.

    `data` is a path or name, or the result of `read_documents`, or a list of these; `predictions`
    and `strict` are settings of `read_documents`. With `mean_seeds`, systems whose names differ
    only in the number after 'seed' also get a row with their mean. `resamples` is the number of
    bootstrap resamples of documents, for intervals and paired tests; `trials` is the number of
    random swaps. `run` takes the run settings of `score`.
    """
    resampling = Resampling(confidence, resamples, trials, seed)
    metrics = build_keyphrase_metrics(metric if isinstance(metric, (list, tuple)) else [metric])  # type: ignore[list-item]  # one metric
    how = make_run(**run)
    counted = [
        score_document_set(each, metrics, how) for each in _document_sets(data, predictions, strict)
    ]
    rows: list[KeyphraseRow] = []
    gaps: list[KeyphraseGap] = []
    for each in counted:
        scored = resample_scores(
            each.counts,
            {key: metrics[key[0]].score_totals for key in each.counts},
            resamples=resamples,
            trials=trials if len(each.systems) > 1 else 0,
            seed=seed,
        )
        rows += _rows(each, scored, metrics, resampling, mean_seeds)
        gaps += _gaps(each, scored, metrics, resampling)
    return KeyphraseTable(
        tuple(rows),
        tuple(gaps),
        {each.data: each.flagged for each in counted},
        tuple(line for each in counted for line in each.errors),
        {name: replace(each, which="all").signature for name, each in metrics.items()},
        resampling,
    )


def build_keyphrase_metrics(given: Sequence[str | Metric]) -> dict[str, KeyphraseMetric]:
    """Build the metrics, by name; raise `InputError` if one is not a keyphrase metric."""
    found = {}
    for each in given:
        metric = as_metric(each)
        if not isinstance(metric, KeyphraseMetric):
            raise InputError(
                f"{metric_name(each)} is not a keyphrase metric; use fg, fb, f1_at_5, f1_at_m, "
                "keyphrase_f1 or a spec with keyphrases(...)"
            )
        if metric.units.separator != PHRASE_SEPARATOR:
            raise InputError(
                f"{metric_name(each)} splits phrases at {metric.units.separator!r}, but those of "
                f"documents are joined by {PHRASE_SEPARATOR!r}; leave out the separator"
            )
        found[metric_name(each)] = metric
    if not found:
        raise InputError("the list of metrics is empty; give at least one")
    return found


def score_document_set(
    documents: DocumentSet, metrics: Mapping[str, KeyphraseMetric], run: Run
) -> KeyphraseCounts:
    """Count matches for each metric and system, over present, absent and all phrases."""
    systems = documents.predictions
    if not systems:
        raise InputError(
            f"{documents.name} has no predictions; put them in a field pred.NAME, "
            "or name their field with --pred"
        )
    # Document by document, so that each document is tokenized once for all systems.
    pairs = [each.to_pair(system) for each in documents.documents for system in systems]
    keys = [(name, column) for name in metrics for column in COLUMNS]
    ready = [replace(metrics[name], which=column) for name, column in keys]
    results = score_metrics(ready, pairs, run)
    counts = {
        (name, column, system): np.asarray(scores.counts)[index :: len(systems)]
        for (name, column), scores in zip(keys, results, strict=True)
        for index, system in enumerate(systems)
    }
    all_phrases = results[keys.index((keys[0][0], "all"))].segments
    flagged = {
        system: _count_flags(documents, [s.flags for s in all_phrases[index :: len(systems)]])
        for index, system in enumerate(systems)
    }
    return KeyphraseCounts(
        documents.name, systems, len(documents.documents), counts, flagged, documents.errors
    )


@dataclass(frozen=True, slots=True, eq=False)
class KeyphraseCounts:
    """Counts on one document set by metric, column and system, with a row for each document."""

    data: str
    systems: tuple[str, ...]
    documents: int
    counts: Mapping[tuple[str, Column, str], Array]
    flagged: Mapping[str, Mapping[str, int]]  # by system and flag
    errors: tuple[str, ...]


def _document_sets(
    data: DocumentSource | Sequence[DocumentSource], predictions: Sequence[str], strict: bool
) -> Iterator[DocumentSet]:
    several = [data] if isinstance(data, (str, Path, DocumentSet)) else data
    for each in several:
        if isinstance(each, DocumentSet):
            yield each
        else:
            yield from read_documents(each, predictions=predictions, strict=strict)


def _rows(
    counted: KeyphraseCounts,
    scored: ScoresByKey,
    metrics: Mapping[str, Any],
    r: Resampling,
    mean_seeds: bool,
) -> Iterator[KeyphraseRow]:
    groups: dict[str, tuple[str, ...]] = {system: (system,) for system in counted.systems}
    if mean_seeds:
        groups |= _group_seeds(counted.systems)
    for name, members in groups.items():
        for metric in metrics:
            cells = {}
            for column in COLUMNS:
                value, draws = mean_of_seeds([scored[metric, column, s] for s in members])
                cells[column] = Interval(value, *percentile_bounds(draws, r.confidence))
            yield KeyphraseRow(counted.data, name, metric, cells, counted.documents)


def _group_seeds(systems: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Group systems whose names differ only in the seed.

    >>> _group_seeds(["a-seed1", "a-seed2", "b"])
    {'a (mean of 2 seeds)': ('a-seed1', 'a-seed2')}
    """
    found: dict[str, list[str]] = {}
    for system in systems:
        if match := _SEED_NAME.fullmatch(system):
            found.setdefault(match[1], []).append(system)
    return {
        f"{name} (mean of {len(members)} seeds)": tuple(members)
        for name, members in found.items()
        if len(members) > 1
    }


def _gaps(
    counted: KeyphraseCounts, scored: ScoresByKey, metrics: Mapping[str, Any], r: Resampling
) -> Iterator[KeyphraseGap]:
    """Test every pair of systems by each metric and column, with p-values adjusted within them."""
    for metric in metrics:
        for column in COLUMNS:
            scores = {system: scored[metric, column, system] for system in counted.systems}
            swap_p = [randomisation_p_value(b, a) for a, b in combinations(scores.values(), 2)]
            for pair in compare_pairs(scores, swap_p, r.confidence):
                yield KeyphraseGap(counted.data, metric, column, *pair)


def _count_flags(documents: DocumentSet, flags: Sequence[frozenset[str]]) -> dict[str, int]:
    """Count the documents with each flag; `no_match` is a normal result and not counted."""
    found: Counter[str] = Counter()
    for document, score_flags in zip(documents.documents, flags, strict=True):
        found.update((score_flags | document.flags) - {"no_match"})
    return dict(sorted(found.items()))
