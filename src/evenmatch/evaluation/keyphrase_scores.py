"""Scores of keyphrase systems over data sets and metrics, with intervals and tests.

`score_keyphrases` counts matches in each document set (`score_document_set`), resamples documents,
and returns a `KeyphraseTable`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from evenmatch.metrics.keyphrases.phrase_lists import select_phrases, split_pair
from evenmatch.metrics.keyphrases.phrase_similarity import Semantic
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.similarity.strings import unit_phrases
from evenmatch.stats.bootstrap import Interval, percentile_bounds
from evenmatch.stats.paired import (
    ResampledScore,
    Resampling,
    compare_pairs,
    mean_of_seeds,
    mean_score,
    randomisation_p_value,
    resample_scores,
)
from evenmatch.types import Array, Pair, Run
from evenmatch.units.keyphrases import PHRASE_SEPARATOR, variant_groups
from evenmatch.vectors.hashed import Bare

DocumentSource: TypeAlias = str | Path | DocumentSet
ScoresByKey: TypeAlias = Mapping[Any, ResampledScore]
DEFAULT_KEYPHRASE_METRICS = ("fg", "f1_at_5", "f1_at_m")
ALL_KEYPHRASE_METRICS = (
    *DEFAULT_KEYPHRASE_METRICS,
    "f1_at_10",
    "f1_at_o",
    "recall_at_10",
    "recall_at_50",
    "keyphrase_map",
    "keyphrase_ndcg",
    "keyphrase_ndcg(ideal='predictions')",
    "keyphrase_alpha_ndcg",
    "sem_f1",
)
# Means over documents that describe the lists of phrases; see `_describe_lists`.
LIST_STATISTICS = (
    "predicted_phrases",
    "gold_phrases",
    "count_error",
    "duplicate_phrases",
    "duplicate_words",
    "self_similarity",
)
_DOCUMENTS_AT_ONCE = 500  # whose phrases are embedded together
_SEED_NAME = re.compile(r"(.+?)[-_. ]?seed[-_ ]?\d+")


@check_arguments
def score_keyphrases(
    data: DocumentSource | Sequence[DocumentSource],
    metric: str | Metric | Sequence[str | Metric] | None = None,
    *,
    full: bool = False,
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
    and `strict` are settings of `read_documents`. The metrics are `fg`, `f1_at_5` and `f1_at_m`
    unless others are given. With `full` they are all that are common in the field; the table then
    also has rows about the lists (numbers of phrases, duplicates, self-similarity), and shows
    precision and recall. With `mean_seeds`, systems whose names differ
    only in the number after 'seed' also get a row with their mean. `resamples` is the number of
    bootstrap resamples of documents, for intervals and paired tests; `trials` is the number of
    random swaps. `run` takes the run settings of `score`.
    """
    resampling = Resampling(confidence, resamples, trials, seed)
    if metric is None:
        metric = ALL_KEYPHRASE_METRICS if full else DEFAULT_KEYPHRASE_METRICS
    metrics = build_keyphrase_metrics(metric if isinstance(metric, (list, tuple)) else [metric])  # type: ignore[list-item]  # one metric
    how = make_run(**run)
    counted = [
        score_document_set(each, metrics, how, full)
        for each in _document_sets(data, predictions, strict)
    ]
    scores = {name: each.score_totals for name, each in metrics.items()}
    scores |= dict.fromkeys(LIST_STATISTICS if full else (), mean_score)
    rows: list[KeyphraseRow] = []
    gaps: list[KeyphraseGap] = []
    for each in counted:
        scored = resample_scores(
            each.counts,
            {key: scores[key[0]] for key in each.counts},
            resamples=resamples,
            trials=trials if len(each.systems) > 1 else 0,
            seed=seed,
        )
        rows += _rows(each, scored, scores, metrics, resampling, mean_seeds)
        gaps += _gaps(each, scored, scores, resampling)
    return KeyphraseTable(
        tuple(rows),
        tuple(gaps),
        {each.data: each.flagged for each in counted},
        tuple(line for each in counted for line in each.errors),
        {name: replace(each, which="all").signature for name, each in metrics.items()},
        resampling,
        full,
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
    documents: DocumentSet, metrics: Mapping[str, KeyphraseMetric], run: Run, full: bool = False
) -> KeyphraseCounts:
    """Count matches for each metric and system, over present, absent and all phrases.

    With `full`, the counts include those of `LIST_STATISTICS`.
    """
    systems = documents.predictions
    if not systems:
        found = f" (found: {', '.join(documents.fields)})" if documents.fields else ""
        raise InputError(
            f"{documents.name} has no predictions; put them in a field pred.NAME, "
            f"or name their field with --pred{found}"
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
    if full:
        counts |= _describe_lists(documents, pairs)
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


def _describe_lists(
    documents: DocumentSet, pairs: Sequence[Pair]
) -> dict[tuple[str, Column, str], Array]:
    """Counts (sum, number) of `LIST_STATISTICS`, with a row for each document.

    Numbers of phrases are those after cleaning, without duplicates, and `count_error` is their
    absolute difference. Duplicates are shares of all phrases that a system predicted, and of all
    their words. `self_similarity` is the mean semantic similarity of every two of them. A document
    with too few phrases for a share or a mean is left out of it.
    """
    systems, usual = documents.predictions, KeyphraseMetric()
    found = {
        (name, column, system): np.zeros((len(documents.documents), 2))
        for name in LIST_STATISTICS
        for column in COLUMNS
        for system in systems
    }
    step = _DOCUMENTS_AT_ONCE * len(systems)
    for start in range(0, len(pairs), step):
        split = [split_pair(pair, usual.units, usual.most) for pair in pairs[start : start + step]]
        embedded = Bare()([each.candidate for each in split])
        similarity = Semantic().prepare([(x, x) for x in embedded])
        for number, lists in enumerate(split, start):
            row, system = divmod(number, len(systems))
            for column in COLUMNS:
                cleaned = select_phrases(lists, row, column, "drop", "drop", "drop")
                everything = select_phrases(lists, row, column, "keep", "keep", "keep").candidate
                predicted = len(cleaned.candidate.groups)
                gold = len(variant_groups(cleaned.references[0]))
                phrases = unit_phrases(everything)
                words = [word for phrase in phrases for word in phrase]
                (x,) = Bare()([everything])
                upper = np.triu_indices(len(phrases), 1)
                values = {
                    "predicted_phrases": [predicted],
                    "gold_phrases": [gold],
                    "count_error": [abs(predicted - gold)],
                    "duplicate_phrases": _duplicate_share(phrases),
                    "duplicate_words": _duplicate_share(words),
                    "self_similarity": similarity(x, x)[upper] if len(phrases) > 1 else [],
                }
                for name, value in values.items():
                    if len(value):
                        found[name, column, systems[system]][row] = float(np.mean(value)), 1.0
    return found


def _duplicate_share(items: Sequence[Any]) -> list[float]:
    """The share of items that equal an earlier one, as a list; empty without items."""
    return [1 - len(set(items)) / len(items)] if items else []


def _rows(
    counted: KeyphraseCounts,
    scored: ScoresByKey,
    names: Iterable[str],
    metrics: Mapping[str, KeyphraseMetric],
    r: Resampling,
    mean_seeds: bool,
) -> Iterator[KeyphraseRow]:
    groups: dict[str, tuple[str, ...]] = {system: (system,) for system in counted.systems}
    if mean_seeds:
        groups |= _group_seeds(counted.systems)
    for name, members in groups.items():
        for metric in names:
            cells, parts = {}, {}
            for column in COLUMNS:
                found = [scored[metric, column, s] for s in members]
                value, draws = mean_of_seeds(found)
                cells[column] = Interval(value, *percentile_bounds(draws, r.confidence))
                if metric in metrics:
                    pairs = [metrics[metric].precision_recall(each.total) for each in found]
                    known = [pair for pair in pairs if pair is not None]
                    if known:
                        parts[column] = tuple(map(float, np.mean(known, axis=0)))
            yield KeyphraseRow(
                counted.data,
                name,
                metric,
                cells,
                counted.documents,
                {column: precision for column, (precision, _) in parts.items()},
                {column: recall for column, (_, recall) in parts.items()},
            )


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
    counted: KeyphraseCounts, scored: ScoresByKey, names: Iterable[str], r: Resampling
) -> Iterator[KeyphraseGap]:
    """Test every pair of systems by each metric and column, with p-values adjusted within them."""
    for metric in names:
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
