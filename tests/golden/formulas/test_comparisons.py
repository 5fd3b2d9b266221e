"""Tests and intervals of few numbers, against SciPy and against values computed by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

import evenmatch as em
from evenmatch.stats.bootstrap import (
    bootstrap_counts,
    bootstrap_interval,
    mean_difference,
    name_bounds,
)
from evenmatch.stats.p_values import holm, p_value
from evenmatch.stats.paired import (
    ResampledScore,
    bootstrap_p_value,
    minimum_detectable_difference,
    paired_t_test,
    randomisation_p_value,
    resample_scores,
    swapped_differences,
)
from evenmatch.training.rewards import as_reward


@dataclasses.dataclass(frozen=True)
class Refusing:
    """Words, but an error for the text 'refused'."""

    def __call__(self, text: str) -> em.Units:
        if text == "refused":
            raise em.InputError("refused")
        return em.Words()(text)


FIRST, SECOND = [0.4, 0.9, 0.5, 0.7, 0.2], [0.3, 0.5, 0.6, 0.4, 0.1]


def test_the_paired_t_test_is_scipys() -> None:
    differences = np.subtract(FIRST, SECOND).tolist()
    assert paired_t_test(differences) == pytest.approx(stats.ttest_rel(FIRST, SECOND).pvalue)
    turned = [-each for each in differences]
    assert paired_t_test(turned) == pytest.approx(stats.ttest_rel(FIRST, SECOND).pvalue)
    two = [0.4, 0.1]
    assert paired_t_test(two) == pytest.approx(stats.ttest_1samp(two, 0).pvalue)
    assert paired_t_test([0.4]) == paired_t_test([0.5, 0.5]) == 1.0


@pytest.mark.parametrize(
    ("pairs", "power", "level"), [(3, 0.8, 0.05), (10, 0.8, 0.05), (6, 0.6, 0.01)]
)
def test_the_minimum_detectable_difference_has_the_power_asked_for(
    pairs: int, power: float, level: float
) -> None:
    """The power of a paired t-test is that of SciPy's noncentral t distribution."""
    found = minimum_detectable_difference(2.0, pairs, power=power, level=level) / 2.0
    bound, shift = stats.t.ppf(1 - level / 2, pairs - 1), found * math.sqrt(pairs)
    reached = stats.nct.sf(bound, pairs - 1, shift) + stats.nct.cdf(-bound, pairs - 1, shift)
    assert reached == pytest.approx(power, abs=2e-4)


def test_by_default_the_power_is_80_percent_at_the_5_percent_level() -> None:
    asked = minimum_detectable_difference(1.0, 4, power=0.8, level=0.05)
    assert minimum_detectable_difference(1.0, 4) == asked


@pytest.mark.parametrize(
    ("confidence", "names"),
    [(0.95, ("2.5%", "97.5%")), (0.9, ("5%", "95%")), (0.99, ("0.5%", "99.5%"))],
)
def test_bounds_are_named_by_percentile(confidence: float, names: tuple[str, str]) -> None:
    assert name_bounds(confidence) == names


def test_bootstrap_weights_count_the_items_that_were_drawn() -> None:
    drawn = np.random.default_rng(3).integers(4, size=(5, 4))
    counts = [[row.count(item) for item in range(4)] for row in drawn.tolist()]
    assert bootstrap_counts(4, 5, np.random.default_rng(3)).tolist() == counts


def test_an_interval_of_a_mean_difference_is_its_percentiles() -> None:
    x, y = np.array(FIRST), np.array(SECOND)
    found = bootstrap_interval(mean_difference(x, y), 5, confidence=0.8, resamples=300, seed=2)
    drawn = np.random.default_rng(2).integers(5, size=(300, 5))
    means = (x - y)[drawn].mean(1)
    assert found.value == pytest.approx(np.mean(x - y))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.1, 0.9])))


def test_swaps_exchange_two_systems_documents() -> None:
    """Scores are ratios of two sums, computed document by document for each swap."""
    one = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
    two = np.array([[2.0, 3.0], [1.0, 1.0], [5.0, 6.0]])

    def ratio(totals: np.ndarray) -> np.ndarray:
        return np.asarray(totals[..., 0] / totals[..., 1])

    both = {"one": one, "two": two}
    found = resample_scores(both, dict.fromkeys(both, ratio), resamples=20, trials=30, seed=4)
    assert (found["one"].value, found["two"].value) == pytest.approx((4 / 7, 8 / 10))
    swapped = np.random.default_rng(4).integers(2, size=(30, 3), dtype=np.uint8).astype(bool)
    expected = [
        ratio(np.where(mask[:, None], one, two).sum(0))
        - ratio(np.where(mask[:, None], two, one).sum(0))
        for mask in swapped
    ]
    assert swapped_differences(found["one"], found["two"]) == pytest.approx(np.array(expected))
    drawn = np.random.default_rng(4).integers(3, size=(20, 3))
    for rows, name in ((one, "one"), (two, "two")):
        assert found[name].resamples == pytest.approx(ratio(rows[drawn].sum(1)))


def test_a_p_value_counts_draws_as_extreme_as_the_observed_one() -> None:
    draws = np.array([-2.0, 0.0, 1.0, 1.5, np.nan])
    assert p_value(draws, 1.0, "greater") == (1 + 2) / 5
    assert p_value(draws, 1.0, "two-sided") == (1 + 3) / 5
    assert p_value(-draws, -1.0, "greater") == (1 + 3) / 5
    assert p_value(draws, 9.0, "two-sided") == 1 / 5
    assert math.isnan(p_value(draws, np.nan, "greater"))
    assert math.isnan(p_value(draws[4:], 1.0, "greater"))


