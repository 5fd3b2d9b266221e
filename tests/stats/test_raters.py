from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from evenmatch.errors import InputError
from evenmatch.stats.panel import standardise_ratings


@given(st.integers(0, 10_000))
def test_every_rater_has_mean_zero_and_deviation_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    ratings, raters = random.normal(5, 20, 40), random.integers(0, 4, 40)
    found = standardise_ratings(ratings, raters)
    for rater in range(4):
        own = found[raters == rater]
        if len(own) > 1:
            assert_allclose([own.mean(), own.std(ddof=1)], [0, 1], atol=1e-12)


def test_strictness_and_range_of_a_rater_do_not_matter() -> None:
    raters = [0, 1, 0, 1, 0, 1]
    mild, strict = np.array([90.0, 95, 100]), np.array([10.0, 15, 20])
    together = np.ravel(np.column_stack([mild, strict]))
    assert_allclose(
        standardise_ratings(together, raters)[::2], standardise_ratings(together, raters)[1::2]
    )


@pytest.mark.parametrize("ratings", [[7.0], [0.1, 0.1, 0.1]])
def test_a_rater_with_constant_ratings_gets_nan(ratings: list[float]) -> None:
    assert np.isnan(standardise_ratings(ratings, np.zeros(len(ratings)))).all()


def test_a_missing_rating_stays_missing() -> None:
    assert_allclose(standardise_ratings([1, np.nan, 3], [0, 0, 0]) ** 2, [0.5, np.nan, 0.5])


def test_every_rating_needs_a_rater() -> None:
    with pytest.raises(InputError, match=r"ratings have shape \(2,\) and raters \(1,\); give one"):
        standardise_ratings([1, 2], [0])
