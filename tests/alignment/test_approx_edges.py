from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.types import Array, Problem
from tests.support.strategies import similarities

METHODS = ("row_mask", "recursive", "topk", "auction")
ALL = pytest.mark.parametrize("solver", METHODS)


@ALL
@given(similarity=similarities(low=0.01))
def test_one_unit_against_many_takes_the_best(solver: str, similarity: Array) -> None:
    for line in (similarity[:1], similarity[:, :1]):
        found = em.solve(line, solver)
        assert (found.rows * line).sum() == (found.cols * line).sum() == line.max()


@ALL
def test_one_unit_against_one_is_a_pair(solver: str) -> None:
    assert em.solve([[0.4]], solver).rows.tolist() == [[1.0]]


@ALL
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_similarities_of_any_size_are_solved(solver: str, value: float) -> None:
    for shape in ((1, 6), (6, 1), (4, 7), (40, 40)):
        found = em.solve(np.full(shape, value), solver)
        assert np.isfinite(found.rows).all()
        assert found.rows.sum() <= min(shape)


def test_repeated_units_do_not_stop_row_mask() -> None:
    """Padding makes blocks of equal similarities, at which the released code stands still."""
    similarity = np.full((12, 9), 0.2)
    similarity[:3, :3] = np.eye(3)
    found = em.solve(similarity, "row_mask")
    assert found.rows.sum() == 9
    assert np.diag(found.rows)[:3].tolist() == [1, 1, 1]


@ALL
@pytest.mark.parametrize("shape", [(512, 512), (512, 384)])
def test_large_matrices_neither_overflow_nor_stall(solver: str, shape: tuple[int, int]) -> None:
    similarity = np.random.default_rng(1).uniform(0, 1, shape)
    found = em.solve(similarity, solver)
    best = (em.solve(similarity, "lsa").rows * similarity).sum()
    total = (np.maximum(found.rows, found.cols) * similarity).sum()
    assert 0.97 < total / best < 1.03


@ALL
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_refinement_does_not_depend_on_scale(solver: str, scale: float) -> None:
    similarity = np.random.default_rng(2).uniform(0.1, 1, (6, 5))
    if solver != "row_mask":
        plain, scaled = (em.solve(s, solver).cols for s in (similarity, similarity * scale))
        assert plain.tolist() == scaled.tolist()
    assert em.solve(similarity * scale, solver).rows.sum() <= 5


@ALL
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_refused(solver: str, bad: float) -> None:
    with pytest.raises(InputError, match="similarity contains a value that is not finite"):
        em.solve([[0.1, bad], [0.2, 0.3]], solver)


@ALL
def test_no_method_calls_itself_exact(solver: str) -> None:
    assert not em.solve(np.eye(3), solver).exact
    assert not em.solve(np.zeros((0, 3)), solver).exact


@pytest.mark.parametrize(
    ("solver", "steps"),
    [
        ("row_mask", 4),
        ("recursive", 10),
        ("recursive(iterations=7)", 7),
        ("topk", 10),
        ("auction", 4),
        ("auction(iterations=6)", 6),
    ],
)
def test_the_number_of_steps_is_reported(solver: str, steps: int) -> None:
    given = [np.random.default_rng(n).uniform(0, 1, (4, n)) for n in (5, 9)]
    assert [found.steps for found in em.solve_batch(given, solver)] == [steps, steps]


@pytest.mark.parametrize("solver", ["recursive", "topk", "auction"])
def test_a_choice_below_0_earns_nothing(solver: str) -> None:
    found = em.solve(-np.ones((3, 2)) - np.eye(3, 2), solver)
    assert found.rows.sum() == found.cols.sum() == 0


def test_a_unit_taken_twice_gives_its_credit_once() -> None:
    similarity = np.array([[0.9, 0.8], [0.1, 0.1], [0.1, 0.1]])
    found = em.solve(similarity, "recursive(iterations=0)")
    assert found.cols[0].tolist() == [1, 1]
    assert found.rows[0].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("recursive(iterations=-1)", "recursive's iterations must not be negative, got -1"),
        ("recursive(factor=0.0)", "recursive's factor must be at least 1e-06, got 0.0"),
        ("topk(factor=-1.0)", "topk's factor must be at least 1e-06, got -1.0"),
        ("auction(iterations=-2)", "auction's iterations must not be negative, got -2"),
        ("auction(iterations='long')", "auction's iterations takes a whole number or 'short'"),
    ],
)
def test_settings_without_meaning_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        em.build(spec)


def test_masses_have_no_effect() -> None:
    similarity = np.random.default_rng(3).uniform(0, 1, (4, 4))
    for solver in METHODS:
        found = em.build(solver)([Problem(similarity, np.arange(4.0), np.ones(4))])[0]
        assert found.rows.tolist() == em.solve(similarity, solver).rows.tolist()
