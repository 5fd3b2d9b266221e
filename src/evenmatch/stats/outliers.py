"""Systems so far from the rest that they alone would make a correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.arrays import Flags, as_floats

# Makes the median absolute deviation of a normal distribution its standard deviation.
_NORMAL = 1.483


def outliers(scores: ArrayLike, *, cutoff: float = 2.5) -> Flags:
    """Which systems' scores are outliers by the median absolute deviation.

    Mathur, Baldwin & Cohn (2020), as in WMT20: |x - median| / (1.483 · MAD) above the cutoff.
    Missing scores are none; where half of the systems share one score there is no scale to judge
    by, and none is either. `Panel.without` takes the flags. WMT20's own list differs from what the
    rule makes of its published scores in half of the pairs to English: use the list there.

    >>> outliers([0.1, 0.2, 0.15, 0.18, -2.0])
    array([False, False, False, False,  True])
    """
    values = as_floats(scores, "scores")
    if values.ndim != 1:
        raise InputError(f"scores have shape {values.shape}; give one number per system")
    known = values[~np.isnan(values)]
    if not known.size:
        return np.zeros(len(values), dtype=bool)
    distance = abs(values - np.median(known))
    deviation = _NORMAL * np.median(distance[~np.isnan(distance)])
    if not deviation:
        return np.zeros(len(values), dtype=bool)
    flags: Flags = distance / deviation > cutoff
    return flags
