from __future__ import annotations

import numpy as np
import pytest

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.kendall import (
    count_agreeing_pairs,
    kendall_like,
    pair_outcomes,
    pooled_accuracy,
    preferences,
)
from evenmatch.stats.paired import score_interval


def test_outputs_that_differ_enough_are_ranked() -> None:
    better, worse, segment = preferences([[80.0, 10.0], [55.0, 20.0], [54.0, float("nan")]])
    found = list(zip(better.tolist(), worse.tolist(), segment.tolist(), strict=True))
    assert found == [(0, 1, 0), (0, 2, 0)]


def test_tau_counts_concordant_less_discordant() -> None:
    # five pairs: three rightly, one wrongly ordered, one tied
    better, worse = [5, 5, 5, 1, 2], [4, 3, 2, 3, 2]
    assert kendall_like(better, worse) == pytest.approx((3 - 2) / 5)
    assert kendall_like(better, worse, tied="neutral") == pytest.approx((3 - 1) / 5)
    assert kendall_like(better, worse, tied="ignored") == pytest.approx((3 - 1) / 4)


def test_tau_of_the_ratings_themselves_is_one() -> None:
    human = np.random.default_rng(0).uniform(0, 100, (6, 20))
    better, worse, segment = preferences(human)
    assert kendall_like(human[better, segment], human[worse, segment]) == 1
    assert kendall_like(-human[better, segment], -human[worse, segment]) == -1


def test_pairs_with_a_missing_score_are_left_out() -> None:
    assert kendall_like([2, np.nan, 1], [1, 1, np.nan]) == 1


def test_without_pairs_there_is_no_tau() -> None:
    assert np.isnan(kendall_like([], []))
    assert np.isnan(kendall_like([1], [1], tied="ignored"))


def test_tau_has_an_interval_over_its_counts() -> None:
    random = np.random.default_rng(1)
    better, worse = random.normal(0.5, 1, 300), random.normal(0, 1, 300)
    found = score_interval(pair_outcomes(better, worse))
    assert found.value == pytest.approx(kendall_like(better, worse))
    assert found.low < found.value < found.high


def test_pairs_tied_by_both_agree() -> None:
    assert count_agreeing_pairs([1, 1, 2, np.nan], [3, 3, 1, 5]) == (1, 3)


def test_tasks_count_by_their_pairs() -> None:
    tasks = [([1, 2, 3], [1, 2, 3]), ([1, 2], [2, 1])]
    assert pooled_accuracy(tasks) == pytest.approx(3 / 4)
    assert np.isnan(pooled_accuracy([]))


def test_an_unknown_tie_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="no tie handling is called 'half'; known: discor"):
        kendall_like([1], [1], tied="half")  # type: ignore[arg-type]  # the point


def test_any_difference_is_too_little_to_rank_by() -> None:
    with pytest.raises(InputError, match="at_least is 0; give systems × segments and a difference"):
        preferences([[1, 2]], at_least=0)
