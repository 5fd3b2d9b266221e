from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from evenmatch.stats.paired import williams_matrix, williams_test
from evenmatch.stats.panel import Panel
from tests.support.numbers import made


def test_williams_equals_a_published_example() -> None:
    """DEPCOR (Silver, Hittner & May 2006): r = .3 and .4, .5 between, n = 100, two-sided."""
    assert round(2 * williams_test(0.4, 0.3, 0.5, n=100), 4) == 0.2843


def test_williams_equals_a_hand_worked_example() -> None:
    # K = 1 - .81 - .49 - .64 + 2 · .9 · .7 · .8 = .068; mean .8
    # t = .2 · sqrt(9 · 1.8 / (2 · .068 · 9/7 + .64 · .008)) = .2 · sqrt(16.2 / .17997714…)
    statistic = 0.2 * np.sqrt(16.2 / (0.136 * 9 / 7 + 0.00512))
    found = williams_test(0.9, 0.7, 0.8, n=10)
    assert found == pytest.approx(stats.t.sf(statistic, 7))
    # t = 1.8975 with 7 degrees of freedom; tables give .05 at 1.895
    assert 0.049 < found < 0.05


def test_the_sides_of_a_test_sum_to_one() -> None:
    better, worse = williams_test(0.9, 0.7, 0.8, n=10), williams_test(0.7, 0.9, 0.8, n=10)
    assert better + worse == pytest.approx(1)


def test_a_metric_is_no_better_than_itself() -> None:
    assert williams_test(0.9, 0.9, 1.0, n=10) == 0.5


def test_an_undefined_correlation_gives_an_undefined_test() -> None:
    assert np.isnan(williams_test(float("nan"), 0.9, 0.5, n=10))


def test_all_pairs_are_tested_at_the_system_level() -> None:
    scores = made(3, 12, 40)
    p = williams_matrix(scores)
    means = np.concatenate([scores.metrics.mean(-1), scores.human.mean(-1)[None]])
    r = np.corrcoef(means)
    assert p[0, 2] == pytest.approx(williams_test(r[0, 3], r[2, 3], r[0, 2], n=12))
    assert_allclose(p + p.T + np.eye(3), np.where(np.eye(3, dtype=bool), np.nan, 1.0))


def test_systems_that_some_metric_lacks_are_left_out() -> None:
    scores = made(2, 8, 1)
    without = scores.metrics.copy()
    without[1, 3] = np.nan
    kept = [0, 1, 2, 4, 5, 6, 7]
    fewer = Panel(scores.metrics[:, kept], scores.human[kept])
    found = williams_matrix(Panel(without, scores.human))
    assert_allclose(found, williams_matrix(fewer))
