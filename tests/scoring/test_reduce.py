from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.scoring.reducers import harmonic_mean, precision_recall
from evenmatch.types import Array, Embedded, Score, Units
from tests.support.parts import Row, rows
from tests.support.strategies import similarities

NUMBERS = st.floats(-1, 1)


def side(count: int, weights: Array | None = None) -> Embedded:
    ones = np.ones(count)
    return Embedded(Units("x"), np.zeros((count, 1)), ones if weights is None else weights, ones)


@given(NUMBERS, NUMBERS)
def test_f1_is_between_0_and_the_larger_of_both(precision: float, recall: float) -> None:
    value = harmonic_mean(precision, recall)
    assert 0 <= value <= max(precision, recall, 0) + 1e-12
    if precision > 0 and recall > 0:
        assert value >= min(precision, recall) - 1e-12


def test_f_of_a_negative_number_is_0_and_not_far_below_it() -> None:
    assert harmonic_mean(-0.19, 0.2) == 0
    assert harmonic_mean(-0.5, -0.5) == 0


@pytest.mark.parametrize("row", rows("scoring"))
@given(similarity=similarities())
@example(similarity=np.array([[0.1, 0.6], [0.3, 0.8], [0.9, 0.6], [0.7, -0.1]]))
def test_a_score_is_within_the_bounds_of_its_reducer(row: Row, similarity: Array) -> None:
    reducer = em.build(row.spec)
    low, high = reducer.score_bounds(-1.0, 1.0)
    for solver in ("greedy", "lsa"):
        score = reducer(similarity, em.solve(similarity, solver), *map(side, similarity.shape))
        assert low - 1e-9 <= score.value <= high + 1e-9


@given(similarities(low=0.0), st.integers(0, 2**32 - 1))
def test_precision_is_the_weighted_mean_of_what_is_gained(similarity: Array, seed: int) -> None:
    m, n = similarity.shape
    weights = np.random.default_rng(seed).uniform(0.1, 5, m)
    found = precision_recall(similarity, em.solve(similarity, "greedy"), weights, np.ones(n))
    assert found[0] == pytest.approx(np.average(similarity.max(1), weights=weights))
    assert found[1] == pytest.approx(similarity.max(0).mean())


def test_units_without_weight_count_for_nothing() -> None:
    similarity = np.array([[1.0, 0.0], [0.0, 0.5]])
    x, y = side(2, np.array([1.0, 0.0])), side(2, np.array([1.0, 0.0]))
    assert em.Prf()(similarity, em.solve(similarity, "lsa"), x, y) == Score(1, 1, 1)
    nobody = side(2, np.zeros(2))
    assert em.Prf()(similarity, em.solve(similarity, "lsa"), nobody, y).flags == {"no_match"}


def test_flags_of_both_sides_come_together() -> None:
    x = Embedded(Units("x"), np.ones((1, 1)), np.ones(1), np.ones(1), frozenset({"truncated"}))
    y = Embedded(Units("y"), np.ones((1, 1)), np.ones(1), np.ones(1), frozenset({"unknown_only"}))
    score = em.Prf()(np.ones((1, 1)), em.solve([[1.0]], "lsa"), x, y)
    assert score.flags == {"truncated", "unknown_only"}


def test_a_torch_similarity_keeps_its_gradient() -> None:
    torch = pytest.importorskip("torch")
    values = torch.tensor([[0.9, 0.1], [0.2, 0.8]], requires_grad=True)
    plan = em.solve(values.detach().numpy(), "lsa")
    alignment = em.Alignment(torch.tensor(plan.rows), torch.tensor(plan.cols))
    precision, recall = precision_recall(values, alignment, torch.ones(2), torch.ones(2))
    (precision + recall).backward()
    assert values.grad.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_rescaling_sends_low_to_0_and_leaves_1() -> None:
    reducer = em.Rescale(0.8)
    for value, wanted in ((0.8, 0.0), (1.0, 1.0), (0.9, 0.5), (0.7, -0.5)):
        similarity = np.array([[value]])
        score = reducer(similarity, em.solve(similarity, "lsa"), side(1), side(1))
        assert (score.value, score.precision, score.recall) == pytest.approx((wanted,) * 3)


def test_rescaling_leaves_empty_sides_at_0_and_1() -> None:
    nothing = np.zeros((0, 1))
    reducer = em.Rescale(0.8)
    alone = reducer(nothing, em.solve(nothing, "lsa"), side(0), side(1))
    assert alone.value == 0
    assert alone.flags == {"empty_candidate"}
    both = reducer(nothing[:, :0], em.solve(nothing[:, :0], "lsa"), side(0), side(0))
    assert both.value == 1


@pytest.mark.parametrize(
    ("metric", "bounds"),
    [
        ("align(vectors=hashed)", (0, 1)),
        ("align(vectors=hashed, similarity=dot)", (0, math.inf)),
        ("align(vectors=hashed, scoring=rescale(low=0.5))", (-1, 1)),
        ("align(vectors=hashed, similarity=floor(low=0.2))", (0, 1)),
    ],
)
def test_a_metric_says_its_bounds(metric: str, bounds: tuple[float, float]) -> None:
    assert em.build(metric).bounds == bounds
    assert em.build(metric).higher_is_better


def test_the_bounds_of_a_strangers_reducer_are_not_known() -> None:
    class Constant:
        def __call__(self, *_: object) -> Score:
            return Score(7.0)

    metric = em.AlignMetric(vectors=em.Hashed(), scoring=Constant())
    assert metric.bounds == (-math.inf, math.inf)
    rescaled = em.AlignMetric(vectors=em.Hashed(), scoring=em.Rescale(0.5, Constant()))
    assert rescaled.bounds == (-math.inf, math.inf)
