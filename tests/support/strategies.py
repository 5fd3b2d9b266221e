"""Hypothesis strategies: matrices, masses and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from evenmatch.types import Array, Problem

WORDS = "the a cat dog sat ran on under mat sofa slowly 2 , . Katze 猫 été 😀".split()


@st.composite
def similarities(draw: st.DrawFn, low: float = -1.0, most: int = 8) -> Array:
    """A matrix of similarities, of any shape up to `most`, without ties."""
    m, n = draw(st.integers(1, most)), draw(st.integers(1, most))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random.uniform(low, 1.0, (m, n))


@st.composite
def tied(draw: st.DrawFn, most: int = 5) -> Array:
    """A matrix with few distinct values, so that most choices are ties."""
    m, n = draw(st.integers(1, most)), draw(st.integers(1, most))
    cells: Any = st.sampled_from([-1.0, 0.0, 0.5, 1.0])
    return np.array(draw(st.lists(cells, min_size=m * n, max_size=m * n))).reshape(m, n)


@st.composite
def problems(draw: st.DrawFn, low: float = -1.0) -> Problem:
    """A problem with masses that may be unequal, huge, tiny or zero."""
    similarity = draw(st.one_of(similarities(low=low), tied()))
    amounts = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
    row, col = (np.array(draw(st.lists(amounts, min_size=k, max_size=k))) for k in similarity.shape)
    return Problem(np.maximum(similarity, low), row, col)


def sentences(longest: int = 8) -> st.SearchStrategy[str]:
    """Short texts of a few words, including the empty text."""
    return st.lists(st.sampled_from(WORDS), max_size=longest).map(" ".join)
