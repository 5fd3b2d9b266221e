"""Scores of rated outputs by several metrics, with each text encoded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from evenmatch.data.ratings.rated_set import RatedSet, mean_known
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import offset_progress, warn_of_misreadings
from evenmatch.scoring.metric import score_metrics
from evenmatch.stats.panel import Flags, Floats, Indexes
from evenmatch.types import Array, Pair, Run


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
    groups = [list(group) for _, group in groupby(chosen, key=lambda each: _texts(each[0]))]
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


def _texts(rated: RatedSet) -> tuple[Any, ...]:
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
    warn_of_misreadings(list(metrics.values()), pairs)
    scored = score_metrics(list(metrics.values()), pairs, run)
    found = {}
    for (name, metric), scores in zip(metrics.items(), scored, strict=True):
        segments = rated.to_matrix([score.value for score in scores.segments], cells)
        by_corpus = corpus and (scores.counts is not None or scores.corpus is not None)
        systems = mean_known(segments, 1)
        if by_corpus:
            systems = _corpus_scores(metric, scores.counts, rated, cells[0], pairs)
        found[name] = RatedSetScores(
            segments, systems, by_corpus, metric.higher_is_better, scores.signature
        )
    return found


def _corpus_scores(
    metric: Any, counts: Array | None, rated: RatedSet, owners: Indexes, pairs: Sequence[Pair]
) -> Floats:
    """Compute each system's corpus score, from the counts of its pairs where there are any.

    `owners` is the system of each pair.
    """
    scores = np.full(len(rated.systems), np.nan)
    if counts is not None:
        totals = np.zeros((len(scores), np.shape(counts)[1]))
        np.add.at(totals, owners, counts)
        known = np.bincount(owners, minlength=len(scores)) > 0
        scores[known] = metric.score_totals(totals[known])
        return scores
    for system in np.unique(owners):
        # the corpus score of the joint call mixes all systems, so score each system separately
        score = metric([p for p, row in zip(pairs, owners, strict=True) if row == system]).corpus
        scores[system] = np.nan if score is None else score
    return scores
