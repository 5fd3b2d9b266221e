"""Training data of metrics: examples with targets, held-out splits, and held-out evaluation.

`TrainingExamples` holds pairs of texts with the score each should get. `split_ratings` and
`split_train_test` set data aside; `evaluate_held_out` correlates a trained metric with it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenmatch.data.pairs import open_pair_file
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.ratings.reading import RATING_READERS, read_ratings
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.protocols import Metric
from evenmatch.scoring.metric import score_metrics
from evenmatch.stats.bootstrap import correlation_intervals
from evenmatch.stats.panel import Panel
from evenmatch.types import Array, Pair, Run

MIN_EXAMPLES = 8
RESAMPLES = 1000
_HOLD_OUT_EVERY = 10
_MANY_OUTPUTS = 4
PairSource: TypeAlias = str | PathLike[str] | Sequence[Pair]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingExamples:
    """Distinct texts, and for each example the indices of its two texts and its target."""

    texts: tuple[str, ...]
    candidates: Array
    references: Array
    targets: Array

    def __len__(self) -> int:
        return len(self.targets)

    def pairs(self) -> list[Pair]:
        """Return the pair of each example."""
        sides = zip(self.candidates, self.references, strict=True)
        return [Pair(self.texts[c], (self.texts[r],)) for c, r in sides]

    def sample(self, count: int, seed: int) -> TrainingExamples:
        """Return `count` of the examples, drawn at random without replacement."""
        kept = np.sort(np.random.default_rng(seed).permutation(len(self))[:count])
        pairs = self.pairs()
        return make_training_examples([pairs[i] for i in kept], self.targets[kept].tolist())

    def text_indices(self, batch: Array) -> Array:
        """Return the texts of these examples: all candidates, then all references."""
        return np.concatenate([self.candidates[batch], self.references[batch]])


def make_training_examples(pairs: Sequence[Pair], targets: Sequence[float]) -> TrainingExamples:
    """Return the pairs as examples: first reference only, pairs with an empty side dropped."""
    kept = [
        (pair.candidate, pair.references[0], target)
        for pair, target in zip(pairs, targets, strict=True)
        if pair.candidate.strip() and pair.references[0].strip()
    ]
    if len(kept) < MIN_EXAMPLES:
        raise InputError(
            f"{len(kept)} rated pairs of texts are too few to train on; "
            f"give at least {MIN_EXAMPLES}"
        )
    number = {
        text: i for i, text in enumerate(dict.fromkeys(t for c, r, _ in kept for t in (c, r)))
    }
    values = np.array([target for *_, target in kept], dtype=np.float64)
    if values.std() == 0:
        raise InputError(f"all {len(kept)} pairs have the same rating, {values[0]:g}; give others")
    return TrainingExamples(
        tuple(number),
        np.array([number[c] for c, _, _ in kept], dtype=np.intp),
        np.array([number[r] for _, r, _ in kept], dtype=np.intp),
        values,
    )


def rated_pairs(sets: Sequence[RatedSet]) -> tuple[list[Pair], list[float]]:
    """Return every rated system output with its rating; human references are excluded."""
    pairs: list[Pair] = []
    ratings: list[float] = []
    for each in (given.exclude_humans() for given in sets):
        cells = each.cells(rated=True)
        pairs += each.pairs(cells)
        ratings += each.ratings[cells].tolist()
    return pairs, ratings


def standardise_ratings(
    sets: Sequence[RatedSet], segment_share: float = 1.0, *, roots: bool = False
) -> list[RatedSet]:
    """Centre the ratings of each subset, and scale those of each data set to deviation 1.

    Segments differ in length and difficulty. Of a segment with at least four rated outputs, only
    `segment_share` of the distance between its mean and the subset's is kept. With `roots`, error
    counts, none of which is above 0, are first replaced by minus their roots: a few outputs have
    many errors.
    """
    if not 0 <= segment_share <= 1:
        raise InputError(f"the share of segments must be from 0 to 1, got {segment_share}")
    centred = []
    for each in (given.exclude_humans() for given in sets):
        known = ~np.isnan(each.ratings)
        if not known.any():
            continue
        ratings = each.ratings
        if roots and ratings[known].max() <= 0:
            ratings = -np.sqrt(-ratings)
        ratings = ratings - ratings[known].mean()
        count = known.sum(0)
        means = np.where(known, ratings, 0.0).sum(0) / np.maximum(count, 1)
        shrunk = np.where(count >= _MANY_OUTPUTS, (1 - segment_share) * means, 0.0)
        centred.append(dataclasses.replace(each, ratings=ratings - shrunk))
    spread = {
        name: _deviation([s.ratings for s in centred if s.name == name])
        for name in dict.fromkeys(s.name for s in centred)
    }
    return [
        dataclasses.replace(each, ratings=each.ratings / (spread[each.name] or 1.0))
        for each in centred
    ]


def _deviation(ratings: Sequence[Array]) -> float:
    values = np.concatenate([each[~np.isnan(each)] for each in ratings])
    return float(values.std())


def read_training_pairs(data: PairSource) -> list[Pair]:
    """Return the pairs of a list, of a file that `evenmatch score` accepts, or of rated data."""
    if not isinstance(data, (str, PathLike)):
        return list(data)
    given = fspath(data)
    if given in RATING_READERS or Path(given).is_dir():
        return [pair for each in read_ratings(given) for pair in each.pairs(each.cells())]
    return list(open_pair_file(given))


def split_train_test(
    data: PairSource, tests: Sequence[PairSource]
) -> tuple[list[Pair], Mapping[str, list[Pair]]]:
    """Return training pairs, and test pairs by name: those given, or every tenth pair."""
    pairs = read_training_pairs(data)
    if tests:
        named = {
            fspath(test) if isinstance(test, (str, PathLike)) else f"pairs {i}": test
            for i, test in enumerate(tests, 1)
        }
        return pairs, {name: read_training_pairs(test) for name, test in named.items()}
    held_out = pairs[::_HOLD_OUT_EVERY]
    if len(held_out) < 2:
        raise InputError(
            f"{len(pairs)} pairs are too few to hold some out; give separate test pairs"
        )
    rest = [pair for i, pair in enumerate(pairs) if i % _HOLD_OUT_EVERY]
    return rest, {"held out": held_out}


def split_ratings(
    sets: Sequence[RatedSet], share: float, seed: int
) -> tuple[list[RatedSet], list[RatedSet]]:
    """Split ratings into train and test; `share` of the segment names is held out in every set."""
    names = list(dict.fromkeys(name for each in sets for name in each.segments))
    count = max(1, round(share * len(names)))
    if not 0 < share < 1 or count >= len(names):
        raise InputError(
            f"a share of {share} of the segments ({len(names)}) cannot be held out; give a share "
            "between 0 and 1 that leaves one to train on, or separate test data"
        )
    sampled = np.random.default_rng(seed).permutation(len(names))[:count]
    test_names = {names[i] for i in sampled}
    train: list[RatedSet] = []
    test: list[RatedSet] = []
    for each in sets:
        mask = np.array([name in test_names for name in each.segments])
        for side, ratings in ((train, ~mask), (test, mask)):
            kept = np.where(ratings[None, :], each.ratings, np.nan)
            side.append(dataclasses.replace(each, ratings=kept))
    return train, test


def evaluate_held_out(
    metric: Metric, sets: Sequence[RatedSet], run: Run, *, seed: int = 0
) -> HeldOutAgreement:
    """Correlate the metric with the human ratings of each set that has rated outputs."""
    machines = [each.exclude_humans() for each in sets]
    rated = [each for each in machines if len(each.cells(rated=True)[0]) > 1]
    if not rated:
        raise InputError(
            "the test data have no rated outputs with references; give other test data"
        )
    cells = [each.cells(rated=True) for each in rated]
    pairs = [pair for each, own in zip(rated, cells, strict=True) for pair in each.pairs(own)]
    values = [score.value for score in score_metrics([metric], pairs, run)[0].segments]
    sign = 1.0 if metric.higher_is_better else -1.0
    rows, start = [], 0
    for each, own in zip(rated, cells, strict=True):
        part = np.multiply(sign, values[start : start + len(own[0])])
        start += len(own[0])
        panel = Panel(each.to_matrix(part.tolist(), own)[None], each.ratings)
        rows.append(correlate_subset(each.name, each.subset, panel, len(part), seed))
    return HeldOutAgreement(tuple(rows))


@dataclass(frozen=True, slots=True)
class HeldOutAgreement:
    """Correlations by subset, and their mean."""

    rows: tuple[SubsetCorrelation, ...]

    @property
    def mean(self) -> SubsetCorrelation:
        """The mean over subsets; its interval adds squared margins (Zou & Donner 2008)."""
        count = len(self.rows)
        value = math.fsum(row.value for row in self.rows) / count
        below = math.hypot(*(row.value - row.low for row in self.rows)) / count
        above = math.hypot(*(row.high - row.value for row in self.rows)) / count
        n = sum(row.n for row in self.rows)
        names = ", ".join(dict.fromkeys(row.data for row in self.rows))
        return SubsetCorrelation(names, "mean", value, value - below, value + above, n)

    def table(self) -> TextTable:
        """Return a table with one row per subset and one for the mean."""
        every = self.rows if len(self.rows) == 1 else (*self.rows, self.mean)
        rows = [
            [r.data, r.subset or "-", f"{r.value:.3f}", f"{r.low:.3f}", f"{r.high:.3f}", str(r.n)]
            for r in every
        ]
        return [["data", "subset", "r", "2.5%", "97.5%", "n"], *rows]

    def document(self) -> dict[str, Any]:
        """Return the correlations as JSON-compatible values."""
        return {"mean": asdict(self.mean), "rows": [asdict(row) for row in self.rows]}


@dataclass(frozen=True, slots=True)
class SubsetCorrelation:
    """Pearson's r over the rated outputs of one subset, with its 95 % interval."""

    data: str
    subset: str
    value: float
    low: float
    high: float
    n: int


def correlate_subset(data: str, subset: str, panel: Panel, n: int, seed: int) -> SubsetCorrelation:
    """Correlate the single metric of a panel with the panel's ratings, over all outputs."""
    (found,) = correlation_intervals(
        panel, level="segment", method="pearson", resamples=RESAMPLES, seed=seed
    )
    return SubsetCorrelation(data, subset, found.value, found.low, found.high, n)
