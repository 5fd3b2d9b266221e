from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import ArrayLike
from scipy import stats

from evenmatch.errors import InputError
from evenmatch.stats.panel import Floats
from evenmatch.stats.partial import PartialMethod, partial_matrix


def numbers(seed: int, rows: int, points: int = 30) -> Floats:
    """Correlated rows."""
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, points)) + random.normal(size=points)


def partial_correlation(
    x: Floats, y: Floats, controls: ArrayLike, *, method: PartialMethod = "pearson"
) -> float:
    """The partial correlation of two rows."""
    return float(partial_matrix([x, y], controls, method=method)[0, 1])


@given(st.integers(0, 10_000))
def test_one_control_follows_the_textbook_formula(seed: int) -> None:
    x, y, z = numbers(seed, 3)
    r = np.corrcoef([x, y, z])
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert partial_correlation(x, y, z) == pytest.approx(expected)


@pytest.mark.parametrize("controls", [1, 3])
def test_it_is_the_correlation_of_regression_residuals(controls: int) -> None:
    x, y, *given_ = numbers(1, 2 + controls)
    design = np.column_stack([np.ones(30), *given_])
    left = [v - design @ np.linalg.solve(design.T @ design, design.T @ v) for v in (x, y)]
    assert partial_correlation(x, y, given_) == pytest.approx(np.corrcoef(left)[0, 1])


def test_spearman_is_the_same_of_ranks() -> None:
    x, y, z = numbers(2, 3)
    expected = partial_correlation(*(stats.rankdata(v) for v in (x, y, z)))
    assert partial_correlation(np.exp(x), y, z**3, method="spearman") == pytest.approx(expected)


def test_without_controls_it_is_plain() -> None:
    x = numbers(3, 4)
    assert_allclose(partial_matrix(x, []), np.corrcoef(x))


def test_the_matrix_holds_every_pair() -> None:
    *variables, control = numbers(4, 4)
    found = partial_matrix(variables, control)
    assert_allclose(found, found.T)
    assert_allclose(np.diag(found), 1)
    expected = partial_correlation(variables[0], variables[2], control)
    assert found[0, 2] == pytest.approx(expected)


def test_correlation_through_a_third_variable_vanishes_given_it() -> None:
    random = np.random.default_rng(6)
    human = random.normal(size=20_000)
    x, y = human + random.normal(size=(2, 20_000))
    assert np.corrcoef(x, y)[0, 1] > 0.45
    assert abs(partial_correlation(x, y, human)) < 0.03


def test_units_of_a_control_do_not_matter() -> None:
    x, y, z = numbers(7, 3)
    moved = partial_correlation(x, y, 1e6 * z + 1e9)
    assert moved == pytest.approx(partial_correlation(x, y, z), abs=1e-6)


def test_points_that_miss_a_number_are_left_out() -> None:
    x, y, z = numbers(8, 3)
    expected = partial_correlation(x[1:], y[1:], z[1:])
    z[0] = np.nan
    assert partial_correlation(x, y, z) == pytest.approx(expected)


def test_a_variable_the_controls_explain_has_no_correlation_left() -> None:
    y, z = numbers(9, 2)
    assert np.isnan(partial_correlation(2 * z + 1, y, z))
    assert np.isnan(partial_correlation(np.ones(30), y, z))


def test_rows_of_different_length_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"variables have shape \(2, 3\) and controls \(1, 2\); gi"
    ):
        partial_matrix(np.ones((2, 3)), [1, 2])
