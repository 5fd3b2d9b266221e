"""Scores of rated outputs by several metrics, with each text encoded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import offset_progress, warn_of_other_languages
from evenmatch.scoring.metric import score_metrics
from evenmatch.stats.panel import Flags, Floats, Indexes
from evenmatch.types import Array, Pair, Run, Scores


@dataclass(frozen=True, slots=True, eq=False)
class RatedSetScores:
    """Scores of one metric on one set, for outputs and for systems; NaN where there is none."""

    segments: Floats  # (systems, segments)
    systems: Floats  # (systems,)
    by_corpus: bool  # whether a system's score is not the mean over its outputs
    higher_is_better: bool
    signature: str


@dataclass(frozen=True, slots=True, eq=False)
class ScoredSet:
    """A rated set, the mask of its included systems, and the scores of each metric."""

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
    """Score each set; consecutive sets with the same texts, such as criteria, are scored once.

    With `rated_only` only outputs with a rating are scored. With `corpus` a system's score is the
    metric's corpus score where it has one.
    """
    groups = _group_by_texts(chosen)
    no_cells = (np.array([], dtype=np.intp),) * 2
    cells = [_cells_to_score(group, rated_only) if metrics else no_cells for group in groups]
    total, done = sum(len(system) for system, _ in cells), 0
    found = []
    for number, (group, to_score) in enumerate(zip(groups, cells, strict=True)):
        scores = {}
        if len(to_score[0]):
            scores = _score_group(
                metrics, group[0][0], to_score, offset_progress(run, done, total), corpus
            )
        found += [ScoredSet(rated, included, scores, number) for rated, included in group]
        done += len(to_score[0])
        if run.progress and len(to_score[0]):
            run.progress(done, total)
    return found


def _group_by_texts(
    chosen: Sequence[tuple[RatedSet, Flags]],
) -> list[list[tuple[RatedSet, Flags]]]:
    groups: list[list[tuple[RatedSet, Flags]]] = []
    for rated, included in chosen:
        if groups and _text_key(groups[-1][0][0]) == _text_key(rated):
            groups[-1].append((rated, included))
        else:
            groups.append([(rated, included)])
    return groups


def _text_key(rated: RatedSet) -> tuple[Any, ...]:
    return rated.systems, rated.segments, rated.references, rated.sources, rated.candidates


def _cells_to_score(
    group: Sequence[tuple[RatedSet, Flags]], rated_only: bool
) -> tuple[Indexes, Indexes]:
    """Indexes (system, segment) of the outputs that any set of the group needs a score for."""
    rated = group[0][0]
    needed = np.zeros((len(rated.systems), len(rated.segments)), dtype=bool)
    for each, included in group:
        of_set = np.zeros_like(needed)
        of_set[each.cells(rated=rated_only)] = True
        needed |= of_set & included[:, None]
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
    scored = score_metrics(list(metrics.values()), pairs, run)
    found = {}
    for (name, metric), scores in zip(metrics.items(), scored, strict=True):
        if corpus and scores.counts is not None:
            found[name] = _scores_from_totals(metric, scores, scores.counts, rated, cells)
        else:
            found[name] = _scores_from_means(metric, scores, rated, cells, pairs, corpus)
    return found


def _scores_from_totals(
    metric: Any, scores: Scores, counts: Array, rated: RatedSet, cells: tuple[Indexes, Indexes]
) -> RatedSetScores:
    """Compute the corpus scores of all systems from the counts of their pairs."""
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
        # the corpus score of the joint call mixes all systems, so score each system separately
        of_system = [p for p, row in zip(pairs, cells[0], strict=True) if row == system]
        score = metric(of_system).corpus
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
    by_system = system_means(segments) if systems is None else systems
    return RatedSetScores(
        segments, by_system, systems is not None, metric.higher_is_better, scores.signature
    )


def system_means(segments: Floats) -> Floats:
    """Mean of each system over its known outputs; NaN without any."""
    known = ~np.isnan(segments)
    count = known.sum(1)
    total = np.where(known, segments, 0.0).sum(1)
    means: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means
