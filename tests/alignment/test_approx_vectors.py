"""Small matrices whose scores can be followed by hand (SPEC of LiSAScore)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given

import evenmatch as em
from evenmatch.scoring.reducers import Prf
from evenmatch.types import Array, Embedded, Score, Units
from tests.support.strategies import similarities

L1 = np.array([[0.9, 0.8, 0.1], [0.85, 0.3, 0.2], [0.2, 0.4, 0.7]])
L2 = np.array([[0.9, 0.8, 0.1, 0.3], [0.85, 0.3, 0.2, 0.1]])
L3 = np.array([[0.9, 0.85], [0.8, 0.3], [0.1, 0.2], [0.3, 0.1]])
L4 = np.full((3, 3), 0.5)
L5 = np.array(
    [[1, 0.95, 0.9, 0.2], [0.97, 0.96, 0.1, 0.2], [0.95, 0.2, 0.3, 0.1], [0.3, 0.2, 0.1, 0.6]]
)
METHODS = ("row_mask", "recursive", "topk", "auction")
LEGACY = "recursive(legacy=True)"


def side(count: int) -> Embedded:
    return Embedded(Units("x"), np.zeros((count, 1)), np.ones(count), np.ones(count))


def scored(similarity: Array, solver: str) -> Score:
    m, n = similarity.shape
    return Prf()(similarity, em.solve(similarity, solver), side(m), side(n))


@pytest.mark.parametrize("solver", ["lsa", *METHODS])
@pytest.mark.parametrize(
    ("similarity", "precision", "recall", "value"),
    [
        (L1, 0.783333, 0.783333, 0.783333),
        (L2, 0.825, 0.4125, 0.55),
        (L3, 0.4125, 0.825, 0.55),
        (L5, 0.8525, 0.8525, 0.8525),
    ],
)
def test_every_method_finds_the_best_of_the_worked_examples(
    solver: str, similarity: Array, precision: float, recall: float, value: float
) -> None:
    score = scored(similarity, solver)
    assert (score.precision, score.recall, score.value) == pytest.approx(
        (precision, recall, value), abs=1e-6
    )


@pytest.mark.parametrize("solver", METHODS)
@pytest.mark.parametrize(
    ("similarity", "pairs"),
    [
        (L1, [(0, 1), (1, 0), (2, 2)]),
        (L2, [(0, 1), (1, 0)]),
        (L3, [(0, 1), (1, 0)]),
        (L5, [(0, 2), (1, 1), (2, 0), (3, 3)]),
    ],
)
def test_the_pairs_of_the_worked_examples(
    solver: str, similarity: Array, pairs: Sequence[tuple[int, int]]
) -> None:
    found = em.solve(similarity, solver)
    assert list(zip(*np.nonzero(found.rows), strict=True)) == pairs
    assert list(zip(*np.nonzero(found.cols), strict=True)) == pairs


@pytest.mark.parametrize(
    ("solver", "precision", "recall", "value"),
    [
        ("lsa", 0.5, 0.5, 0.5),
        ("row_mask", 0.5, 0.5, 0.5),
        ("recursive", 1 / 6, 0.5, 0.25),
        ("auction", 1 / 6, 0.5, 0.25),
        ("topk", 0, 0, 0),
    ],
)
def test_equal_similarities_stop_no_method(
    solver: str, precision: float, recall: float, value: float
) -> None:
    score = scored(L4, solver)
    assert (score.precision, score.recall, score.value) == pytest.approx((precision, recall, value))


@pytest.mark.parametrize(
    ("similarity", "precision", "recall", "value"),
    [
        (L1, 0.533333, 0.8, 0.64),
        (L2, 0.825, 0.4125, 0.55),
        (L3, 0.225, 0.875, 0.357955),
        (L5, 0.64, 0.865, 0.735681),
    ],
)
def test_the_released_step_refines_only_what_has_more_columns_than_rows(
    similarity: Array, precision: float, recall: float, value: float
) -> None:
    score = scored(similarity, LEGACY)
    assert (score.precision, score.recall, score.value) == pytest.approx(
        (precision, recall, value), abs=1e-6
    )


def test_the_released_step_turns_the_matrix_over_with_every_iteration() -> None:
    once = em.solve(L1, "recursive(legacy=True, iterations=1)").cols
    assert once.argmax(0).tolist() == L1.argmin(0).tolist()


def test_the_pairs_of_the_released_step() -> None:
    cols = em.solve(L1, LEGACY).cols
    assert list(zip(*np.nonzero(cols), strict=True)) == [(0, 0), (0, 1), (2, 2)]
    assert em.solve(L1, LEGACY).rows[0].tolist() == [1, 0, 0]


def random_matrices() -> dict[int, Array]:
    random = np.random.default_rng(0)
    return {n: random.uniform(0, 1, (n, n)) for n in (8, 16, 32, 64, 128)}


@pytest.mark.parametrize(
    ("solver", "low", "high", "uncovered"),
    [
        ("row_mask", 0.947, 0.997, 0),
        ("recursive", 0.985, 1.0, 1),
        ("recursive(iterations=7)", 0.982, 1.0, 4),
        ("auction", 0.984, 1.0, 0),
        ("topk", 1.0, 1.03, 17),
    ],
)
def test_shares_of_the_optimum_on_random_matrices(
    solver: str, low: float, high: float, uncovered: int
) -> None:
    """A choice that is no matching can total more than the best matching: topk's does."""
    left = []
    for size, similarity in random_matrices().items():
        found = em.solve(similarity, solver)
        total = (np.maximum(found.rows, found.cols) * similarity).sum()
        share = total / (em.solve(similarity, "lsa").rows * similarity).sum()
        assert low <= share <= high + 1e-9
        left.append(size - int(found.rows.sum()))
    assert max(left) == uncovered


