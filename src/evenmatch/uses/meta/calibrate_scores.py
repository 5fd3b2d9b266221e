"""Metrics' scores of rated outputs as one table, with the cells that cross-validation needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from evenmatch.data.ratings import RatedSet
from evenmatch.errors import InputError
from evenmatch.scoring.together import score_together
from evenmatch.stats.arrays import Floats, Indexes
from evenmatch.types import Metric, Pair, Run

FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """Scores (outputs, metrics) beside ratings; each output's cell, and each cell's fold."""

    scores: Floats
    ratings: Floats
    cells: Indexes
    folds: Indexes


def score_rated(
    metrics: Sequence[Metric],
    sets: Sequence[RatedSet],
    run: Run,
    *,
    seed: int,
    stand_ins: Mapping[str, Metric] = MappingProxyType({}),
) -> Rated:
    """All metrics over all rated outputs of machines, in one pass.

    With several subsets each is a cell and a fold of its own; of one, parts of its segments are.
    On a subset that has one of the `stand_ins`, that gives the scores of the last metric.
    """
    pairs: list[Pair] = []
    ratings: list[float] = []
    owners: list[int] = []
    segments: list[str] = []
    for number, each in enumerate(given.without_people() for given in sets):
        cells = each.cells(rated=True)
        pairs += [dataclasses.replace(p, references=p.references[:1]) for p in each.pairs(cells)]
        ratings += each.ratings[cells].tolist()
        owners += [number] * len(cells[0])
        segments += [each.segments[i] for i in cells[1]]
    if len(set(ratings)) < 2:
        raise InputError(f"{len(ratings)} ratings, all alike or none, are nothing to calibrate by")
    found = score_together(metrics, pairs, run)
    scores = np.array([[score.value for score in each.segments] for each in found]).T
    for subset, metric in stand_ins.items():
        rows = [i for i, owner in enumerate(owners) if sets[owner].subset == subset]
        again = score_together([metric], [pairs[i] for i in rows], run)[0]
        scores[rows, -1] = [score.value for score in again.segments]
    cells_of = np.array(owners) if len(set(owners)) > 1 else _parts(segments, seed)
    numbers, cells_of = np.unique(cells_of, return_inverse=True)
    return Rated(scores, np.array(ratings), cells_of, np.arange(len(numbers)))


def _parts(segments: Sequence[str], seed: int) -> Indexes:
    names = list(dict.fromkeys(segments))
    if len(names) < 2 * FOLDS:
        raise InputError(
            f"{len(names)} segments are too few to hold some out; give at least {2 * FOLDS}"
        )
    order = np.random.default_rng(seed).permutation(len(names))
    part = dict(zip((names[i] for i in order), np.arange(len(names)) % FOLDS, strict=True))
    return np.array([part[name] for name in segments], dtype=np.intp)
