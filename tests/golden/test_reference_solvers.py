"""Our solvers beside those of SciPy and POT."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import evenmatch as em
from evenmatch.types import Array
from tests.support.strategies import similarities

SEEDS = st.integers(0, 2**32 - 1)


def moved(plan: Array, mass: Array) -> Array:
    """A plan in units of mass, from shares of each row's own."""
    return plan * (mass / mass.sum())[:, None]


@given(similarities(most=12))
def test_lsa_reaches_the_total_of_scipy(similarity: Array) -> None:
    best = similarity[linear_sum_assignment(similarity, maximize=True)].sum()
    assert (em.solve(similarity, "lsa").rows * similarity).sum() == pytest.approx(best)


@given(similarities(most=12), SEEDS)
@settings(max_examples=40)
def test_emd_reaches_the_cost_of_pot(similarity: Array, seed: int) -> None:
    import ot

    random = np.random.default_rng(seed)
    h, r = (random.uniform(0.01, 5, k) for k in similarity.shape)
    cost = 1 - similarity
    plan = ot.emd(h / h.sum(), r / r.sum(), cost)
    ours = moved(em.solve(similarity, "emd", h, r).rows, h)
    assert (ours * cost).sum() == pytest.approx((plan * cost).sum(), abs=1e-9)
    assert ours == pytest.approx(plan, abs=1e-7)


@given(similarities(most=6), SEEDS)
@settings(max_examples=20)
def test_sinkhorn_is_pots_sinkhorn(similarity: Array, seed: int) -> None:
    import ot

    random = np.random.default_rng(seed)
    h, r = (random.dirichlet(np.full(k, 2.0)) + 1e-3 for k in similarity.shape)
    h, r = h / h.sum(), r / r.sum()
    solver = em.Sinkhorn(epsilon=0.3, iterations=5000, tolerance=1e-10)
    plan = ot.sinkhorn(h, r, 1 - similarity, 0.3, numItermax=5000, stopThr=1e-12)
    assert moved(em.solve(similarity, solver, h, r).rows, h) == pytest.approx(plan, abs=1e-6)


@given(similarities(most=6), SEEDS)
@settings(max_examples=15)
def test_sinkhorn_approaches_emd_as_the_blur_falls(similarity: Array, seed: int) -> None:
    random = np.random.default_rng(seed)
    h, r = (random.uniform(0.2, 1, k) for k in similarity.shape)
    best = (moved(em.solve(similarity, "emd", h, r).rows, h) * similarity).sum()
    gaps = []
    for epsilon in (1.0, 0.1, 0.01):
        solver = em.Sinkhorn(epsilon=epsilon, iterations=20_000, tolerance=1e-9)
        gaps.append(best - (moved(em.solve(similarity, solver, h, r).rows, h) * similarity).sum())
    assert gaps[0] >= gaps[1] - 1e-6
    assert gaps[1] >= gaps[2] - 1e-6
    # entropy costs at most epsilon times the logarithm of the number of cells
    assert -1e-6 <= gaps[2] <= 0.01 * np.log(similarity.size) + 1e-6


def test_sinkhorn_stays_finite_where_the_plain_formula_underflows() -> None:
    similarity = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert em.solve(similarity, em.Sinkhorn(epsilon=1e-4)).rows == pytest.approx(np.eye(2))


def test_an_alignment_by_transport_imports_no_torch_and_hides_none() -> None:
    program = """
import sys
import evenmatch as em
em.solve([[1.0, 0.5], [0.2, 0.9]], "emd")
assert "torch" not in sys.modules, "evenmatch imported torch"
assert "ot" not in sys.modules, "evenmatch left its own ot behind"
import os
assert not [name for name in os.environ if name.startswith("POT_")]
import ot
import torch
plan = ot.emd(torch.full((2,), 0.5), torch.full((2,), 0.5), torch.eye(2))
assert isinstance(plan, torch.Tensor)
assert em.solve([[1.0, 0.5], [0.2, 0.9]], "emd").rows.tolist() == [[1, 0], [0, 1]]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_transport_works_where_the_user_imported_pot_first() -> None:
    program = """
import os
os.environ["POT_BACKEND_DISABLE_PYTORCH"] = "1"
import ot, evenmatch as em
assert em.solve([[1.0, 0.5], [0.2, 0.9]], "emd").rows.tolist() == [[1, 0], [0, 1]]
assert os.environ["POT_BACKEND_DISABLE_PYTORCH"] == "1"
import sys
assert sys.modules["ot"] is ot
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
