from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.studies.lisa.trade_off import (
    TradeOffSettings,
    measure_quality,
    measure_speed,
    random_matrices,
    sentence_matrices,
)


def test_an_exact_solver_loses_nothing() -> None:
    row = measure_quality(random_matrices(9, 5), ["lsa"])[0]
    assert (row.share, row.lowest_share) == pytest.approx((1.0, 1.0))
    assert (row.pairs, row.fewest_pairs) == (1.0, 1.0)
    assert row.matrices == 5


def test_what_is_no_matching_shows_as_such() -> None:
    rows = {
        row.solver: row for row in measure_quality(random_matrices(40, 8), ("row_mask", "topk"))
    }
    assert rows["row_mask"].pairs == 1.0
    assert rows["row_mask"].share < 1.0
    assert rows["topk"].pairs < 1.0
    assert rows["topk"].share > 1.0


def test_a_shared_partner_counts_as_one_pair() -> None:
    similarity = np.array([[0.9, 0.8], [0.1, 0.1], [0.1, 0.1]])
    row = measure_quality([similarity], ["recursive(iterations=0)"])[0]
    assert row.pairs == 0.5
    assert row.share == pytest.approx(1.7 / 1.0)


def test_random_matrices_are_the_same_again() -> None:
    for a, b in zip(random_matrices(4, 2, seed=3), random_matrices(4, 2, seed=3), strict=True):
        assert a.tolist() == b.tolist()


def test_sentences_give_their_similarities() -> None:
    encoder = em.Hashed(dim=64)
    found = sentence_matrices(["a b", ""], ["a b c", "d"], encoder)
    assert [s.shape for s in found] == [(2, 3)]
    assert found[0][0, 0] == pytest.approx(1.0)


def test_speed_is_told_for_every_solver_size_and_batch() -> None:
    rows = measure_speed(
        TradeOffSettings(("row_mask", "recursive"), (4, 8), (1, 3), rounds=1, seconds=0)
    )
    assert [(r.solver, r.size, r.batch) for r in rows] == [
        (solver, size, batch)
        for size in (4, 8)
        for batch in (1, 3)
        for solver in ("lsa", "row_mask", "recursive")
    ]
    assert all(r.microseconds > 0 for r in rows)
    assert all(r.times_exact == 1 for r in rows if r.solver == "lsa")


def test_time_that_is_left_goes_to_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    measure_speed(TradeOffSettings((), (4,), (1,), rounds=1, seconds=9.0))
    # at 0 it starts; 1-2, 4-5 and 7-8 are rounds; at 3, 6 and 9 it looks whether time is left
    assert next(clock) == 10


def test_speed_of_tensors_is_told_too() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    rows = measure_speed(
        TradeOffSettings(("auction",), (6,), (2,), rounds=1, seconds=0, device="cpu:0")
    )
    assert [r.solver for r in rows] == ["lsa", "auction"]


def test_batches_that_would_measure_the_memory_are_left_out() -> None:
    assert measure_speed(TradeOffSettings((), (3000,), (2,), rounds=1)) == []


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(InputError, match="there are no matrices to compare solvers on"):
        measure_quality([])
    with pytest.raises(InputError, match="rounds must be at least 1, got 0"):
        measure_speed(TradeOffSettings(rounds=0))
