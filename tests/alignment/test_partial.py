"""Alignments that leave units unmatched: values by hand, other implementations, gradients."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.alignment import batching
from evenmatch.alignment.partial import _scale_unbalanced, _scale_unbalanced_log
from evenmatch.alignment.transport import normalize_mass
from evenmatch.errors import InputError
from evenmatch.types import Array
from tests.support.strategies import similarities

SEEDS = st.integers(0, 2**32 - 1)
CELLS = np.array([[0.9, 0.8, 0.1], [0.7, 0.2, 0.3]])


def test_mutual_matches_units_that_choose_each_other() -> None:
    # row 0 and column 0 choose each other; row 1 prefers column 0, columns 1 and 2 are not chosen
    assert em.solve(CELLS, "mutual").rows.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert em.solve(CELLS, "mutual").cols.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert em.solve(np.array([[0.5, 0.9], [0.8, 0.1]]), "mutual").rows.tolist() == [[0, 1], [1, 0]]


def test_mutual_gives_a_tie_to_the_lower_index() -> None:
    assert em.solve(np.zeros((2, 2)), "mutual").rows.tolist() == [[1, 0], [0, 0]]


def test_partial_matches_what_is_above_its_price() -> None:
    # 0.8 + 0.7 is the greatest total, and above twice the price either of 0.9 and the rest is not
    assert em.solve(CELLS, "partial(price=0.4)").rows.tolist() == [[0, 1, 0], [1, 0, 0]]
    # 0.9 - 0.65 exceeds (0.8 - 0.65) + (0.7 - 0.65)
    assert em.solve(CELLS, "partial(price=0.65)").rows.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert not em.solve(CELLS, "partial(price=0.9)").rows.any()


@given(similarities(most=4), st.floats(-1, 1))
@settings(max_examples=50)
def test_partial_has_the_greatest_total_above_the_price(similarity: Array, price: float) -> None:
    wide = similarity if similarity.shape[0] <= similarity.shape[1] else similarity.T
    gains = np.maximum(wide - price, 0.0)
    best = max(
        sum(gains[i, j] for i, j in enumerate(order))
        for order in permutations(range(wide.shape[1]), wide.shape[0])
    )
    found = em.solve(similarity, em.Partial(price))
    assert (found.rows * (similarity - price)).sum() == pytest.approx(best)
    assert (found.rows == found.cols).all()


@given(similarities(most=6))
def test_partial_is_one_to_one_alignment_if_nothing_is_too_dear(similarity: Array) -> None:
    found = em.solve(similarity, "partial(price=-1.5)")
    assert found.rows.tolist() == em.solve(similarity, "lsa").rows.tolist()


def test_partial_splits_units_of_unequal_mass() -> None:
    # The unit of mass 3 fills the reference unit of mass 1 and half of that of mass 4.
    found = em.solve(np.array([[0.9, 0.8]]), "partial", [3.0], [1.0, 4.0])
    assert found.rows == pytest.approx(np.array([[1 / 3, 2 / 3]]))
    assert found.cols == pytest.approx(np.array([[1.0, 0.5]]))


@given(similarities(most=5), SEEDS)
@settings(max_examples=25)
def test_partial_with_masses_is_the_linear_program(similarity: Array, seed: int) -> None:
    from scipy.optimize import linprog

    random = np.random.default_rng(seed)
    m, n = similarity.shape
    h, r = random.uniform(0.1, 2, m), random.uniform(0.1, 2, n)
    sums = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    best: Any = linprog(-(similarity - 0.4).ravel(), sums, np.concatenate([h, r]))
    rows = em.solve(similarity, "partial", h, r).rows
    assert (rows * h[:, None] * (similarity - 0.4)).sum() == pytest.approx(-best.fun, abs=1e-9)


@given(similarities(most=6), SEEDS)
@settings(max_examples=20)
def test_unbalanced_is_pots(similarity: Array, seed: int) -> None:
    import ot

    random = np.random.default_rng(seed)
    h, r = (random.dirichlet(np.full(k, 2.0)) + 1e-3 for k in similarity.shape)
    h, r = h / h.sum(), r / r.sum()
    plan = ot.unbalanced.sinkhorn_unbalanced(
        h, r, 1 - similarity, 0.3, 0.5, numItermax=5000, stopThr=1e-14
    )
    power = 0.5 / (0.5 + 0.3)
    ours, _ = _scale_unbalanced(np.exp((similarity - 1) / 0.3), h, r, power, 5000, 1e-12)
    assert ours == pytest.approx(plan, abs=1e-9)
    shares = em.solve(similarity, em.Unbalanced(0.5, 0.3, 5000, 1e-12), h, r).rows
    assert shares == pytest.approx(plan / np.maximum(h, plan.sum(1))[:, None], abs=1e-8)


@given(similarities(most=6), SEEDS)
@settings(max_examples=20)
def test_unbalanced_is_the_same_in_the_log_domain(similarity: Array, seed: int) -> None:
    random = np.random.default_rng(seed)
    h, r = (normalize_mass(random.uniform(0.1, 3, k)) for k in similarity.shape)
    exponents = (similarity - 1) / 0.05
    plan, _ = _scale_unbalanced(np.exp(exponents), h, r, 0.8, 1000, 1e-9)
    wanted, _ = _scale_unbalanced_log(exponents, h, r, 0.8, 1000, 1e-9)
    assert plan == pytest.approx(wanted, abs=1e-7)


def test_unbalanced_leaves_out_what_resembles_nothing() -> None:
    similarity = np.array([[0.95, -0.5], [-0.5, -0.6]])
    found = em.solve(similarity, "unbalanced")
    assert found.rows.sum(1)[0] > 0.9
    assert found.rows.sum(1)[1] < 0.3
    assert np.isfinite(em.solve(similarity, "unbalanced(epsilon=0.001)").rows).all()


def test_compiled_loops_give_what_arrays_give(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    random = np.random.default_rng(3)
    given = [random.uniform(-0.2, 1, random.integers(1, 40, 2)) for _ in range(20)]
    monkeypatch.setattr(batching, "MAX_ARRAY_SECONDS", float("inf"))
    arrays = em.solve_batch(given, "unbalanced")
    monkeypatch.setattr(batching, "MAX_ARRAY_SECONDS", 0.0)
    assert batching.should_use_loops()
    for ours, theirs in zip(em.solve_batch(given, "unbalanced"), arrays, strict=True):
        assert ours.rows == pytest.approx(theirs.rows, abs=1e-9)
        assert ours.steps == theirs.steps


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("unbalanced(price=0.0)", "unbalanced's price must be above 0"),
        ("unbalanced(epsilon=-1.0)", "unbalanced's epsilon must be above 0"),
        ("unbalanced(iterations=0)", "unbalanced's iterations must be at least 1"),
    ],
)
def test_settings_without_a_meaning_are_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.build(spec)


@pytest.mark.parametrize("solver", ["partial", "unbalanced"])
def test_a_negative_mass_is_refused(solver: str) -> None:
    with pytest.raises(InputError, match="a mass must not be negative"):
        em.build(solver)([em.Problem(np.eye(2), np.array([-1.0, 1.0]), np.ones(2))])


@pytest.mark.parametrize("spec", ["mutual", "partial", "partial(price=0.1)"])
def test_the_gradient_of_a_fixed_alignment_is_that_of_the_score(spec: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    from evenmatch.alignment.differentiable import FixedAlignment
    from evenmatch.scoring.reducers import precision_recall

    solver = FixedAlignment(em.build(spec))
    start = torch.rand(3, 4, 5, dtype=torch.float64, generator=torch.manual_seed(1))
    start.requires_grad_()

    def score(similarity: Any) -> Any:
        found = solver(similarity, torch.ones_like(similarity, dtype=torch.bool))
        weights = torch.ones(3, 4), torch.ones(3, 5)
        return sum(precision_recall(similarity, found, *weights))

    assert torch.autograd.gradcheck(score, (start,), eps=1e-6)
