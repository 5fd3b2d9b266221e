"""Ratings freed of how strict each rater is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, as_floats


def standardise(ratings: ArrayLike, raters: ArrayLike) -> Floats:
    """Each rating as z-score among its rater's: mean 0, standard deviation 1 (n - 1).

    `raters` are numbers that tell raters apart. A rater with one rating, or always the same one,
    says nothing about differences: NaN.

    >>> standardise([1, 2, 3, 10, 30], [0, 0, 0, 7, 7])
    array([-1.        ,  0.        ,  1.        , -0.70710678,  0.70710678])
    """
    values, who = as_floats(ratings, "ratings"), np.asarray(raters)
    if values.ndim != 1 or who.shape != values.shape:
        raise InputError(
            f"ratings have shape {values.shape} and raters {who.shape}; give one rater per rating"
        )
    scores = np.full(values.shape, np.nan)
    for rater in np.unique(who):
        theirs = (who == rater) & ~np.isnan(values)
        own = values[theirs]
        # the deviation of equal numbers may be a rounding error instead of 0
        if own.size > 1 and own.min() < own.max():
            scores[theirs] = (own - own.mean()) / own.std(ddof=1)
    return scores
