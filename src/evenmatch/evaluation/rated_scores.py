"""Metrics' scores of rated outputs: every text goes through a model once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.api import score_with_counts
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import offset_progress
from evenmatch.scoring.languages import warn_of_other_languages
from evenmatch.stats.panel import Flags, Floats, Indexes
from evenmatch.types import Array, Pair, Run, Scores


@dataclass(frozen=True, slots=True, eq=False)
class RatedSetScores:
    """One metric on one set: its scores of outputs and of systems, NaN where it has none."""

    segments: Floats  # (systems, segments)
    systems: Floats  # (systems,)
    by_corpus: bool  # whether a system's score is something else than the mean of its outputs'
    higher_is_better: bool
    signature: str


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSet:
    """A rated set, the systems of it that count, and what each metric says of them."""

    rated: RatedSet
    included: Flags
    scores: Mapping[str, RatedSetScores]
    group: int  # sets with the same texts have the same number


def score_rated_sets(
    metrics: Mapping[str, Metric],
    chosen: Sequence[tuple[RatedSet, Flags]],
    run: Run,
    *,
    rated_only: bool,
    corpus: bool,
) -> list[ScoredSet]:
    """Each set scored; neighbours with the same texts, such as criteria, are scored together."""
    groups = _group_by_texts(chosen)
    nothing = (np.array([], dtype=np.intp),) * 2
    cells = [_cells_to_score(group, rated_only) if metrics else nothing for group in groups]
    total, done = sum(len(system) for system, _ in cells), 0
    found = []
    for number, (group, some) in enumerate(zip(groups, cells, strict=True)):
        marks = {}
        if len(some[0]):
            marks = _score_group(
                metrics, group[0][0], some, offset_progress(run, done, total), corpus
            )
        found += [ScoredSet(rated, kept, marks, number) for rated, kept in group]
        done += len(some[0])
        if run.progress and len(some[0]):
            run.progress(done, total)
    return found


def _group_by_texts(
    chosen: Sequence[tuple[RatedSet, Flags]],
) -> list[list[tuple[RatedSet, Flags]]]:
    groups: list[list[tuple[RatedSet, Flags]]] = []
    for rated, kept in chosen:
        if groups and _text_key(groups[-1][0][0]) == _text_key(rated):
            groups[-1].append((rated, kept))
        else:
            groups.append([(rated, kept)])
    return groups


def _text_key(rated: RatedSet) -> tuple[Any, ...]:
    return rated.systems, rated.segments, rated.references, rated.sources, rated.candidates


def _cells_to_score(
    group: Sequence[tuple[RatedSet, Flags]], rated_only: bool
) -> tuple[Indexes, Indexes]:
    """The outputs that some set of the group needs a score for."""
    rated = group[0][0]
    needed = np.zeros((len(rated.systems), len(rated.segments)), dtype=bool)
    for each, kept in group:
        own = np.zeros_like(needed)
        own[each.cells(rated=rated_only)] = True
        needed |= own & kept[:, None]
    system, segment = np.nonzero(needed)
    return system, segment


def _score_group(
    metrics: Mapping[str, Metric],
    rated: RatedSet,
    cells: tuple[Indexes, Indexes],
    run: Run,
    corpus: bool,
) -> dict[str, RatedSetScores]:
    pairs = rated.pairs(cells)
    warn_of_other_languages(list(metrics.values()), pairs)
    scored = score_with_counts(list(metrics.values()), pairs, run)
    found = {}
    for (name, metric), (scores, counts) in zip(metrics.items(), scored, strict=True):
        if corpus and counts is not None:
            found[name] = _scores_from_totals(metric, scores, counts, rated, cells)
        else:
            found[name] = _scores_from_means(metric, scores, rated, cells, pairs, corpus)
    return found


def _scores_from_totals(
    metric: Any, scores: Scores, counts: Array, rated: RatedSet, cells: tuple[Indexes, Indexes]
) -> RatedSetScores:
    """Corpus scores of all systems from one count of the pairs."""
    totals = np.zeros((len(rated.systems), np.shape(counts)[1]))
    np.add.at(totals, cells[0], counts)
    known = np.bincount(cells[0], minlength=len(rated.systems)) > 0
    systems = np.full(len(rated.systems), np.nan)
    systems[known] = metric.score_totals(totals[known])
    return _build_scores(metric, scores, rated, cells, systems)


def _scores_from_means(
    metric: Metric,
    scores: Scores,
    rated: RatedSet,
    cells: tuple[Indexes, Indexes],
    pairs: Sequence[Pair],
    corpus: bool,
) -> RatedSetScores:
    if not corpus or scores.corpus is None:
        return _build_scores(metric, scores, rated, cells, None)
    systems = np.full(len(rated.systems), np.nan)
    for system in np.unique(cells[0]):
        # the corpus score of all systems together is nobody's
        own = [p for p, row in zip(pairs, cells[0], strict=True) if row == system]
        score = metric(own).corpus
        systems[system] = np.nan if score is None else score
    return _build_scores(metric, scores, rated, cells, systems)


def _build_scores(
    metric: Metric,
    scores: Scores,
    rated: RatedSet,
    cells: tuple[Indexes, Indexes],
    systems: Floats | None,
) -> RatedSetScores:
    segments = rated.to_matrix([score.value for score in scores.segments], cells)
    own = system_means(segments) if systems is None else systems
    return RatedSetScores(
        segments, own, systems is not None, metric.higher_is_better, scores.signature
    )


def system_means(segments: Floats) -> Floats:
    """Each system's mean over the outputs that are known, NaN without any."""
    known = ~np.isnan(segments)
    count = known.sum(1)
    total = np.where(known, segments, 0.0).sum(1)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means