@given(similarity=similarities())
def test_row_mask_pairs_one_to_one_as_many_as_the_shorter_side_has(similarity: Array) -> None:
    found = em.solve(similarity, "row_mask")
    assert found.rows.sum() == min(similarity.shape)
    assert (found.rows == found.cols).all()
    assert (found.rows.sum(1) <= 1).all()
    assert (found.rows.sum(0) <= 1).all()


@given(similarity=similarities())
def test_row_mask_pairs_first_where_waiting_would_cost_most(similarity: Array) -> None:
    """Against the method written out cell by cell, without any of our shortcuts."""
    assert em.solve(similarity, "row_mask").rows.tolist() == row_mask_by_hand(similarity).tolist()


def row_mask_by_hand(similarity: Array) -> Array:
    if similarity.shape[0] < similarity.shape[1]:
        return row_mask_by_hand(similarity.T).T
    cells, plan = similarity - similarity.min(), np.zeros(similarity.shape)
    done: set[int] = set()
    while len(done) < similarity.shape[1]:
        leads = {}
        for line in set(range(similarity.shape[1])) - done:
            ranked = [*sorted(cells[:, line], reverse=True), -1.0]
            leads[line] = ranked[0] - ranked[1]
        line = max(sorted(leads), key=lambda each: leads[each])
        partner = cells[:, line].argmax()
        plan[partner, line] = 1.0
        cells[partner, :] = cells[:, line] = -1.0
        done.add(line)
    return plan


@given(similarity=similarities(low=0.01))
@pytest.mark.parametrize(("solver", "factor"), [("recursive", 0.8), ("auction", 1.0)])
def test_refining_takes_from_each_cell_what_its_rivals_offer(
    solver: str, factor: float, similarity: Array
) -> None:
    """Against the step written out cell by cell, without any of our shortcuts."""
    m, n = similarity.shape
    cells = similarity
    for _ in range(10 if solver == "recursive" else min(m, n)):
        cells = np.array([[_lessened(cells, i, j, factor) for j in range(n)] for i in range(m)])
    found = em.solve(similarity, solver)
    if m >= n:
        assert found.cols.argmax(0).tolist() == cells.argmax(0).tolist()
    else:
        assert found.rows.argmax(1).tolist() == cells.argmax(1).tolist()


def _lessened(cells: Array, i: int, j: int, factor: float) -> float:
    in_row, in_col = np.delete(cells[i], j), np.delete(cells[:, j], i)
    rivals = (max(in_row) if in_row.size else 0.0) + (max(in_col) if in_col.size else 0.0)
    return float(cells[i, j] - rivals / factor)
