"""Solvers that use several threads give what they give on one, each problem its own."""

from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment import assignment, transport
from evenmatch.alignment.assignment import map_in_threads, solver_threads
from evenmatch.types import Problem
from tests.support.parts import Row, rows


@pytest.mark.parametrize("row", rows("alignment"))
def test_an_alignment_does_not_depend_on_threads(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_CHUNK_SIZE", 4)
    random = np.random.default_rng(7)
    given = []
    for _ in range(40):
        m, n = random.integers(0, 9, 2)
        masses = random.uniform(0.1, 3, m), random.uniform(0.1, 3, n)
        given.append(Problem(random.uniform(0, 1, (m, n)), *masses))
    solver = em.build(row.spec)
    alone = solver(given)
    with solver_threads(3):
        together = solver(given)
    for one, other in zip(alone, together, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        assert one.cols.tolist() == other.cols.tolist()


def test_outcomes_come_in_order_and_an_error_is_passed_on() -> None:
    with solver_threads(4):
        assert list(map_in_threads(lambda x: 1 / x, range(1, 40), 39)) == [
            1 / x for x in range(1, 40)
        ]
        with pytest.raises(ZeroDivisionError):
            list(map_in_threads(lambda x: 1 / x, range(-5, 5), 10))


def test_threads_are_as_before_after_the_block() -> None:
    with solver_threads(3), solver_threads(2):
        assert assignment._thread_count.get() == 2
    assert assignment._thread_count.get() == 1
