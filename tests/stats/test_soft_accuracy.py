"""Soft pairwise accuracy against cases worked by hand and a loop over exchanges."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.stats.levels import correlate_panel
from evenmatch.stats.panel import Floats, make_panel
from evenmatch.stats.permutation import permutation_matrix
from evenmatch.stats.soft_accuracy import system_p_values


def test_two_systems_on_two_segments_are_worked_by_hand() -> None:
    # Differences (1, 1) give sums 2, 0, 0, -2: p is half of 1/4. Differences (1, -1) give
    # 0, 2, -2, 0, and 0 is observed: p is 1/4 and half of 1/2.
    panel = make_panel([[1, 0], [0, 1]], [[1, 1], [0, 0]])
    assert correlate_panel(panel, level="system", method="soft_accuracy")[0] == 1 - (0.5 - 0.125)


def test_it_equals_a_loop_over_all_exchanges() -> None:
    rng = np.random.default_rng(1)
    metric, human = rng.normal(size=(2, 4, 7))

    def p_value(scores: Floats, i: int, j: int) -> float:
        d = scores[i] - scores[j]
        sums = [float((np.array(s) * d).sum()) for s in product([1, -1], repeat=7)]
        equal = sum(abs(x - d.sum()) < 1e-9 for x in sums)
        return float((sum(x > d.sum() + 1e-9 for x in sums) + equal / 2) / len(sums))

    pairs = [(i, j) for i in range(4) for j in range(i)]
    wanted = np.mean([1 - abs(p_value(metric, *p) - p_value(human, *p)) for p in pairs])
    panel = make_panel(metric, human)
    found = correlate_panel(panel, level="system", method="soft_accuracy")
    assert found == pytest.approx(wanted, abs=1e-12)


def test_the_ratings_themselves_score_1_and_their_negation_less_than_chance() -> None:
    rng = np.random.default_rng(2)
    human = rng.normal(size=(5, 60)) + np.arange(5)[:, None]
    panel = make_panel([human, -human, rng.normal(size=(5, 60))], human)
    best, worst, random = correlate_panel(panel, level="system", method="soft_accuracy")
    assert best == 1
    assert worst < random < 0.9
    assert worst < 0.1


def test_perm_both_prefers_the_metric_with_less_noise() -> None:
    rng = np.random.default_rng(3)
    human = rng.normal(size=(6, 80)) + 0.2 * np.arange(6)[:, None]
    good, bad = human + 0.1 * rng.normal(size=(6, 80)), rng.normal(size=(6, 80))
    p = permutation_matrix(
        make_panel([good, bad], human), level="system", method="soft_accuracy", resamples=200
    )
    assert p[0, 1] < 0.05 < p[1, 0]


def test_segments_without_a_score_are_left_out() -> None:
    rng = np.random.default_rng(4)
    metric, human = rng.normal(size=(2, 3, 6))
    whole = make_panel(metric[:, 1:], human[:, 1:])
    metric[1, 0] = np.nan
    found = [
        correlate_panel(p, level="system", method="soft_accuracy")[0]
        for p in (whole, make_panel(metric, human))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("ratings", "level", "message"),
    [([[1.0], [2.0]], "system", "one number per system"), ([[1, 2], [3, 1]], "segment", "systems")],
)
def test_it_needs_systems_and_segments(ratings: list[object], level: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        correlate_panel(make_panel(ratings, ratings), level=level, method="soft_accuracy")  # type: ignore[arg-type]  # parametrized


def test_p_values_of_simulated_systems_are_those_of_a_normal_test() -> None:
    """With many segments, exchanging outputs is a z-test of the mean difference."""
    from scipy.stats import norm

    rng = np.random.default_rng(4)
    scores = rng.normal(size=(4, 400)) + 0.05 * np.arange(4)[:, None]
    signs = rng.choice([1.0, -1.0], size=(4000, 400))
    found = system_p_values(scores[None], signs)[0]
    for i, j in ((0, 1), (1, 3), (3, 0)):
        d = scores[i] - scores[j]
        wanted = norm.sf(d.sum() / np.sqrt((d**2).sum()))
        assert found[i, j] == pytest.approx(wanted, abs=0.03)


def test_soft_accuracy_of_simulated_metrics_is_that_of_their_true_confidence() -> None:
    """A metric that is sure of every order, beside raters whose p-values are known."""
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(3, 500))
    noise -= noise.mean(1, keepdims=True)
    human = noise + np.array([0.0, 0.05, 1.0])[:, None]
    sure = noise * 1e-3 + np.arange(3)[:, None]
    panel = make_panel([sure], human)
    signs = rng.choice([1.0, -1.0], size=(4000, 500))
    p = system_p_values(human[None], signs)[0]
    wanted = np.mean([1 - p[1, 0], 1 - p[2, 0], 1 - p[2, 1]])
    assert p[1, 0] > 0.1  # the raters are not sure of the first two
    found = correlate_panel(panel, level="system", method="soft_accuracy")[0]
    assert found == pytest.approx(wanted, abs=0.02)
