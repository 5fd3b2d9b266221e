"""Cross-validation of a choice: made on some of the ratings, judged on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, Indexes
from evenmatch.stats.levels import Level, leveled
from evenmatch.stats.panel import Panel
from evenmatch.stats.rows import Method

# Parts of the segments, so many; or each subset (a language pair, a criterion) in its turn.
Folds: TypeAlias = int | Literal["subsets"]


@dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """Agreement of each metric: on everything, and fold by fold on the rest and held out."""

    overall: Floats  # (metrics,)
    rest: Floats  # (folds, metrics)
    held_out: Floats  # (folds, metrics)

    @property
    def choices(self) -> list[int]:
        """In each fold the metric that is best on the rest; ties go to the lower number."""
        return [best(row) for row in self.rest]

    @property
    def honest(self) -> float:
        """The mean agreement, held out, of what was chosen on the rest."""
        return mean(np.array([row[c] for row, c in zip(self.held_out, self.choices, strict=True)]))


def validate(
    panels: Sequence[Panel],
    segments: Sequence[Sequence[str]],
    *,
    level: Level,
    method: Method,
    folds: Folds,
    seed: int,
) -> Validated:
    """Each metric's mean agreement over the panels; `segments` names those of each panel.

    Segments of one name are in one fold in every panel: criteria rate the same outputs.
    """
    if folds == "subsets":
        return _by_subset(panels, level, method)
    parts = _folds(segments, folds, seed)
    each = []
    for panel, part in zip(panels, parts, strict=True):
        out = (part == np.arange(folds)[:, None]).astype(np.float64)
        weights = np.concatenate([np.ones((1, len(part))), 1 - out, out])
        each.append(leveled(panel, level, method)(np.ones((1, panel.systems)), weights))
    found = np.array([[mean(cell) for cell in row.T] for row in np.stack(each, axis=1)])
    return Validated(found[0], found[1 : 1 + folds], found[1 + folds :])


def best(agreement: Floats) -> int:
    """The number of the greatest; the lowest of several, and of none 0."""
    return int(np.argmax(np.where(np.isnan(agreement), -np.inf, agreement)))


def mean(values: Floats) -> float:
    """The mean of what is known; NaN of nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _by_subset(panels: Sequence[Panel], level: Level, method: Method) -> Validated:
    if len(panels) < 2:
        raise InputError(
            f"{len(panels)} subset of ratings cannot be held out from itself; "
            "give folds as a number, to hold out segments"
        )
    own = np.concatenate(
        [
            leveled(p, level, method)(np.ones((1, p.systems)), np.ones((1, p.segments)))
            for p in panels
        ]
    )
    rest = [[mean(c) for c in np.delete(own, i, axis=0).T] for i in range(len(own))]
    return Validated(np.array([mean(c) for c in own.T]), np.array(rest), own)


def _folds(segments: Sequence[Sequence[str]], folds: int, seed: int) -> list[Indexes]:
    """The fold of each segment, panel by panel; every fold has about as many."""
    names = list(dict.fromkeys(name for own in segments for name in own))
    if type(folds) is not int or not 2 <= folds <= len(names):
        raise InputError(
            f"folds must be 'subsets', or a number from 2 to that of segments ({len(names)}), "
            f"got {folds!r}"
        )
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = dict(zip((names[i] for i in order), np.arange(len(names)) % folds, strict=True))
    return [np.array([fold_of[name] for name in own], dtype=np.intp) for own in segments]
