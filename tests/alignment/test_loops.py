"""Compiled loops give what arrays give, to the last bit, and come only when they pay."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.alignment import batching, lisa
from evenmatch.alignment.assignment import solver_threads
from evenmatch.types import Alignment, Array
from tests.support.strategies import similarities, tied

pytest.importorskip("numba")

METHODS = (
    "row_mask",
    "recursive",
    "recursive(legacy=True)",
    "recursive(iterations=0)",
    "topk",
    "auction",
    "auction(iterations=150)",  # far enough to be rescaled on the way
    "auction(iterations=20, factor=0.001)",
    "sinkhorn",
    "sinkhorn(epsilon=0.5, iterations=20)",
)
ALL = pytest.mark.parametrize("solver", METHODS)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    before, batching.MAX_ARRAY_SECONDS = batching.MAX_ARRAY_SECONDS, seconds
    try:
        yield
    finally:
        batching.MAX_ARRAY_SECONDS = before


def both(given: list[Array], solver: str) -> Iterator[tuple[Alignment, Alignment]]:
    with patience(float("inf")):
        arrays = em.solve_batch(given, solver)
    with patience(0):
        assert batching.should_use_loops()
        return zip(arrays, em.solve_batch(given, solver), strict=True)


@ALL
@given(given=st.lists(st.one_of(similarities(most=9), tied()), max_size=8))
def test_small_matrices_with_and_without_ties(solver: str, given: list[Array]) -> None:
    for by_arrays, by_loops in both(given, solver):
        assert by_arrays.rows.tolist() == by_loops.rows.tolist()
        assert by_arrays.cols.tolist() == by_loops.cols.tolist()
        assert by_arrays.steps == by_loops.steps


@ALL
def test_matrices_of_sentence_length(solver: str) -> None:
    random = np.random.default_rng(3)
    given = [random.uniform(-0.2, 1, random.integers(1, 70, 2)) for _ in range(60)]
    given += [np.full((4, 6), 0.5), -np.ones((3, 2)), np.zeros((5, 1)), np.zeros((1, 1))]
    for by_arrays, by_loops in both(given, solver):
        assert by_arrays.rows.tolist() == by_loops.rows.tolist()
        assert by_arrays.cols.tolist() == by_loops.cols.tolist()


@ALL
def test_on_several_threads_nothing_is_shifted(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_MAX_FLAT_CELLS", 200)
    random = np.random.default_rng(5)
    given = [random.uniform(-0.2, 1, random.integers(0, 12, 2)) for _ in range(80)]
    with solver_threads(3):
        for by_arrays, by_loops in both(given, solver):
            assert by_arrays.rows.tolist() == by_loops.rows.tolist()
            assert by_arrays.cols.tolist() == by_loops.cols.tolist()


@pytest.mark.parametrize("factor", [0.01, 0.8, 1.0, 10.0])
def test_refined_cells_are_equal_bit_for_bit(factor: float) -> None:
    from evenmatch.alignment.compiled import _refine_matrix

    batch = np.random.default_rng(1).uniform(-1, 1, (6, 12, 9))
    steps = [130, 60, 9, 9, 1, 0]
    for own, number, by_arrays in zip(
        batch, steps, lisa.refine_cells(batch, steps, factor), strict=True
    ):
        found = _refine_matrix(own, number, factor, lisa._steps_between_rescaling(factor))
        assert found.tobytes() == by_arrays.tobytes()


def _run(code: str) -> None:
    start = "import sys, numpy, evenmatch as em\nfrom evenmatch.alignment import batching\n"
    subprocess.run([sys.executable, "-c", start + code], check=True)


def test_the_compiler_is_loaded_once_arrays_have_cost_their_time() -> None:
    _run(
        "em.solve(numpy.eye(3), 'auction')\n"
        "assert 'numba' not in sys.modules\n"
        "batching.MAX_ARRAY_SECONDS = 1e-9\n"
        "em.solve(numpy.eye(3), 'auction')\n"
        "assert 'numba' in sys.modules\n"
    )


def test_without_the_compiler_arrays_do_everything() -> None:
    _run(
        "sys.modules['numba'] = None\n"
        "batching.MAX_ARRAY_SECONDS = 0\n"
        "assert (em.solve(numpy.eye(3), 'auction').rows == numpy.eye(3)).all()\n"
        "assert (em.solve(numpy.eye(3), 'row_mask').rows == numpy.eye(3)).all()\n"
    )


def test_where_nothing_can_be_kept_loops_are_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from evenmatch.alignment import compiled

    asked = []

    def njit(*, cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert compiled.jit_compile(abs) is abs
    assert asked == [True, False]
