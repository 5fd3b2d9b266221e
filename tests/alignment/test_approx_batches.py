from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.alignment import batching
from evenmatch.types import Array, Problem
from tests.support.strategies import similarities, tied

METHODS = ("row_mask", "recursive", "recursive(legacy=True)", "topk", "auction")
ALL = pytest.mark.parametrize("solver", METHODS)


def ragged(count: int, most: int, seed: int = 0) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.uniform(-0.2, 1, random.integers(1, most, 2)) for _ in range(count)]


@ALL
@given(given=st.lists(st.one_of(similarities(most=12), tied()), max_size=12))
@settings(max_examples=40)
def test_a_matrix_is_solved_the_same_in_any_ragged_batch(solver: str, given: list[Array]) -> None:
    for similarity, found in zip(given, em.solve_batch(given, solver), strict=True):
        alone = em.solve(similarity, solver)
        assert found.rows.tolist() == alone.rows.tolist()
        assert found.cols.tolist() == alone.cols.tolist()
        assert found.steps == alone.steps


@ALL
def test_batches_of_sentence_length_equal_single_matrices(solver: str) -> None:
    given = ragged(120, 60)
    for similarity, found in zip(given, em.solve_batch(given, solver), strict=True):
        assert found.rows.tolist() == em.solve(similarity, solver).rows.tolist()


@ALL
def test_tensors_are_solved_like_arrays_and_stay_tensors(solver: str) -> None:
    torch = pytest.importorskip("torch")
    given = ragged(30, 25)
    part = em.build(solver)
    tensors = [torch.tensor(s, requires_grad=k % 2 == 0) for k, s in enumerate(given)]
    found = part([Problem(t, torch.ones(1), torch.ones(1)) for t in tensors])
    for similarity, tensor, alignment in zip(given, tensors, found, strict=True):
        alone = em.solve(similarity, solver)
        assert alignment.rows.tolist() == alone.rows.tolist()
        assert alignment.cols.tolist() == alone.cols.tolist()
        assert alignment.rows.dtype == tensor.dtype
        assert alignment.rows.device == tensor.device
        assert not alignment.rows.requires_grad


@ALL
def test_tensors_of_single_precision_keep_it(solver: str) -> None:
    torch = pytest.importorskip("torch")
    some = [torch.rand(3, 4), torch.rand(2, 2, dtype=torch.float64), np.eye(2), torch.zeros(0, 2)]
    found = em.build(solver)([Problem(s, np.ones(1), np.ones(1)) for s in some])
    assert [str(f.rows.dtype) for f in found] == [
        "torch.float32",
        "torch.float64",
        "float64",
        "torch.float32",
    ]


@ALL
def test_large_groups_are_split_to_bound_memory(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ragged(40, 12, seed=4)
    whole = em.solve_batch(given, solver)
    monkeypatch.setattr(batching, "_MAX_CELLS", 100)
    for a, b in zip(whole, em.solve_batch(given, solver), strict=True):
        assert a.rows.tolist() == b.rows.tolist()


def test_a_batch_holds_no_more_cells_than_allowed() -> None:
    given = ragged(500, 40)
    shapes = [s.shape for s in given]
    groups = list(batching._group_by_size(given))
    assert sorted(i for group in groups for i in group) == list(range(500))
    for group in groups:
        long, short = (max(f(shapes[i]) for i in group) for f in (max, min))
        assert len(group) * long * short <= batching._MAX_CELLS


def test_batches_are_mostly_filled() -> None:
    given = ragged(4000, 60)
    padded = filled = 0
    for group in batching._group_by_size(given):
        long, short = (max(f(given[i].shape) for i in group) for f in (max, min))
        padded += len(group) * long * short
        filled += sum(given[i].size for i in group)
    assert filled / padded > 0.8


def test_solving_arrays_needs_no_torch() -> None:
    code = (
        "import sys, numpy, evenmatch as em\n"
        f"[em.solve(numpy.eye(3), s) for s in {METHODS}]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@ALL
def test_an_accelerator_would_solve_as_a_processor_does(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tensors take torch's way, which a processor's can be made to take."""
    torch = pytest.importorskip("torch")
    given = [*ragged(40, 25, seed=6), np.full((5, 4), 0.3), np.eye(1)]
    monkeypatch.setattr(batching, "_NUMPY_DEVICES", ())
    found = em.build(solver)(
        [Problem(torch.tensor(s), torch.ones(1), torch.ones(1)) for s in given]
    )
    for similarity, alignment in zip(given, found, strict=True):
        alone = em.solve(similarity, solver)
        assert alignment.rows.tolist() == alone.rows.tolist()
        assert alignment.cols.tolist() == alone.cols.tolist()
        assert alignment.steps == alone.steps
