from __future__ import annotations

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.stats.bootstrap import (
    bootstrap_interval,
    effect_size,
    mean_difference,
    probability_of_superiority,
)


def test_an_effect_size_is_cohens_d() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(1.5, 1, 4000), random.normal(0, 1, 4000)
    pooled = np.sqrt((x.var() + y.var()) / 2)
    found = bootstrap_interval(effect_size(x, y), 4000, resamples=200)
    assert found.value == pytest.approx((x.mean() - y.mean()) / pooled)
    assert found.low < 1.5 < found.high
    assert found.high - found.low < 0.15


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for seed in range(200):
        x = np.random.default_rng(seed).normal(0.3, 1, 60)
        found = bootstrap_interval(mean_difference(x, np.zeros(60)), 60, resamples=200, seed=seed)
        held += found.low <= 0.3 <= found.high
    assert 0.89 <= held / 200 <= 0.98


def test_differences_are_paired() -> None:
    """Shared variation cancels, however large."""
    shared = np.random.default_rng(0).normal(0, 10, 50)
    found = bootstrap_interval(mean_difference(shared + 1, shared), 50)
    assert (found.low, found.high) == pytest.approx((1.0, 1.0))


def test_the_same_seed_gives_the_same_interval() -> None:
    x = np.random.default_rng(0).normal(size=20)
    one, two = (bootstrap_interval(mean_difference(x, x * 0), 20, seed=3) for _ in range(2))
    assert one == two


def test_lists_that_do_not_vary_have_an_effect_that_is_a_number() -> None:
    assert np.isfinite(effect_size(np.ones(3), np.zeros(3))(np.ones((1, 3)))).all()
    assert effect_size(np.ones(3), np.ones(3))(np.ones((1, 3)))[0] == 0


@pytest.mark.parametrize(("higher", "share"), [(1.0, 1.0), (0.0, 0.5), (-1.0, 0.0)])
def test_probability_of_superiority(higher: float, share: float) -> None:
    assert probability_of_superiority(np.full(3, higher), np.zeros(4)) == share


def test_one_item_has_no_interval() -> None:
    with pytest.raises(InputError, match="cannot resample 1 items; an interval needs at least 2"):
        bootstrap_interval(mean_difference(np.ones(1), np.ones(1)), 1)
