"""P-values of many tests, made up for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Floats, Indexes, as_floats


def holm(p: ArrayLike) -> Floats:
    """Adjusted so that any false finding at all is as rare as a p-value says (Holm 1979).

    NaN stays NaN and is no test.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values, order, tests = _sorted(p)
    steps = values.ravel()[order] * (tests - np.arange(tests))
    return _put(values, order, np.maximum.accumulate(steps))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted so that false ones among the findings are as rare as a p-value says (1995).

    NaN stays NaN and is no test.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    array([0.03, 0.04, 0.04])
    """
    values, order, tests = _sorted(p)
    steps = values.ravel()[order] * tests / (1 + np.arange(tests))
    return _put(values, order, np.minimum.accumulate(steps[::-1])[::-1])


def _sorted(p: ArrayLike) -> tuple[Floats, Indexes, int]:
    values = as_floats(p, "p")
    known = values[~np.isnan(values)]
    if ((known < 0) | (known > 1)).any():
        raise InputError("a p-value is outside 0 to 1; give probabilities, NaN where there is none")
    return values, np.argsort(values, axis=None, kind="stable")[: known.size], known.size


def _put(values: Floats, order: Indexes, adjusted: Floats) -> Floats:
    placed = np.full(values.size, np.nan)
    placed[order] = adjusted.clip(max=1.0)
    return placed.reshape(values.shape)
