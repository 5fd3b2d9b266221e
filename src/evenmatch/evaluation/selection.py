"""Metrics that select outputs: as a filter of good ones, and as a re-ranker of a segment's outputs.

A filter keeps the outputs that a metric scores above a threshold, and a re-ranker the best one of
each segment. Both are judged by precision, recall and F1 against the human ratings (Perrella et al.
2024). All counts are sums over segments, so that a resample of segments is a weighted sum.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.evaluation.agreement import agreement_panel
from evenmatch.evaluation.agreement_result import Agreement, SelectionEntry, SelectionTask
from evenmatch.evaluation.layer_selection import assign_folds
from evenmatch.evaluation.rated_scores import ScoredSet
from evenmatch.scoring.reducers import ratio
from evenmatch.stats.bootstrap import bootstrap_interval
from evenmatch.stats.panel import Flags, Floats, mask_unpaired

_FOLDS = 5


def measure_selection(agreement: Agreement, *, good: float = 0.25) -> list[SelectionEntry]:
    """Judge each metric of an agreement as a filter and as a re-ranker.

    As a filter, a metric should keep the share `good` of outputs with the highest ratings (more if
    ratings are tied). Its threshold is the one with the highest F1 on other segments, in five
    folds. As a re-ranker it chooses the output of each segment with its highest score; right are
    those with the highest rating. Segments with fewer than two rated outputs, or with only equal
    ratings, are left out of re-ranking. Intervals resample segments.
    """
    if not 0 < good < 1:
        raise InputError(f"the share of good outputs must be between 0 and 1, got {good}")
    found = []
    for scored in agreement.scored:
        panel = agreement_panel(scored, "segment")
        for metric, scores in zip(scored.scores, panel.metrics, strict=True):
            x, y = mask_unpaired(scores, panel.human)
            if np.isnan(x).all():
                continue
            counts = {
                "filter": _filter_counts(x, y, good, agreement.testing.seed),
                "rerank": rerank_counts(x, y),
            }
            found += [
                _entry(agreement, scored, metric, task, *counts[task])
                for task in ("filter", "rerank")
                if len(counts[task][0]) > 1
            ]
    return found


def filter_counts(kept: Flags, good: Flags, known: Flags) -> Floats:
    """Count, for each segment, kept outputs that are good, kept outputs, and good outputs.

    Arguments are (systems, segments), the result is (segments, 3).
    """
    kept, good = kept & known, good & known
    return np.stack([(kept & good).sum(0), kept.sum(0), good.sum(0)], axis=-1).astype(np.float64)


def rerank_counts(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Count right choices, choices and best outputs of each segment, by score and at random.

    `x` are scores and `y` ratings (systems, segments), with NaN at the same places. Outputs with
    equal highest scores are all chosen.
    """
    known = ~np.isnan(y)
    highest = np.where(known, y, -np.inf).max(0, initial=-np.inf)
    usable = (known.sum(0) > 1) & (highest > np.where(known, y, np.inf).min(0, initial=np.inf))
    x, y, known, highest = x[:, usable], y[:, usable], known[:, usable], highest[usable]
    chosen = known & (x == np.where(known, x, -np.inf).max(0, initial=-np.inf))
    best = known & (y == highest)
    counts = filter_counts(chosen, best, known)
    of_best = best.sum(0).astype(np.float64)
    random = np.stack([of_best / known.sum(0), np.ones_like(of_best), of_best], axis=-1)
    return counts, random


def best_threshold(scores: Floats, good: Flags) -> float:
    """Return the threshold with the highest F1: outputs with at least this score are kept.

    >>> best_threshold(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, True, False, True]))
    0.4
    """
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], np.cumsum(good[order])
    f1 = 2 * right / (np.arange(1, len(right) + 1) + max(int(good.sum()), 1))
    last = np.append(ranked[1:] != ranked[:-1], True)  # equal scores are kept together
    return float(ranked[np.argmax(np.where(last, f1, -1.0))])


def f1_of_counts(counts: Floats) -> Floats:
    """F1 of (…, 3) counts of right, selected and wanted outputs: 2 right / (selected + wanted)."""
    f1: Floats = ratio(2 * counts[..., 0], counts[..., 1] + counts[..., 2])
    return f1


def _filter_counts(x: Floats, y: Floats, share: float, seed: int) -> tuple[Floats, Floats]:
    known = ~np.isnan(y)
    lowest_good = np.quantile(y[known], 1 - share, method="higher")
    good = known & (np.where(known, y, -np.inf) >= lowest_good)
    segments = np.flatnonzero(known.any(0))
    if len(segments) < _FOLDS:
        return np.zeros((0, 3)), np.zeros((0, 3))
    (fold,) = assign_folds([[str(i) for i in segments]], _FOLDS, seed)
    kept = np.zeros_like(known)
    for number in range(_FOLDS):
        own, others = segments[fold == number], segments[fold != number]
        seen = known[:, others]
        threshold = best_threshold(x[:, others][seen], good[:, others][seen])
        kept[:, own] = np.where(known[:, own], x[:, own], -np.inf) >= threshold
    counts = filter_counts(kept, good, known)[segments]
    return counts, filter_counts(known, good, known)[segments]


def _entry(
    agreement: Agreement,
    scored: ScoredSet,
    metric: str,
    task: SelectionTask,
    counts: Floats,
    chance: Floats,
) -> SelectionEntry:
    testing: dict[str, Any] = asdict(agreement.testing)
    found = bootstrap_interval(
        lambda weights: f1_of_counts(weights @ counts), len(counts), **testing
    )
    right, selected, wanted = counts.sum(0)
    return SelectionEntry(
        scored.rated.name,
        scored.rated.subset,
        metric,
        task,
        float(ratio(right, selected)),
        float(ratio(right, wanted)),
        found.value,
        found.low,
        found.high,
        float(f1_of_counts(chance.sum(0))),
        len(counts),
    )
