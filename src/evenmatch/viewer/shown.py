"""One alignment as the viewer takes it: plain lists of texts and numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.alignment.assign import Greedy, Lsa
from evenmatch.alignment.transport import Emd
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Array, Metric, Score
from evenmatch.viewer.tree_layout import TreePair, has_trees, tree_pair
from evenmatch.viewer.tree_picture import tree_part

_DIGITS = 5  # a page shows three


@dataclass(frozen=True)
class Shown:
    """An alignment to look at; `gained` and `covered` are the credit of each unit."""

    name: str
    candidate: str
    reference: str
    candidate_units: list[str]
    reference_units: list[str]
    similarity: list[list[float]]
    pairs: list[tuple[int, int, float]]
    gained: list[float]
    covered: list[float]
    candidate_weights: list[float]
    reference_weights: list[float]
    score: Score
    signature: str
    trees: str = ""


def shown(aligned: Aligned, metric: Metric, candidate: str, reference: str, *, name: str) -> Shown:
    """An alignment by a metric, with its trees where it has some, under the name it goes by."""
    trees = trees_of(metric, candidate, reference, aligned)
    return plain(aligned, name, (candidate, reference), trees)


def plain(
    aligned: Aligned, name: str, texts: tuple[str, str], trees: TreePair | None = None
) -> Shown:
    """An alignment as lists of numbers."""
    similarity = np.asarray(aligned.similarity, dtype=np.float64)
    rows, cols = (np.asarray(a) for a in (aligned.alignment.rows, aligned.alignment.cols))
    shape = len(aligned.candidate_units), len(aligned.reference_units)
    return Shown(
        name,
        *texts,
        aligned.candidate_units,
        aligned.reference_units,
        np.round(similarity, _DIGITS).reshape(shape).tolist(),
        [(i, j, round(weight, _DIGITS)) for i, j, weight in aligned.pairs],
        np.round((rows * similarity).sum(1), _DIGITS).tolist(),
        np.round((cols * similarity).sum(0), _DIGITS).tolist(),
        _weights(aligned.candidate_weights, shape[0]),
        _weights(aligned.reference_weights, shape[1]),
        aligned.score,
        aligned.signature,
        tree_part(trees) if trees else "",
    )


def trees_of(metric: Metric, candidate: str, reference: str, aligned: Aligned) -> TreePair | None:
    """The two trees laid out, where the metric aligns pieces of trees."""
    if not isinstance(metric, AlignMetric) or not has_trees(metric.units):
        return None
    splitter: Any = metric.units
    return tree_pair(splitter, candidate, reference, aligned)


def alternatives(metric: Metric) -> Iterator[tuple[str, Metric]]:
    """The metric with every other way to align the same units, by name."""
    if isinstance(metric, AlignMetric):
        for name, solver in (("greedy", Greedy()), ("one-to-one", Lsa()), ("transport", Emd())):
            if metric.alignment != solver:
                yield f"{name}, else the same", dataclasses.replace(metric, alignment=solver)


def all_shown(
    metrics: Sequence[tuple[str, Metric]], candidates: Sequence[str], reference: str
) -> list[Shown]:
    """Every candidate aligned by every metric."""
    return [
        shown(align_texts(candidate, reference, metric), metric, candidate, reference, name=name)
        for name, metric in metrics
        for candidate in candidates
    ]


def _weights(given: Array, count: int) -> list[float]:
    found = np.asarray(given, dtype=np.float64)
    return np.round(found, _DIGITS).tolist() if len(found) else [1.0] * count
