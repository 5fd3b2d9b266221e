"""How well a trained metric does on what it was not trained on."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenmatch.data.ratings import RatedSet
from evenmatch.data.tables import Table
from evenmatch.errors import InputError
from evenmatch.scoring.together import score_together
from evenmatch.stats.intervals import intervals
from evenmatch.stats.panel import Panel
from evenmatch.types import Metric, Run

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """Pearson's r over the rated outputs of one subset, with its 95 % interval."""

    data: str
    subset: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Judged:
    """Agreement subset by subset, and its mean."""

    rows: tuple[Row, ...]

    @property
    def mean(self) -> Row:
        """The mean over subsets; squared distances to the bounds add up (Zou & Donner 2008)."""
        count = len(self.rows)
        value = math.fsum(row.value for row in self.rows) / count
        below = math.hypot(*(row.value - row.low for row in self.rows)) / count
        above = math.hypot(*(row.high - row.value for row in self.rows)) / count
        n = sum(row.n for row in self.rows)
        names = ", ".join(dict.fromkeys(row.data for row in self.rows))
        return Row(names, "mean", value, value - below, value + above, n)

    def table(self) -> Table:
        """A line per subset and one for the mean."""
        every = self.rows if len(self.rows) == 1 else (*self.rows, self.mean)
        body = [
            [r.data, r.subset or "-", f"{r.value:.3f}", f"{r.low:.3f}", f"{r.high:.3f}", str(r.n)]
            for r in every
        ]
        return [["data", "subset", "r", "2.5%", "97.5%", "n"], *body]

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {"mean": asdict(self.mean), "rows": [asdict(row) for row in self.rows]}


def judge(metric: Metric, sets: Sequence[RatedSet], run: Run, *, seed: int = 0) -> Judged:
    """The metric's agreement with people on each set that has rated outputs."""
    machines = [each.without_people() for each in sets]
    rated = [each for each in machines if len(each.cells(rated=True)[0]) > 1]
    if not rated:
        raise InputError("there are no rated outputs with references to judge by; give other data")
    cells = [each.cells(rated=True) for each in rated]
    pairs = [pair for each, own in zip(rated, cells, strict=True) for pair in each.pairs(own)]
    values = [score.value for score in score_together([metric], pairs, run)[0].segments]
    sign = 1.0 if metric.higher_is_better else -1.0
    rows, start = [], 0
    for each, own in zip(rated, cells, strict=True):
        part = np.multiply(sign, values[start : start + len(own[0])])
        start += len(own[0])
        panel = Panel(each.spread(part.tolist(), own)[None], each.ratings)
        rows.append(row_of(each.name, each.subset, panel, len(part), seed))
    return Judged(tuple(rows))


def row_of(data: str, subset: str, panel: Panel, n: int, seed: int) -> Row:
    """The correlation of a panel's one metric with the other side, over all its outputs."""
    (found,) = intervals(
        panel, level="pooled", method="pearson", over="segments", resamples=RESAMPLES, seed=seed
    )
    return Row(data, subset, found.value, found.low, found.high, n)


def set_apart(
    sets: Sequence[RatedSet], share: float, seed: int
) -> tuple[list[RatedSet], list[RatedSet]]:
    """Ratings to train on and to judge by, a `share` of the segments; names go one way in all."""
    names = list(dict.fromkeys(name for each in sets for name in each.segments))
    count = max(1, round(share * len(names)))
    if not 0 < share < 1 or count >= len(names):
        raise InputError(
            f"a share of {share} of {len(names)} segments cannot be held out; "
            "give one between 0 and 1, or data to judge by"
        )
    drawn = np.random.default_rng(seed).permutation(len(names))[:count]
    out = {names[i] for i in drawn}
    apart = [np.array([name in out for name in each.segments]) for each in sets]
    return (
        [_only(each, ~away) for each, away in zip(sets, apart, strict=True)],
        [_only(each, away) for each, away in zip(sets, apart, strict=True)],
    )


def _only(each: RatedSet, kept: Any) -> RatedSet:
    return dataclasses.replace(each, ratings=np.where(kept[None, :], each.ratings, np.nan))
