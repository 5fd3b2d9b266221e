from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from evenmatch.errors import InputError, UnknownNameError
from evenmatch.stats.correlation import ranks
from evenmatch.stats.levels import CoefficientName, correlation, prepare_coefficient
from evenmatch.stats.panel import Floats
from tests.support.numbers import NAMES, plain, two_lists

RANK_NAMES = ("spearman", "kendall", "kendall_c", "accuracy")


@pytest.mark.parametrize("name", NAMES)
@given(lists=two_lists())
def test_a_coefficient_equals_scipys_with_ties(
    name: CoefficientName, lists: tuple[Floats, Floats]
) -> None:
    expected = plain(name)(*lists)
    assert_allclose(correlation(*lists, name), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@given(lists=two_lists(ties=False))
def test_a_coefficient_equals_scipys_without_ties(
    name: CoefficientName, lists: tuple[Floats, Floats]
) -> None:
    assert_allclose(correlation(*lists, name), plain(name)(*lists), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["kendall", "kendall_c"])
def test_kendall_of_a_long_list_equals_scipys(name: CoefficientName) -> None:
    random = np.random.default_rng(0)
    x, y = random.integers(0, 50, (2, 6000)) * 1.0
    assert_allclose(correlation(x, y, name), plain(name)(x, y), rtol=1e-12)


@pytest.mark.parametrize("name", RANK_NAMES)
@given(lists=two_lists())
def test_a_rank_coefficient_sees_order_only(
    name: CoefficientName, lists: tuple[Floats, Floats]
) -> None:
    x, y = lists
    assert_allclose(correlation(np.exp(x), y**3, name), correlation(x, y, name))


@given(lists=two_lists(ties=False), shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3))
def test_pearson_does_not_see_shift_or_scale(
    lists: tuple[Floats, Floats], shift: float, scale: float
) -> None:
    x, y = lists
    moved = correlation(x * scale + shift, y, "pearson")
    assert_allclose(moved, correlation(x, y, "pearson"), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@given(lists=two_lists())
def test_a_coefficient_is_symmetric(name: CoefficientName, lists: tuple[Floats, Floats]) -> None:
    x, y = lists
    assert_allclose(correlation(x, y, name), correlation(y, x, name), atol=1e-14)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall", "kendall_c"])
@given(lists=two_lists())
def test_turning_one_list_round_turns_the_sign(
    name: CoefficientName, lists: tuple[Floats, Floats]
) -> None:
    x, y = lists
    assert_allclose(correlation(-x, y, name), -correlation(x, y, name), atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@given(lists=two_lists())
def test_a_coefficient_stays_in_its_bounds(
    name: CoefficientName, lists: tuple[Floats, Floats]
) -> None:
    value = float(correlation(*lists, name))
    assert np.isnan(value) or (0 if name == "accuracy" else -1) <= value <= 1


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_a_list_with_itself_is_one(name: CoefficientName) -> None:
    x = np.random.default_rng(1).normal(size=50)
    assert_allclose(correlation(x, x, name), 1.0, rtol=1e-15)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall", "kendall_c"])
@pytest.mark.parametrize("x", [[0.1] * 5, [1e300] * 5, [1, np.nan, np.nan, np.nan, np.nan]])
def test_a_constant_list_gives_nan(name: CoefficientName, x: list[float]) -> None:
    assert np.isnan(correlation(x, [1, 2, 3, 4, 5], name))


def test_a_constant_metric_orders_no_pair_correctly() -> None:
    assert correlation([2, 2, 2], [1, 2, 3], "accuracy") == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_points_give_nan(name: CoefficientName, n: int) -> None:
    assert np.isnan(correlation(np.ones(n), np.ones(n), name))


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_number_takes_its_partner_out(name: CoefficientName) -> None:
    x, y = [1, 2, np.nan, 4, 5, 7], [2, 1, 9, np.nan, 3, 4]
    assert_allclose(correlation(x, y, name), plain(name)([1, 2, 5, 7], [2, 1, 3, 4]))


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_correlated_one_by_one(name: CoefficientName) -> None:
    random = np.random.default_rng(2)
    x, y = random.integers(0, 5, (2, 3, 4, 9)) * 1.0
    x[0, 1, :3] = np.nan
    found = correlation(x, y, name)
    assert found.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        assert_allclose(found[i, j], plain(name)(x[i, j], y[i, j]), atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-300, 1.4e308])
def test_huge_and_tiny_numbers_neither_overflow_nor_vanish(
    name: CoefficientName, scale: float
) -> None:
    x, y = np.array([1.0, -1.2, 0.3, 0.9]), np.array([2.0, 1.0, 0.0, 5.0])
    assert_allclose(correlation(x * scale, y, name), plain(name)(x, y), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(lists=two_lists(), seed=st.integers(0, 1000))
def test_weights_are_copies(name: CoefficientName, lists: tuple[Floats, Floats], seed: int) -> None:
    x, y = lists
    counts = np.random.default_rng(seed).integers(0, 4, (3, len(x)))
    found = prepare_coefficient(x[None, None], y[None, None], name)(counts[None].astype(float))
    for weights, value in zip(counts, found[0, :, 0], strict=True):
        a, b = np.repeat(x, weights), np.repeat(y, weights)
        expected = _distinct_pairs(x, y, weights) if name == "accuracy" else plain(name)(a, b)
        assert_allclose(value, expected, rtol=1e-10, atol=1e-12)


def _distinct_pairs(x: Floats, y: Floats, weights: Floats) -> float:
    """Accuracy over copies, where copies of one point make no pair."""
    right = total = 0.0
    for i in range(len(x)):
        for j in range(i):
            alike = np.sign(x[i] - x[j]) == np.sign(y[i] - y[j])
            right += weights[i] * weights[j] * alike
            total += weights[i] * weights[j]
    return right / total if total else float("nan")


@pytest.mark.parametrize("variant", ["kendall", "kendall_c"])
def test_weights_of_a_long_list_are_copies(variant: CoefficientName) -> None:
    random = np.random.default_rng(3)
    x, y = random.integers(0, 40, (2, 4500)) * 1.0
    counts = random.integers(0, 3, 4500)
    found = prepare_coefficient(x[None, None], y[None, None], variant)(
        counts[None, None].astype(float)
    )
    expected = plain(variant)(np.repeat(x, counts), np.repeat(y, counts))
    assert_allclose(found[0, 0, 0], expected, rtol=1e-10)


@given(lists=two_lists())
def test_ranks_equal_scipys(lists: tuple[Floats, Floats]) -> None:
    assert_allclose(ranks(lists[0]), stats.rankdata(lists[0]))


def test_what_is_missing_has_no_rank() -> None:
    assert_allclose(ranks([3, np.nan, 1, 3]), [2.5, np.nan, 1, 2.5])


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="no correlation is called 'pearsson'; known: pears"):
        correlation([1, 2], [1, 2], "pearsson")  # type: ignore[arg-type]  # the point of the test


def test_lists_of_two_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=r"x has shape \(2,\) and y \(3,\); give as many numbers"):
        correlation([1, 2], [1, 2, 3], "pearson")


def test_infinite_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="x has 1 infinite values; give finite numbers, NaN where"):
        correlation([1, np.inf], [1, 2], "pearson")


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="y is not an array of numbers; give rows of equal length"):
        correlation([1, 2], ["one", "two"], "pearson")
