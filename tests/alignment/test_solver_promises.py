from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.alignment.solver_contract import check_solver
from evenmatch.alignment.transport import _scale_kernel, _scale_log_kernel, normalize_mass
from evenmatch.types import Array, Problem
from tests.support.parts import Row, rows
from tests.support.strategies import problems, similarities

NEAR = 1e-6
ALL = pytest.mark.parametrize("row", rows("alignment"))


@ALL
def test_every_solver_passes_the_published_check(row: Row) -> None:
    check_solver(em.build(row.spec), excused=row.excused)


@ALL
@given(problem=problems())
@settings(max_examples=25)
def test_no_unit_gives_less_than_nothing_or_more_than_itself(row: Row, problem: Problem) -> None:
    found = em.build(row.spec)([problem])[0]
    assert found.rows.shape == found.cols.shape == problem.similarity.shape
    assert (found.rows >= 0).all()
    assert (found.cols >= 0).all()
    assert (found.rows.sum(1) <= 1 + NEAR).all()
    assert (found.cols.sum(0) <= 1 + NEAR).all()


@ALL
@given(problem=problems(low=0.0), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_greedy_bounds_precision_and_recall_from_above(
    row: Row, problem: Problem, seed: int
) -> None:
    from evenmatch.scoring.reducers import precision_recall

    random = np.random.default_rng(seed)
    weights = [random.uniform(0.1, 2, k) for k in problem.similarity.shape]
    found, most = (
        precision_recall(problem.similarity, solver([problem])[0], *weights)
        for solver in (em.build(row.spec), em.Greedy())
    )
    assert found[0] <= most[0] + NEAR
    assert found[1] <= most[1] + NEAR


@ALL
@given(similarity=similarities(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_moving_units_moves_their_alignment(row: Row, similarity: Array, seed: int) -> None:
    m, n = similarity.shape
    random = np.random.default_rng(seed)
    p, q = random.permutation(m), random.permutation(n)
    plain, moved = (em.solve(s, row.spec) for s in (similarity, similarity[np.ix_(p, q)]))
    assert moved.rows == pytest.approx(plain.rows[np.ix_(p, q)], abs=NEAR)
    assert moved.cols == pytest.approx(plain.cols[np.ix_(p, q)], abs=NEAR)


@ALL
@given(given=st.lists(similarities(), max_size=5))
@settings(max_examples=10)
def test_a_problem_is_solved_the_same_alone_and_among_others(row: Row, given: list[Array]) -> None:
    together = em.solve_batch(given, row.spec)
    assert len(together) == len(given)
    for similarity, found in zip(given, together, strict=True):
        assert found.rows == pytest.approx(em.solve(similarity, row.spec).rows, abs=NEAR)


@ALL
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0)])
def test_an_empty_side_gives_an_empty_alignment(row: Row, shape: tuple[int, int]) -> None:
    found = em.solve(np.zeros(shape), row.spec)
    assert found.rows.shape == found.cols.shape == shape


@given(similarity=similarities())
def test_greedy_takes_the_best_of_each_row_and_column(similarity: Array) -> None:
    found = em.solve(similarity, "greedy")
    assert (found.rows * similarity).sum(1) == pytest.approx(similarity.max(1))
    assert (found.cols * similarity).sum(0) == pytest.approx(similarity.max(0))


def test_ties_go_to_the_lower_index() -> None:
    found = em.solve(np.zeros((2, 3)), "greedy")
    assert found.rows[:, 0].tolist() == [1, 1]
    assert found.cols[0].tolist() == [1, 1, 1]
    assert em.solve(np.zeros((2, 3)), "lsa").rows.argmax(1).tolist() == [0, 1]


@given(similarity=similarities())
def test_lsa_pairs_as_many_as_the_shorter_side_has(similarity: Array) -> None:
    found = em.solve(similarity, "lsa")
    assert found.rows.sum() == min(similarity.shape)
    assert (found.rows == found.cols).all()
    assert found.exact


@given(similarity=similarities(), seed=st.integers(0, 2**32 - 1))
def test_transport_moves_all_mass_of_both_sides(similarity: Array, seed: int) -> None:
    random = np.random.default_rng(seed)
    h, r = (random.uniform(0.1, 3, k) for k in similarity.shape)
    found = em.solve(similarity, "emd", h, r)
    assert found.rows.sum(1) == pytest.approx(np.ones(len(h)))
    assert found.cols.sum(0) == pytest.approx(np.ones(len(r)))
    assert found.exact


def test_a_unit_without_mass_gives_and_takes_nothing() -> None:
    found = em.solve(np.eye(3), "emd", [0, 1, 1], [1, 1, 1])
    assert found.rows[0].tolist() == [0, 0, 0]
    assert np.isfinite(found.rows).all()
    found = em.solve(np.eye(3), "sinkhorn", [0, 1, 1], [1, 0, 1])
    assert found.rows[0] == pytest.approx([0, 0, 0])
    assert found.cols[:, 1] == pytest.approx([0, 0, 0])


def test_where_no_unit_has_mass_all_have_the_same() -> None:
    nothing, equal = (em.solve(np.eye(2), "emd", [v, v], [v, v]).rows for v in (0.0, 1.0))
    assert nothing.tolist() == equal.tolist()


def test_an_approximation_reports_its_steps() -> None:
    short = em.solve(np.random.default_rng(0).uniform(0, 1, (5, 7)), "sinkhorn(iterations=3)")
    assert short.steps == 3
    assert not short.exact


@given(similarity=similarities(), seed=st.integers(0, 2**32 - 1))
def test_sinkhorn_is_the_same_in_the_log_domain(similarity: Array, seed: int) -> None:
    random = np.random.default_rng(seed)
    h, r = (normalize_mass(random.uniform(0, 3, k)) for k in similarity.shape)
    exponents = similarity / 0.05
    plan, steps = _scale_kernel(np.exp(exponents - exponents.max()), h, r, 1000, 1e-6)
    wanted, wanted_steps = _scale_log_kernel(exponents, h, r, 1000, 1e-6)
    assert plan == pytest.approx(wanted, abs=1e-9)
    assert steps == wanted_steps


def test_a_unit_of_hardly_any_mass_keeps_its_shares() -> None:
    found = em.solve(np.eye(3), "sinkhorn", [1e-200, 1, 1], [1, 1, 1])
    assert found.rows.sum(1) == pytest.approx(np.ones(3))
