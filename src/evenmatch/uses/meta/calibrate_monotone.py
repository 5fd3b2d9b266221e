"""A metric's scores onto the scale of ratings, order kept: isotonic regression."""

from __future__ import annotations

import numpy as np

from evenmatch.errors import InputError
from evenmatch.scoring.monotone import Monotone
from evenmatch.stats.arrays import Floats
from evenmatch.types import Metric

MOST_KNOTS = 40
_DIGITS = 6


def monotone(metric: Metric, scores: Floats, ratings: Floats) -> Monotone:
    """The metric on the scale of ratings, by the least squares of what goes one way.

    Scores are grouped into equal parts first, so that a knot rests on many ratings; the knots are
    the groups' means, those of one value joined into one.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(scores, kind="stable")
    groups = np.array_split(order, min(MOST_KNOTS, len(order)))
    at = np.array([scores[g].mean() for g in groups])
    means = np.array([ratings[g].mean() for g in groups])
    sizes = np.array([float(len(g)) for g in groups])
    fitted = isotonic_regression(means, weights=sizes, increasing=metric.higher_is_better)
    edges = np.asarray(fitted.blocks)[:-1]
    total = np.add.reduceat(sizes, edges)
    knots = np.round(np.add.reduceat(at * sizes, edges) / total, _DIGITS)
    to = np.round(np.asarray(fitted.x)[edges], _DIGITS)
    kept = np.concatenate([[True], np.diff(knots) > 0])
    if kept.sum() < 2 or to[kept][0] == to[kept][-1]:
        raise InputError(
            "the metric's scores do not go with the ratings, so there is no map between them; "
            "try another metric"
        )
    return Monotone(metric, tuple(knots[kept].tolist()), tuple(to[kept].tolist()))
