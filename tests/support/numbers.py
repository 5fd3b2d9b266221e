"""Random data and reference implementations for the tests of statistics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from evenmatch.stats.panel import Floats, Panel, make_panel

NAMES = ("pearson", "spearman", "kendall", "kendall_c", "accuracy")


@st.composite
def two_lists(draw: st.DrawFn, ties: bool = True) -> tuple[Floats, Floats]:
    """Two lists of numbers of equal length, with or without ties."""
    n = draw(st.integers(3, 25))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if ties:
        return random.integers(0, 6, n) / 4, random.integers(0, 4, n) / 0.1
    return random.normal(size=n), random.normal(size=n)


def made(metrics: int, systems: int, segments: int, seed: int = 0, missing: float = 0.0) -> Panel:
    """A panel of metric scores that are noisy human ratings; ratings are rounded and have ties."""
    random = np.random.default_rng(seed)
    human = random.normal(size=(systems, 1)) + random.normal(size=(systems, segments))
    scores = human + random.normal(size=(metrics, systems, segments))
    human, scores = human.round(0), scores.round(1)
    human[random.random(human.shape) < missing] = np.nan
    scores[random.random(scores.shape) < missing] = np.nan
    return make_panel(scores, human)


def plain(name: str) -> Callable[[ArrayLike, ArrayLike], float]:
    """Return SciPy's coefficient, or pairwise accuracy; NaN for constant data."""

    def value(x: ArrayLike, y: ArrayLike) -> float:
        a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        known = ~(np.isnan(a) | np.isnan(b))
        a, b = a[known], b[known]
        if name == "accuracy":
            return share_of_pairs(a, b)
        if len(set(a)) < 2 or len(set(b)) < 2:
            return float("nan")
        if name == "pearson":
            return float(stats.pearsonr(a, b).statistic)
        if name == "spearman":
            return float(stats.spearmanr(a, b).statistic)
        return float(stats.kendalltau(a, b, variant="c" if name == "kendall_c" else "b").statistic)

    return value


def share_of_pairs(x: Floats, y: Floats, epsilon: float = 0.0) -> float:
    """Compute pairwise accuracy with a loop over pairs."""
    right = total = 0
    for i in range(len(x)):
        for j in range(i):
            metric = 0.0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j])
            right += metric == np.sign(y[i] - y[j])
            total += 1
    return right / total if total else float("nan")
