"""Statistics, bias and reward terms on a few numbers, against values computed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

import evenmatch as em
from evenmatch.fairness.bias import AttributeScores, measure_bias
from evenmatch.stats.bootstrap import effect_size, probability_of_superiority
from evenmatch.stats.levels import CoefficientName, Level, correlate_panel, correlation
from evenmatch.stats.p_values import rank_clusters
from evenmatch.stats.paired import Resampling, williams_test
from evenmatch.stats.panel import find_outliers, make_panel
from evenmatch.stats.partial import partial_matrix
from evenmatch.stats.permutation import Swap, _swap_masks, permutation_matrix

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
        # at most three different values: 2 · 3 over 4² · (3 - 1) / 3
        ("kendall_c", [1, 1, 3, 2], [1, 2, 3, 4], 6 / (16 * 2 / 3)),
        ("accuracy", ONE, HUMAN, 0.8),
        ("accuracy", [1, 1, 2], [3, 3, 4], 1),  # a tie of both is agreement
        # of six pairs one is tied in x, another in y, and one is in the wrong order
        ("accuracy", [1, 1, 3, 2], [1, 2, 2, 3], 3 / 6),
        ("untied_accuracy", [1, 1, 3, 2], [1, 2, 2, 3], 3 / 5),
        # ranks 1.5, 1.5, 4, 3 and 1, 2.5, 2.5, 4
        ("spearman", [1, 1, 3, 2], [1, 2, 2, 3], 2.25 / 4.5),
    ],
)
def test_each_correlation_has_its_value(
    name: CoefficientName, x: list[float], y: list[float], expected: float
) -> None:
    assert correlation(x, y, name) == pytest.approx(expected)


def test_soft_accuracy_compares_p_values() -> None:
    """Of the four exchanges of two segments none exceeds the humans' difference of 2.

    One equals it and counts half: 1/8. By the metric, with differences 1 and -1/2, one exceeds 1/2
    and one equals it: 3/8.
    """
    panel = make_panel([[1.0, 0.0], [0.0, 0.5]], [[1.0, 1.0], [0.0, 0.0]])
    found = correlate_panel(panel, level="system", method="soft_accuracy")
    assert found == pytest.approx([1 - (3 / 8 - 1 / 8)])


def test_calibrated_accuracy_ties_what_is_nearly_equal() -> None:
    """Humans tie the first two. If scores up to 0.1 apart are ties, all pairs are right."""
    panel = make_panel([[0.1], [0.2], [0.5]], [[1.0], [1.0], [2.0]])
    for level in ("per_item", "segment"):
        found = correlate_panel(panel, level=level, method="calibrated_accuracy")
        assert found == pytest.approx([1])
    wrong = make_panel([[0.1], [0.2], [0.15]], [[1.0], [1.0], [2.0]])
    # no ties: 1/3 right; ties up to 0.05: also 1 of 3; ties up to 0.1: the tied pair alone
    found = correlate_panel(wrong, level="per_item", method="calibrated_accuracy")
    assert found == pytest.approx([1 / 3])


@pytest.mark.parametrize(("n", "between"), [(100, 0.5), (8, 0.9), (4, -0.2)])
def test_williams_test_follows_its_formula(n: int, between: float) -> None:
    """Graham & Baldwin (2014, equation 1)."""
    one, other = 0.6, 0.4
    k = 1 - one**2 - other**2 - between**2 + 2 * one * other * between
    below = 2 * k * (n - 1) / (n - 3) + (one + other) ** 2 / 4 * (1 - between) ** 3
    t = (one - other) * np.sqrt((n - 1) * (1 + between) / below)
    assert williams_test(one, other, between, n=n) == pytest.approx(stats.t.sf(t, n - 3))
    assert williams_test(other, one, between, n=n) == pytest.approx(stats.t.cdf(t, n - 3))


def test_effects_of_two_groups() -> None:
    """Variances 8/3 and 2; of nine pairs seven are higher and one is tied."""
    higher, lower = np.array([2.0, 4.0, 6.0]), np.array([1.0, 1.0, 4.0])
    effect = effect_size(higher, lower)
    assert effect(np.ones((1, 3))) == pytest.approx([2 / np.sqrt((8 / 3 + 2) / 2)])
    assert effect(np.array([[2.0, 1.0, 0.0]])) == pytest.approx([(8 / 3 - 1) / np.sqrt(4 / 9)])
    assert probability_of_superiority(higher, lower) == pytest.approx(7.5 / 9)


def test_an_outlier_is_far_from_the_median_on_either_side() -> None:
    """The median is 3, and the median distance from it 1."""
    assert find_outliers([-3, 2, 3, 4, 9]).tolist() == [True, False, False, False, True]
    assert not find_outliers([0, 2, 3, 4, 3]).any()  # 3 / 1.483 is below 2.5
    assert find_outliers([0, 2, 3, 4, 3], cutoff=2.0).tolist() == [True, *[False] * 4]


def test_a_cluster_ends_where_any_of_its_metrics_is_better() -> None:
    p = np.full((4, 4), 0.5)
    p[0, 2] = 0.01
    assert rank_clusters([0.9, 0.8, 0.7, 0.6], p) == (1, 1, 2, 2)
    assert rank_clusters([0.9, 0.8, 0.7, 0.6], p, alpha=0.005) == (1, 1, 1, 1)


@pytest.mark.parametrize("swap", ["both", "systems"])
@pytest.mark.parametrize(
    ("level", "method"),
    [
        ("system", "pearson"),
        ("system", "kendall"),
        ("per_item", "pearson"),
        ("segment", "spearman"),
    ],
)
def test_permutation_tests_swap_standardised_scores(
    level: Level, method: CoefficientName, swap: Swap
) -> None:
    """Two metrics of different scales, by a loop over the same swaps."""
    draw = np.random.default_rng(5)
    human = draw.normal(size=(5, 4))
    scores = np.stack([human + draw.normal(size=(5, 4)), 9 + 50 * draw.normal(size=(5, 4))])
    z = (scores - scores.mean((1, 2), keepdims=True)) / scores.std((1, 2), keepdims=True)

    def difference(one: np.ndarray, other: np.ndarray) -> float:
        found = correlate_panel(make_panel([one, other], human), level=level, method=method)
        return float(found[0] - found[1])

    masks = np.concatenate([*_swap_masks((5, 4), swap, 60, 3)])
    drawn = np.array([difference(np.where(m, z[1], z[0]), np.where(m, z[0], z[1])) for m in masks])
    found = permutation_matrix(
        make_panel(scores, human), level=level, method=method, swap=swap, resamples=60, seed=3
    )
    for p, sign in ((found[0, 1], 1), (found[1, 0], -1)):
        extreme = (sign * drawn >= sign * difference(*z) - 1e-9).sum()
        assert p == pytest.approx((1 + extreme) / 61)


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
        "segment": pearson([1, 4, 2, 6, 6, 5], [1, 2, 2, 4, 3, 3]),
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
