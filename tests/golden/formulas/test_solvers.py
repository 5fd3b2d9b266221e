"""Solvers on one matrix of two by three, against plans found by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose

import evenmatch as em
from evenmatch.alignment.transport import normalize_mass, plan_to_shares
from evenmatch.errors import InputError
from evenmatch.types import Array

SIMILARITY = np.array([[0.9, 0.8, 0.1], [0.85, 0.2, 0.3]])
CROSSED = [[0, 1, 0], [1, 0, 0]]  # 0.8 + 0.85, the greatest total of two pairs


@pytest.mark.parametrize(
    ("solver", "rows", "cols"),
    [
        ("greedy", [[1, 0, 0], [1, 0, 0]], [[1, 1, 0], [0, 0, 1]]),
        ("lsa", CROSSED, CROSSED),
        # The second row loses most by its second choice (0.55 against 0.1), and chooses first.
        ("row_mask", CROSSED, CROSSED),
        ("auction", CROSSED, CROSSED),
        ("recursive", CROSSED, CROSSED),
        # Without refinement each row takes its best cell, and the column keeps the better one.
        ("recursive(iterations=0)", [[1, 0, 0], [1, 0, 0]], [[1, 0, 0], [0, 0, 0]]),
        # Without refinement the two highest cells are 0.9 and 0.85.
        ("topk(iterations=0)", [[1, 0, 0], [1, 0, 0]], [[1, 0, 0], [0, 0, 0]]),
        # 0.9 is the highest of its row and of its column.
        ("mutual", [[1, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]),
        ("partial", CROSSED, CROSSED),
        # Only 0.9 and 0.85 are above the price, both in the first column.
        ("partial(price=0.82)", [[1, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]),
        # Thirds of columns: the first row sends 1/6 and 1/3, the second 1/6 and 1/3.
        ("emd", [[1 / 3, 2 / 3, 0], [1 / 3, 0, 2 / 3]], [[0.5, 1, 0], [0.5, 0, 1]]),
    ],
)
def test_each_solver_gives_the_plan_found_by_hand(
    solver: str, rows: Sequence[Sequence[float]], cols: Sequence[Sequence[float]]
) -> None:
    found = em.solve(SIMILARITY, solver)
    assert_allclose(found.rows, rows, atol=1e-12)
    assert_allclose(found.cols, cols, atol=1e-12)


@pytest.mark.parametrize("solver", ["greedy", "lsa", "row_mask", "auction", "emd"])
def test_a_transposed_matrix_has_the_transposed_plan(solver: str) -> None:
    one, other = em.solve(SIMILARITY, solver), em.solve(SIMILARITY.T, solver)
    assert_allclose(one.rows.T, other.cols, atol=1e-12)
    assert_allclose(one.cols.T, other.rows, atol=1e-12)


@pytest.mark.parametrize("solver", ["greedy", "mutual", "lsa", "row_mask", "emd"])
def test_a_constant_added_to_all_similarities_changes_no_plan(solver: str) -> None:
    one, other = em.solve(SIMILARITY, solver), em.solve(SIMILARITY - 3, solver)
    assert_allclose(one.rows, other.rows, atol=1e-12)
    assert_allclose(one.cols, other.cols, atol=1e-12)


def test_partial_transport_leaves_out_what_does_not_gain() -> None:
    """The first row has mass for two columns; 0.5 + 0.4 is more than 0.4 + 0.45."""
    found = em.solve(SIMILARITY, "partial(price=0.4)", row_mass=[2, 1], col_mass=[1, 1, 1])
    assert_allclose(found.rows, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]], atol=1e-12)
    assert_allclose(found.cols, [[1, 1, 0], [0, 0, 0]], atol=1e-12)


@pytest.mark.parametrize(("price", "epsilon"), [(0.5, 0.05), (0.2, 0.3), (1.5, 0.004)])
def test_unbalanced_transport_is_stationary(price: float, epsilon: float) -> None:
    """The derivative of its objective is 0 for every cell of the plan (0.004: in logs)."""
    h, r = np.array([0.75, 0.25]), np.array([0.25, 0.25, 0.5])
    spec = f"unbalanced(price={price}, epsilon={epsilon}, iterations=100000, tolerance=1e-13)"
    found = em.solve(SIMILARITY - 0.5, spec, h, r)
    plan: Array = found.rows * h[:, None]
    assert_allclose(found.cols, plan / r, atol=1e-12)
    assert (plan.sum(1) < h).all()
    left_out = np.log(plan.sum(1) / h)[:, None] + np.log(plan.sum(0) / r)
    smooth = np.log(plan / (h[:, None] * r))
    assert_allclose(price * left_out + epsilon * smooth, SIMILARITY - 1.5, rtol=1e-6)


def test_transport_sends_the_given_masses() -> None:
    """Rows 3/4 and 1/4, columns 1/4, 1/4 and 1/2: the second row serves the third column only."""
    found = em.solve(SIMILARITY, "emd", row_mass=[3, 1], col_mass=[1, 1, 2])
    assert_allclose(found.rows, [[1 / 3, 1 / 3, 1 / 3], [0.0, 0.0, 1.0]], atol=1e-12)
    assert_allclose(found.cols, [[1.0, 1.0, 0.5], [0.0, 0.0, 0.5]], atol=1e-12)
    assert found.exact


def test_a_unit_without_mass_gets_nothing() -> None:
    found = em.solve(SIMILARITY, "emd", row_mass=[1, 0], col_mass=[1, 1, 0])
    assert_allclose(found.rows, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]], atol=1e-12)
    assert_allclose(found.cols, [[1, 1, 0], [0, 0, 0]], atol=1e-12)


def test_masses_are_scaled_to_one_and_zeros_count_equally() -> None:
    assert normalize_mass(np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
    assert normalize_mass(np.zeros(4)).tolist() == [0.25] * 4
    assert normalize_mass(np.zeros(0)).tolist() == []
    with pytest.raises(InputError, match=r"a mass must not be negative, got -1.0"):
        normalize_mass(np.array([2.0, -1.0]))


def test_a_plan_becomes_shares_of_each_side() -> None:
    plan = np.array([[0.1, 0.2], [0.0, 0.7]])
    rows, cols = plan_to_shares(plan.copy(), np.array([0.3, 0.7]), np.array([0.1, 0.9]))
    assert_allclose(rows, [[1 / 3, 2 / 3], [0.0, 1.0]])
    assert_allclose(cols, [[1.0, 2 / 9], [0.0, 7 / 9]])
    rows, cols = plan_to_shares(plan * 0, np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert_allclose(rows, 0)
    assert_allclose(cols, 0)


@pytest.mark.parametrize("epsilon", [0.5, 0.02])
def test_sinkhorn_has_the_closed_form_of_two_by_two(epsilon: float) -> None:
    """With equal masses and s = ((1, 0), (0, 1)) the plan is in proportion to exp(s / epsilon)."""
    found = em.solve(np.eye(2), f"sinkhorn(epsilon={epsilon})")
    own = 1 / (1 + np.exp(-1 / epsilon))
    assert_allclose(found.rows, [[own, 1 - own], [1 - own, own]], atol=1e-6)
    assert not found.exact


@pytest.mark.parametrize("epsilon", [0.3, 0.004])
def test_sinkhorn_keeps_masses_and_odds(epsilon: float) -> None:
    """Its plan has the given sums, and the odds ratios of exp(s / epsilon) (0.004: in logs)."""
    h, r = np.array([0.75, 0.25]), np.array([0.25, 0.25, 0.5])
    s = SIMILARITY if epsilon > 0.1 else SIMILARITY / 10 + np.array([[0, 0, 0.5], [0, 0, 0]])
    found = em.solve(s, f"sinkhorn(epsilon={epsilon}, iterations=20000, tolerance=1e-12)", h, r)
    plan: Array = found.rows * h[:, None]
    assert_allclose(plan.sum(0), r, atol=1e-9)
    assert_allclose(plan.sum(1), h, atol=1e-9)
    assert_allclose(found.cols, plan / r, atol=1e-9)
    with np.errstate(divide="ignore"):
        odds = np.log(plan[0, :-1] * plan[1, 1:] / (plan[0, 1:] * plan[1, :-1]))
    wanted = (s[0, :-1] + s[1, 1:] - s[0, 1:] - s[1, :-1]) / epsilon
    assert_allclose(odds, wanted, rtol=1e-6, atol=1e-6)


def refined(cells: Array, steps: int, factor: float) -> Array:
    """The step of LiSAScore as it is written: minus the best others of row and column."""
    for _ in range(steps):
        before = cells.copy()
        for i, j in np.ndindex(*cells.shape):
            row, col = np.delete(before[i], j), np.delete(before[:, j], i)
            cells[i, j] -= (row.max() + col.max()) / factor
    return cells


HARD = np.array(
    [
        [0.52, 0.61, 0.33, 0.48],
        [0.55, 0.62, 0.41, 0.10],
        [0.30, 0.59, 0.44, 0.47],
    ]
)


@pytest.mark.parametrize(
    ("solver", "steps", "factor"),
    [
        ("recursive", 10, 0.8),
        ("recursive(iterations=1, factor=3.0)", 1, 3.0),
        ("auction", 3, 1.0),
        ("auction(iterations=2, factor=2.0)", 2, 2.0),
    ],
)
def test_refinement_follows_its_definition(solver: str, steps: int, factor: float) -> None:
    cells = refined(HARD.copy(), steps, factor)
    expected = np.zeros(HARD.shape)
    expected[np.arange(3), cells.argmax(1)] = 1  # the shorter side takes its best cells
    assert_allclose(em.solve(HARD, solver).rows, expected)
    assert_allclose(em.solve(HARD.T, solver).cols, expected.T)


@pytest.mark.parametrize(("steps", "factor"), [(10, 10.0), (1, 2.0), (4, 5.0)])
def test_topk_takes_as_many_cells_as_the_shorter_side_has_units(steps: int, factor: float) -> None:
    cells = refined(HARD.copy(), steps, factor)
    chosen = cells >= np.sort(cells, axis=None)[-3]
    offered = np.where(chosen, HARD, 0)
    found = em.solve(HARD, f"topk(iterations={steps}, factor={factor})")
    assert_allclose((found.rows * HARD).sum(1), offered.max(1))
    assert_allclose((found.cols * HARD).sum(0), offered.max(0))


def test_the_released_refinement_is_one_sided_greedy_matching() -> None:
    found = em.solve(HARD.T, "recursive(legacy=True)")
    expected = np.zeros(HARD.T.shape)
    expected[HARD.argmax(1), np.arange(3)] = 1
    assert_allclose(found.cols, expected)
