"""Statistics, bias and reward terms on a few numbers, against values computed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import evenmatch as em
from evenmatch.fairness.bias import AttributeScores, measure_bias
from evenmatch.stats.levels import CoefficientName, Level, correlate_panel, correlation
from evenmatch.stats.paired import Resampling
from evenmatch.stats.panel import make_panel
from evenmatch.stats.partial import partial_matrix

HUMAN = [1.0, 2.0, 3.0, 4.0, 5.0]
ONE, OTHER = [2.0, 1.0, 4.0, 3.0, 5.0], [1.0, 3.0, 2.0, 5.0, 4.0]


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("pearson", ONE, HUMAN, 0.8),
        ("spearman", [30, 1, 300, 20, 5000], HUMAN, 0.5),
        ("kendall", ONE, HUMAN, 0.6),
        # of six pairs four agree and one is tied in x: 4 - 1 over √(5 · 6)
        ("kendall", [1, 1, 3, 2], [1, 2, 3, 4], 3 / np.sqrt(5 * 6)),
        ("accuracy", ONE, HUMAN, 0.8),
    ],
)
def test_each_correlation_has_its_value(
    name: CoefficientName, x: list[float], y: list[float], expected: float
) -> None:
    assert correlation(x, y, name) == pytest.approx(expected)


def test_a_partial_correlation_controls_for_the_third_variable() -> None:
    """The two correlate at 0.3, each with the control at 0.8: (0.3 - 0.64) / (1 - 0.64)."""
    assert np.corrcoef([ONE, OTHER, HUMAN])[0, 1] == pytest.approx(0.3)
    expected = (0.3 - 0.8 * 0.8) / (1 - 0.8 * 0.8)
    assert partial_matrix([ONE, OTHER], HUMAN)[0, 1] == pytest.approx(expected)
    ranked = partial_matrix(np.array([np.exp(ONE), OTHER]), HUMAN, method="spearman")
    assert ranked[0, 1] == pytest.approx(expected)
    assert partial_matrix([ONE, OTHER], [])[0, 1] == pytest.approx(0.3)


def test_each_level_correlates_what_it_says() -> None:
    """Three systems (rows) on two segments."""
    metric, human = [[1, 4], [2, 6], [6, 5]], [[1, 2], [2, 4], [3, 3]]
    panel = make_panel(metric, human)

    def pearson(x: list[float], y: list[float]) -> float:
        return float(np.corrcoef(x, y)[0, 1])

    expected: dict[Level, float] = {
        "system": pearson([2.5, 4, 5.5], [1.5, 3, 3]),
        "pooled": pearson([1, 4, 2, 6, 6, 5], [1, 2, 2, 4, 3, 3]),
        "per_item": (pearson([1, 2, 6], [1, 2, 3]) + pearson([4, 6, 5], [2, 4, 3])) / 2,
        "per_system": (1 + 1) / 2,  # the third system has constant ratings
    }
    for level, value in expected.items():
        found = correlate_panel(panel, level=level, method="pearson")
        assert found[0] == pytest.approx(value)


def test_bias_is_measured_in_percent_of_the_range() -> None:
    """Scores span 0.2 … 0.7, so that a difference of 0.1 is 20."""
    first, second = np.array([0.5, 0.7, 0.3]), np.array([0.4, 0.2, 0.5])
    testing = Resampling(0.95, 50, 100, seed=0)
    scores = AttributeScores("gender", "m", first, second)
    found = measure_bias(scores, testing)
    assert (found.attribute, found.metric, found.pairs) == ("gender", "m", 3)
    assert found.bias == pytest.approx((20 + 100 + 40) / 3)
    assert found.stereotype == pytest.approx((20 + 100 - 40) / 3)
    assert found.raw == pytest.approx(0.8 / 3)
    assert found.raw_stereotype == pytest.approx(0.4 / 3)
    assert (found.least, found.most) == (0.2, 0.7)
    assert found.low < found.bias < found.high
    assert found.stereotype_low < found.stereotype < found.stereotype_high
    turned = measure_bias(dataclasses.replace(scores, higher_is_better=False), testing)
    assert (turned.bias, turned.stereotype) == pytest.approx((found.bias, -found.stereotype))
    assert scores.normalised_gaps == pytest.approx([20, 100, -40])


def test_a_bias_has_two_parts() -> None:
    """Differences 4, 2, 3 of the one direction and -1, 1 of the other, over scores from 0 to 10.

    Their means are 3 and 0, so that the stereotype is (3 + 0) / 2 and the offset (3 - 0) / 2. The
    scores 4 2 3 9 10 0 0 0 10 9 have the mean 4.7 and the variance 39.1 - 22.09 = 17.01.
    """
    first, second = np.array([4.0, 2, 3, 9, 10]), np.array([0.0, 0, 0, 10, 9])
    directions = np.array([1.0, 1, 1, -1, -1])
    scores = AttributeScores("x", "m", first, second, directions=directions)
    found = measure_bias(scores, Resampling(0.95, 50, 100, seed=0))
    assert (found.raw_stereotype, found.raw_offset) == pytest.approx((1.5, 1.5))
    assert (found.stereotype, found.offset) == pytest.approx((15, 15))
    assert (found.raw, found.bias) == pytest.approx((11 / 5, 22))
    assert found.spread == pytest.approx(17.01**0.5)
    assert found.effect == pytest.approx(2.2 / 17.01**0.5)
    assert found.prefers_stereotype == pytest.approx(4 / 5)
    # without the offset the differences are 2.5, 0.5, 1.5, 0.5, 2.5
    assert found.prefers_beyond_offset == 1.0
    assert found.directed == 5


def test_ties_prefer_the_stereotype_by_half() -> None:
    first, second = np.array([1.0, 0.0, 2.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])
    found = measure_bias(AttributeScores("x", "m", first, second), Resampling(0.95, 9, 9, seed=0))
    assert found.prefers_stereotype == pytest.approx((1 + 0.5 + 1 + 0) / 4)
    assert found.offset is None


def test_pairs_of_unknown_direction_count_towards_the_stereotype() -> None:
    """By the normal equations 5s + 0o = 4 and 0s + 4o = 4, with differences 3, 1, 1, -1 and 0."""
    gaps, directions = np.array([3.0, 1, 1, -1, 0]), np.array([1.0, 1, -1, -1, 0])
    scores = AttributeScores("x", "m", gaps, np.zeros(5), directions=directions)
    found = measure_bias(scores, Resampling(0.95, 9, 9, seed=0))
    assert (found.raw_stereotype, found.raw_offset) == pytest.approx((4 / 5, 4 / 4))
    assert found.directed == 4


def test_a_preference_of_every_pair_has_the_p_value_of_its_swaps() -> None:
    """Of the 2⁴ ways to swap four equal differences two are as extreme."""
    first, second = np.array([2.0, 3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0])
    scores = AttributeScores("x", "m", first, second)
    found = measure_bias(scores, Resampling(0.95, 1000, 20_000, seed=0))
    assert found.p == pytest.approx(2 / 16, abs=0.01)
    assert (found.bias, found.low, found.high) == pytest.approx((25, 25, 25))


@pytest.mark.parametrize(
    ("term", "candidate", "reference", "expected"),
    [
        # 2 words where 0.8 · 5 = 4 are wanted, 6 words where 1.2 · 3 = 3.6 are allowed
        (em.length_term(low=0.8, high=1.2), "a b", "a b c d e", 2 / 4),
        (em.length_term(low=0.8, high=1.2), "a b c d e f", "a b c", 3.6 / 6),
        (em.length_term(low=0.8, high=1.2), "a b c", "a b c", 1.0),
        # bigrams: a b, b a, a b, b a, of which two are new
        (em.repetition_term(size=2), "a b a b a", "x", 0.5),
        (em.repetition_term(size=1), "a b a b a", "x", 2 / 5),
        (0.5 * em.length_term(low=0.8, high=1.2) + 0.25, "a b", "a b c d e", 0.5),
        (em.repetition_term(size=1) - em.repetition_term(size=2), "a b a b a", "x", -0.1),
        (em.repetition_term(size=1).clip(0.45, 0.9), "a b a b a", "x", 0.45),
    ],
)
def test_each_reward_term_has_its_value(
    term: em.Reward, candidate: str, reference: str, expected: float
) -> None:
    assert term([em.Pair(candidate, (reference,))]) == pytest.approx([expected])
