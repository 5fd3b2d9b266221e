from __future__ import annotations

import numpy as np
import pytest

from evenmatch.stats.panel import find_outliers


def test_the_rule_at_its_border() -> None:
    # median 3, distances 2 1 0 1 and the last; MAD 1 (or 1 with a farther last): cut at 3.7075
    assert find_outliers([1, 2, 3, 4, 3 + 3.70]).tolist() == [False] * 5
    assert find_outliers([1, 2, 3, 4, 3 + 3.71]).tolist() == [False] * 4 + [True]


def test_a_higher_cutoff_spares_more() -> None:
    assert not find_outliers([1, 2, 3, 4, 8], cutoff=4).any()


def test_a_missing_score_is_no_outlier_and_moves_nothing() -> None:
    assert find_outliers([1, 2, np.nan, 3, 4, 8]).tolist() == [False] * 5 + [True]


def test_without_a_scale_nothing_is_an_outlier() -> None:
    assert not find_outliers([1, 1, 1, 1, 9]).any()


@pytest.mark.parametrize("scores", [[], [np.nan], [5.0]])
def test_too_few_scores_have_no_outlier(scores: list[float]) -> None:
    assert not find_outliers(scores).any()
