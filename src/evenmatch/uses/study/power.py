"""What difference an experiment with so few runs can see."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def least_difference(
    spread: float, pairs: int, *, power: float = 0.8, level: float = 0.05
) -> float:
    """The true difference that a paired t-test finds with that chance, given the differences' sd.

    >>> round(least_difference(1.0, 3), 2)
    3.26
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, norm, t

    free = pairs - 1
    # The distribution of t as a mean over that of the spread: scipy's own fails at large shifts.
    spreads = np.sqrt(chi2.ppf((np.arange(2000) + 0.5) / 2000, free) / free)
    bounds = t.ppf(1 - level / 2, free) * spreads

    def found(size: float) -> float:
        shift = size * math.sqrt(pairs)
        return float((norm.sf(bounds - shift) + norm.cdf(-bounds - shift)).mean()) - power

    return spread * float(brentq(found, 0.0, 50.0))


def paired_t(differences: Sequence[float]) -> float:
    """The two-sided p-value of no mean difference; 1 where it cannot be asked.

    >>> round(paired_t([0.4, 0.5, 0.6]), 4)
    0.0131
    """
    from scipy.stats import t

    spread = float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0
    if not spread:
        return 1.0
    size = float(np.mean(differences)) / spread * math.sqrt(len(differences))
    return float(2 * t.sf(abs(size), len(differences) - 1))
