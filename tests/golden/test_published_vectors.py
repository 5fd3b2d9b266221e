"""Small matrices whose scores can be followed by hand (SPEC of F_BERT, F_DISC, F_CONT)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import evenmatch as em
from evenmatch.scoring.reducers import Prf
from evenmatch.types import Array, Embedded, Score, Units
from tests.support.strategies import similarities

S1 = np.array([[1, 0.2, 0.1], [0.9, 0.3, 0.2], [0.1, 0.1, 0.8]])
S2 = np.array([[1, 0.2], [0.95, 0.1], [0.2, 0.9]])
S3 = np.array([[0.9, 0.8, 0.1, 0], [0.85, 0.2, 0.3, 0.1]])


def side(count: int) -> Embedded:
    return Embedded(Units("x"), np.zeros((count, 1)), np.ones(count), np.ones(count))


def scored(
    similarity: Array, solver: str, h: list[float] | None = None, r: list[float] | None = None
) -> Score:
    m, n = similarity.shape
    return Prf()(similarity, em.solve(similarity, solver, h, r), side(m), side(n))


@pytest.mark.parametrize(
    ("similarity", "solver", "precision", "recall", "value"),
    [
        (S1, "greedy", 0.9, 0.7, 0.7875),
        (S1, "lsa", 0.7, 0.7, 0.7),
        (S1, "emd", 0.7, 0.7, 0.7),
        (S2, "greedy", 0.95, 0.95, 0.95),
        (S2, "lsa", 0.633333, 0.95, 0.76),
        (S2, "emd", 0.816667, 0.816667, 0.816667),
        (S3, "greedy", 0.875, 0.525, 0.65625),
        (S3, "lsa", 0.825, 0.4125, 0.55),
        (S3, "emd", 0.525, 0.525, 0.525),
    ],
)
def test_worked_examples(
    similarity: Array, solver: str, precision: float, recall: float, value: float
) -> None:
    score = scored(similarity, solver)
    assert (score.precision, score.recall, score.value) == pytest.approx(
        (precision, recall, value), abs=1e-6
    )


@pytest.mark.parametrize(
    ("similarity", "pairs"),
    [(S1, [(0, 0), (1, 1), (2, 2)]), (S2, [(0, 0), (2, 1)]), (S3, [(0, 1), (1, 0)])],
)
def test_the_pairs_of_the_worked_examples(similarity: Array, pairs: list[tuple[int, int]]) -> None:
    assert list(zip(*np.nonzero(em.solve(similarity, "lsa").rows), strict=True)) == pairs


def test_the_plan_of_a_worked_example() -> None:
    rows = em.solve(S2, "emd").rows / 3  # each row shared out a third of the mass
    assert rows == pytest.approx(np.array([[1 / 6, 1 / 6], [1 / 3, 0], [0, 1 / 3]]))
    assert em.solve(S3, "emd").rows == pytest.approx(np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]))


def test_a_worked_example_with_unequal_masses() -> None:
    score = scored(S2, "emd", [1, 2, 1], [3, 1])
    assert (score.precision, score.recall, score.value) == pytest.approx(
        (0.95, 0.933333, 0.941593), abs=1e-6
    )
    rows = em.solve(S2, "emd", [1, 2, 1], [3, 1]).rows
    assert rows == pytest.approx(np.array([[1, 0], [1, 0], [0, 1]]))


@given(similarities(low=0.01))
def test_one_to_one_f_is_twice_the_matched_sum_over_both_lengths(similarity: Array) -> None:
    matched = (em.solve(similarity, "lsa").rows * similarity).sum()
    assert scored(similarity, "lsa").value == pytest.approx(2 * matched / sum(similarity.shape))


@given(similarities())
def test_with_equal_masses_and_weights_transport_has_equal_precision_and_recall(
    similarity: Array,
) -> None:
    score = scored(similarity, "emd")
    assert score.precision == pytest.approx(score.recall, abs=1e-9)


@given(similarities(low=0.01))
def test_with_equal_masses_and_lengths_transport_is_one_to_one(similarity: Array) -> None:
    k = min(similarity.shape)
    square = similarity[:k, :k]
    assert scored(square, "emd").value == pytest.approx(scored(square, "lsa").value)
