from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evenmatch.data.ratings.rated_set import z_score_by_rater


@given(st.integers(0, 10_000))
def test_every_rater_has_mean_zero_and_deviation_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    ratings, raters = random.normal(5, 20, 40), random.integers(0, 4, 40)
    found = z_score_by_rater(ratings, raters)
    for rater in range(4):
        own = found[raters == rater]
        if len(own) > 1:
            assert_allclose([own.mean(), own.std(ddof=1)], [0, 1], atol=1e-12)


def test_strictness_and_range_of_a_rater_do_not_matter() -> None:
    raters = np.array([0, 1, 0, 1, 0, 1])
    mild, strict = np.array([90.0, 95, 100]), np.array([10.0, 15, 20])
    together = np.ravel(np.column_stack([mild, strict]))
    found = z_score_by_rater(together, raters)
    assert_allclose(found[::2], found[1::2])


@pytest.mark.parametrize("ratings", [[7.0], [0.1, 0.1, 0.1]])
def test_a_rater_with_constant_ratings_gets_nan(ratings: list[float]) -> None:
    assert np.isnan(
        z_score_by_rater(np.array(ratings), np.zeros(len(ratings), dtype=np.intp))
    ).all()
