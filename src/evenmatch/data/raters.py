"""Raters made comparable: some are strict, some use half of the scale."""

from __future__ import annotations

import numpy as np

from evenmatch.data.ratings import Floats, Indexes


def by_rater(values: Floats, raters: Indexes, *, degrees: int = 1) -> Floats:
    """Each value as z-score among its rater's, the deviation over n - `degrees`.

    A rater whose values are all the same says nothing about differences: NaN.

    >>> by_rater(np.array([1.0, 2.0, 3.0, 5.0]), np.array([0, 0, 0, 1]))
    array([-1.,  0.,  1., nan])
    """
    count = np.bincount(raters).astype(np.float64)
    mean = np.bincount(raters, values) / np.maximum(count, 1)
    apart = values - mean[raters]
    least, most = np.full(len(count), np.inf), np.full(len(count), -np.inf)
    np.minimum.at(least, raters, values)
    np.maximum.at(most, raters, values)
    spread = np.bincount(raters, apart**2) / np.maximum(count - degrees, 1)
    # the deviation of equal numbers may be a rounding error instead of 0
    deviation = np.where(least < most, np.sqrt(spread), np.nan)
    scores: Floats = apart / deviation[raters]
    return scores