def test_holm_multiplies_by_the_number_of_tests_that_are_left() -> None:
    adjusted = holm([[0.01, 0.04, 0.03], [np.nan, 0.5, 0.6]])
    assert adjusted == pytest.approx(
        np.array([[0.05, 0.12, 0.12], [np.nan, 1.0, 1.0]]), nan_ok=True
    )
    assert holm([0.02, 0.3]).tolist() == pytest.approx([0.04, 0.3])


def test_p_values_of_a_difference_are_two_sided() -> None:
    """The difference is 2. Centred, the bootstrap gives 3, -2, 1 and -3; swaps give -2, 2, -2, -1.

    Of both, three are at least as far from 0.
    """

    def first(totals: np.ndarray) -> np.ndarray:
        return np.asarray(totals[..., 0])

    def resampled(value: float, resamples: list[float], swapped: list[float]) -> ResampledScore:
        sums = np.array(swapped)[:, None]
        return ResampledScore(value, np.array(resamples), np.array([value]), sums, first)

    one = resampled(3, [8, 1, 5, 2], [0, 3, 1, 1])
    two = resampled(1, [3, 1, 2, 3], [0, 1, 1, 0.5])
    assert swapped_differences(one, two).tolist() == [-2, 2, -2, -1]
    assert randomisation_p_value(one, two) == (1 + 3) / 5
    assert bootstrap_p_value(one, two) == bootstrap_p_value(two, one) == (1 + 3) / 5


def test_rewards_add_up_from_either_side() -> None:
    """Of four words two are new, of three bigrams all."""
    term = em.repetition_term(size=1)
    pair = [em.Pair("a a b b", ("a",))]
    assert term(pair) == [0.5]
    assert (0.25 + term)(pair) == (term + 0.25)(pair) == [0.75]
    assert (1 - term)(pair) == [0.5]
    assert (term - 0.125)(pair) == [0.375]
    assert (term * 3 - term)(pair) == (3 * term - term)(pair) == [1.0]
    assert (term + term + em.repetition_term(size=2))(pair) == [2.0]


@pytest.mark.parametrize(
    ("candidate", "references", "value"),
    [
        ("a b c d", ("a b c d e",), 1),  # 0.8 times as long
        ("a b", ("a b c d e",), 2 / 4),
        ("a b c d e", ("a b c d",), 1),  # 1.25 times as long
        ("a b c d e f g h i j", ("a b c d",), 5 / 10),
        ("a b", ("a b c d e", "a b", "a"), 1),
        ("a b c d e", ("a", "a b c d e f g h i j"), 5 / 8),
    ],
)
def test_a_length_is_compared_with_the_nearest_one(
    candidate: str, references: tuple[str, ...], value: float
) -> None:
    assert em.length_term()([em.Pair(candidate, references)]) == pytest.approx([value])


@dataclasses.dataclass(frozen=True)
class Flagging:
    """A metric that scores every text 0.9, with the candidate as its flag."""

    higher_is_better = True
    bounds = (0.0, 1.0)
    signature = "flagging"

    def __call__(self, pairs: Sequence[em.Pair]) -> em.Scores:
        return em.Scores(
            tuple(em.Score(0.9, flags=frozenset({p.candidate})) for p in pairs), self.signature
        )


def test_texts_without_words_or_without_known_ones_get_no_reward() -> None:
    flags = ("empty_candidate", "empty_reference", "unknown_only", "truncated", "no_match")
    found = em.reward(Flagging()).evaluate([em.Pair(flag, ("a",)) for flag in flags])
    assert found.values == pytest.approx((0, 0, 0, 0.9, 0.9))
    assert found.odd == (0, 1, 2)


@pytest.mark.parametrize(
    ("value", "bounds", "expected"),
    [
        (0.6, (0.0, 1.0), 0.6),
        (0.6, (-1.0, 1.0), 0.6),  # negative cosines count as 0
        (-0.6, (-1.0, 1.0), 0.0),
        (30.0, (20.0, 60.0), 0.25),
        (-3.0, (-4.0, 0.0), 0.25),
        (-2.0, (-math.inf, 0.0), 1 / (1 + math.exp(2))),  # bounds do not make a log-probability
        (1.0, (-math.inf, 3.0), 1 / (1 + math.exp(-1))),
        (4.0, (1.0, math.inf), 3 / 4),
        (0.0, (1.0, math.inf), 0.0),
        (3.0, (-math.inf, math.inf), 1 / (1 + math.exp(-3))),
    ],
)
def test_a_score_becomes_a_reward_from_0_to_1(
    value: float, bounds: tuple[float, float], expected: float
) -> None:
    assert as_reward(value, bounds, True) == pytest.approx(expected)
    assert as_reward(value, bounds, False) == pytest.approx(1 - expected)


def test_a_log_probability_becomes_a_probability() -> None:
    bounds = (-math.inf, 0.0)
    assert as_reward(-2.0, bounds, True, log_probability=True) == pytest.approx(math.exp(-2))
    assert as_reward(0.5, bounds, True, log_probability=True) == 1.0  # a rounding error above 0


def test_a_text_that_a_metric_refuses_counts_as_0_and_others_keep_their_reward() -> None:
    metric = em.AlignMetric(vectors=em.Hashed(), units=Refusing())
    found = em.reward(metric).evaluate(
        [em.Pair("a", ("a",)), em.Pair("refused", ("a",)), em.Pair("a \ud800", ("a ?",))]
    )
    assert found.values == pytest.approx((1.0, 0.0, 1.0))
    assert found.odd == (1,)
