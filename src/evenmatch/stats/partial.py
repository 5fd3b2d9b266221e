"""Partial correlations: correlations that control for other variables."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from evenmatch.errors import InputError
from evenmatch.stats.correlation import ranks
from evenmatch.stats.levels import correlation
from evenmatch.stats.panel import Floats, as_floats

PartialMethod: TypeAlias = Literal["pearson", "spearman"]

# Relative size of the residuals up to which the controls explain a variable fully.
_ROUNDING = 1e-10


def partial_matrix(
    variables: ArrayLike, controls: ArrayLike, *, method: PartialMethod = "pearson"
) -> Floats:
    """Compute the partial correlation of every pair of variables given the controls.

    Both are rows of numbers over the same points. `controls` may be one row or empty; without
    controls the result is plain correlations. Points with a missing number are left out. The
    residuals of a linear fit on the controls are correlated; `spearman` converts all rows to ranks
    first. NaN for a variable that is constant or that the controls explain fully.

    >>> human = [1, 2, 3, 4, 5, 6]
    >>> metrics = [[1, 3, 2, 4, 6, 5], [2, 3, 1, 4, 6, 7]]
    >>> partial_matrix(metrics, human).round(2)
    array([[1.  , 0.59],
           [0.59, 1.  ]])
    """
    x, given = as_floats(variables, "variables"), as_floats(controls, "controls")
    given = given.reshape(0, x.shape[-1]) if not given.size else np.atleast_2d(given)
    if x.ndim != 2 or given.ndim != 2 or given.shape[1] != x.shape[1]:
        raise InputError(
            f"variables have shape {x.shape} and controls {given.shape}; "
            "give both as rows over the same points"
        )
    known = ~np.isnan(np.concatenate([x, given])).any(0)
    x, given = x[:, known], given[:, known]
    if method == "spearman":
        x, given = ranks(x), ranks(given)
    left = residuals(x, given)
    return correlation(left[:, None], left[None], "pearson")


def residuals(x: Floats, given: Floats) -> Floats:
    """Return the residuals of the rows of x after a linear fit on the rows of `given`."""
    design = np.concatenate([np.ones((1, x.shape[-1])), given]).T
    # scale each control, so that the fit does not depend on units
    size = abs(design).max(0, initial=0.0)
    design = design / np.where(size > 0, size, 1.0)
    fit = np.linalg.lstsq(design, x.T, rcond=None)[0]
    left = x - (design @ fit).T
    mean = x.sum(-1, keepdims=True) / max(x.shape[-1], 1)
    size = abs(x - mean).max(-1, keepdims=True, initial=0.0)
    explained = abs(left).max(-1, keepdims=True, initial=0.0) <= _ROUNDING * size
    return np.where(explained, 0.0, left)
