"""Ridge regression of ratings on several metrics, and the choice of those worth having.

Everything is computed from sums of products, cell by cell (a subset, or a part of one), so that to
leave a cell out is to subtract its sums. Scores and ratings are centred within each cell: what is
learnt is to tell outputs of one subset apart, not the subsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.stats.arrays import Floats, Indexes

# Shares of the number of ratings; the first that is best is taken.
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)
_WORTH = 5e-4  # what a part must add to the agreement to be taken
# Scores that differ less than this among themselves would get weights that magnify rounding.
_LEAST_SPREAD = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Products of standardised scores with each other and with ratings, for each cell."""

    scale: Floats  # (metrics,) what a score was divided by
    products: Floats  # (cells, metrics, metrics)
    with_ratings: Floats  # (cells, metrics)
    squares: Floats  # (cells,) of the ratings
    counts: Floats  # (cells,)
    folds: Indexes  # (cells,) which cells are left out together


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which metrics were taken, in that order, how strongly shrunk, and the agreement on the way.

    `agreement` is cross-validated: after each part taken, the mean over cells left out.
    """

    parts: tuple[int, ...]
    strength: float
    agreement: tuple[float, ...]


def gather(scores: Floats, ratings: Floats, cells: Indexes, folds: Indexes) -> Sums:
    """The sums of scores (ratings, metrics), given each rating's cell and each cell's fold."""
    scale = scores.std(0)
    products, with_ratings, squares, counts = [], [], [], []
    for cell in range(len(folds)):
        own = cells == cell
        x = scores[own] / np.where(scale > 0, scale, 1.0)
        x, y = x - x.mean(0), ratings[own] - ratings[own].mean()
        products.append(x.T @ x)
        with_ratings.append(x.T @ y)
        squares.append(y @ y)
        counts.append(float(own.sum()))
    return Sums(
        scale,
        np.array(products),
        np.array(with_ratings),
        np.array(squares),
        np.array(counts),
        folds,
    )


def solved(sums: Sums, parts: Sequence[int], strength: float, cells: Floats) -> Floats:
    """The weights of standardised scores that fit the ratings of these cells."""
    at = np.array(parts)
    gram = np.tensordot(cells, sums.products[:, at[:, None], at], 1)
    shrunk = gram + strength * (cells @ sums.counts) * np.eye(len(at))
    found = np.linalg.solve(shrunk, cells @ sums.with_ratings[:, at])
    return np.asarray(found, dtype=np.float64)


def agreement(sums: Sums, parts: Sequence[int], strength: float) -> float:
    """The mean correlation over cells, each fold judged by weights found without it."""
    at = np.array(parts)
    found = []
    for fold in np.unique(sums.folds):
        out = sums.folds == fold
        weights = solved(sums, parts, strength, (~out).astype(np.float64))
        for cell in np.flatnonzero(out):
            spread = weights @ sums.products[cell][at[:, None], at] @ weights * sums.squares[cell]
            if spread > 0:
                found.append(weights @ sums.with_ratings[cell][at] / np.sqrt(spread))
    return float(np.mean(found)) if found else 0.0


def choose(sums: Sums, most: int) -> Chosen:
    """Parts taken one by one, each the one that adds most, while it is worth it; at most `most`."""
    every = np.flatnonzero(sums.scale >= _LEAST_SPREAD).tolist()
    best = Chosen((), STRENGTHS[0], ())
    while len(best.parts) < most:
        tried = [
            (agreement(sums, (*best.parts, part), strength), part, strength)
            for part in every
            if part not in best.parts
            for strength in STRENGTHS
        ]
        if not tried:
            break
        value, part, strength = max(tried, key=lambda each: each[0])
        if best.agreement and value < best.agreement[-1] + _WORTH:
            break
        best = Chosen((*best.parts, part), strength, (*best.agreement, value))
    return best


def weigh(sums: Sums, chosen: Chosen) -> Floats:
    """The weights of the chosen parts' own scores, from all ratings."""
    everything = np.ones(len(sums.folds))
    weights = solved(sums, chosen.parts, chosen.strength, everything)
    found: Floats = weights / sums.scale[np.array(chosen.parts)]
    return found
