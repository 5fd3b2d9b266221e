"""Reducers on one weighted alignment, against scores computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenmatch.errors import InputError
from evenmatch.metrics.keyphrases.phrase_reducers import F1At, FineGrained, TokenMatch
from evenmatch.protocols import Reducer
from evenmatch.scoring.reducers import (
    Average,
    Nearness,
    PartialPrf,
    Prf,
    Rescale,
    Unweighted,
    WorstUnits,
    best_over_references,
    empty_score,
    empty_side_flags,
    harmonic_mean,
    overlap_score,
    precision_recall,
    reducer_bounds,
)
from evenmatch.similarity.vectors import Cosine, Dot, Euclidean
from evenmatch.types import Alignment, Array, Embedded, Pair, Score, Units

SIMILARITY = np.array([[0.9, 0.8, 0.1], [0.85, 0.2, 0.3]])
ROWS = np.array([[1.0, 0, 0], [1, 0, 0]])
COLS = np.array([[1.0, 1, 0], [0, 0, 1]])
ALIGNMENT = Alignment(ROWS, COLS)
# weights 1 and 3: (0.9 + 3 · 0.85) / 4; weights 2, 0 and 1: (2 · 0.9 + 0.3) / 3
PRECISION, RECALL = 3.45 / 4, 2.1 / 3
F1 = 2 * PRECISION * RECALL / (PRECISION + RECALL)


def side(weights: Array, flags: frozenset[str] = frozenset()) -> Embedded:
    weights = np.array(weights, dtype=float)
    return Embedded(Units(""), np.zeros((len(weights), 1)), weights, np.ones(len(weights)), flags)


X, Y = side([1, 3]), side([2, 0, 1])


def numbers(score: Score) -> tuple[float | None, ...]:
    return score.value, score.precision, score.recall


def told(score: Score) -> tuple[float, set[str]]:
    return score.value, set(score.flags)


@pytest.mark.parametrize(
    ("reducer", "expected"),
    [
        (Prf(), (F1, PRECISION, RECALL)),
        (Average(), ((PRECISION + RECALL) / 2, PRECISION, RECALL)),
        (Rescale(0.5), (2 * F1 - 1, 2 * PRECISION - 1, 2 * RECALL - 1)),
        (Rescale(-1.0), ((F1 + 1) / 2, (PRECISION + 1) / 2, (RECALL + 1) / 2)),
        # the worst of two rows, and of the two columns that have weight
        (WorstUnits(), (2 * 0.85 * 0.3 / 1.15, 0.85, 0.3)),
        (WorstUnits(1.0), (2 * 0.875 * 0.6 / 1.475, 0.875, 0.6)),
        (Unweighted(), (2 * 0.875 * (2 / 3) / (0.875 + 2 / 3), 0.875, 2 / 3)),
        (Unweighted(Average()), ((0.875 + 2 / 3) / 2, 0.875, 2 / 3)),
    ],
    ids=repr,
)
def test_each_reducer_gives_its_score_by_hand(
    reducer: Reducer, expected: tuple[float, ...]
) -> None:
    score = reducer(SIMILARITY, ALIGNMENT, X, Y)
    assert numbers(score) == pytest.approx(expected)
    assert score.flags == frozenset()


@pytest.mark.parametrize(
    ("reducer", "precision"),
    [
        # The second row, of weight 3, is unmatched. Its best similarity, 0.7, is halfway from 0.6
        # to 0.8, so that half of it is new and counts 0.5, and half repeats and counts double.
        (PartialPrf(), (0.9 + 0.5 * 1.5) / (4 + 1.5)),
        (PartialPrf(credit=0.0), 0.9 / (4 + 1.5)),
        (PartialPrf(penalty=1.0), (0.9 + 0.5 * 1.5) / 4),
        (PartialPrf(credit=1.0, penalty=3.0, new=0.1, repeated=0.7), 0.9 / (4 + 2 * 3)),
        (PartialPrf(new=0.7, repeated=0.9), (0.9 + 0.5 * 3) / 4),
    ],
    ids=repr,
)
def test_new_content_and_repetition_count_differently(reducer: Reducer, precision: float) -> None:
    similarity, plan = np.array([[0.9, 0.8, 0.1], [0.7, 0.2, 0.3]]), np.zeros((2, 3))
    plan[0, 0] = 1
    score = reducer(similarity, Alignment(plan, plan, exact=False), X, Y)
    recall = 2 * 0.9 / 3
    f1 = 2 * precision * recall / (precision + recall)
    assert numbers(score) == pytest.approx((f1, precision, recall))


@pytest.mark.parametrize(("reducer", "value"), [(Nearness(), 1 / 1.8625), (Nearness(True), 0.1375)])
def test_nearness_takes_the_weighted_distance_of_the_candidate(
    reducer: Nearness, value: float
) -> None:
    score = reducer(-SIMILARITY, ALIGNMENT, X, Y)
    assert score.value == pytest.approx(value)
    assert score.precision is score.recall is None
    assert reducer(SIMILARITY, ALIGNMENT, X, Y).value == 1  # there is no negative distance


def test_the_worst_fifth_of_ten_units_is_two() -> None:
    gains = np.array([0.9, 0.2, 0.8, 0.4, 0.7, 0.6, 0.5, 1.0, 0.3, 0.1])
    everything = Alignment(np.eye(10), np.eye(10))
    found = WorstUnits(0.2)(np.diag(gains), everything, side(np.ones(10)), side(np.ones(10)))
    assert found.precision == pytest.approx(0.15)
    assert WorstUnits(0.25)._mean_of_lowest(gains) == pytest.approx(0.2)
    assert WorstUnits(0.2)._mean_of_lowest(np.arange(15.0)) == 1.0
    assert WorstUnits(0.01)._mean_of_lowest(gains) == 0.1


def test_each_empty_side_is_flagged_and_scores_nothing() -> None:
    none, nowhere = side([]), Alignment(np.zeros((0, 3)), np.zeros((0, 3)))
    for reducer in (Prf(), Average(), Rescale(0.5), WorstUnits(), Nearness(), Nearness(True)):
        found = reducer(np.zeros((0, 3)), nowhere, none, Y)
        assert told(found) == (0, {"empty_candidate"})
        nothing = Alignment(np.zeros((2, 0)), np.zeros((2, 0)))
        found = reducer(np.zeros((2, 0)), nothing, X, none)
        assert told(found) == (0, {"empty_reference"})
        nothing = Alignment(np.zeros((0, 0)), np.zeros((0, 0)))
        found = reducer(np.zeros((0, 0)), nothing, none, none)
        assert told(found) == (1, {"empty_candidate", "empty_reference"})


def test_units_without_weight_match_nothing() -> None:
    for reducer in (Prf(), WorstUnits(), Nearness()):
        found = reducer(SIMILARITY, ALIGNMENT, side([0, 0]), Y)
        assert told(found) == (0, {"no_match"})
        found = reducer(SIMILARITY, ALIGNMENT, X, side([0, 0, 0]))
        assert told(found) == (0, {"no_match"})
    nowhere = Alignment(np.zeros((2, 3)), np.zeros((2, 3)))
    found = Prf()(SIMILARITY, nowhere, side([1, 1], frozenset({"truncated"})), Y)
    assert told(found) == (0, {"truncated", "no_match"})
    half = Alignment(ROWS, np.zeros((2, 3)))
    assert Prf()(SIMILARITY, half, X, Y).flags == frozenset()


def test_the_flags_of_both_texts_are_kept() -> None:
    x, y = side([1, 3], frozenset({"one"})), side([2, 0, 1], frozenset({"two"}))
    for reducer in (Prf(), Average(), Rescale(0.1), WorstUnits(), Nearness()):
        assert reducer(SIMILARITY, ALIGNMENT, x, y).flags == {"one", "two"}


@pytest.mark.parametrize(
    ("reducer", "bounds"),
    [
        (Prf(), (0, 1)),
        (Rescale(0.5), (-1, 1)),
        (Rescale(-1.0), (0, 1)),
        (Average(), (-1, 1)),
        (WorstUnits(), (0, 1)),
        (FineGrained(), (-1, 1)),
        (FineGrained(both_empty=2.0), (-1, 2)),
        (F1At(), (0, 1)),
        (TokenMatch(), (0, 1)),
    ],
    ids=repr,
)
def test_each_reducer_declares_its_bounds(reducer: Reducer, bounds: tuple[float, float]) -> None:
    assert reducer_bounds(reducer, Cosine()) == bounds


def test_bounds_follow_the_similarity() -> None:
    assert reducer_bounds(Prf(), Dot()) == (0, math.inf)
    assert reducer_bounds(Nearness(), Euclidean()) == (0, 1)
    assert reducer_bounds(Nearness(True), Euclidean(squared=True)) == (-3, 1)


def test_precision_and_recall_of_a_stack_of_pairs() -> None:
    stack = np.stack([SIMILARITY, 2 * SIMILARITY])
    both = Alignment(np.stack([ROWS, ROWS]), np.stack([COLS, COLS]))
    precision, recall = precision_recall(stack, both, X.weights, Y.weights)
    assert precision == pytest.approx([PRECISION, 2 * PRECISION])
    assert recall == pytest.approx([RECALL, 2 * RECALL])


def test_torch_gives_the_same_numbers_with_a_gradient() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    similarity = torch.tensor(SIMILARITY, requires_grad=True)
    constant = Alignment(torch.tensor(ROWS), torch.tensor(COLS))
    precision, recall = precision_recall(
        similarity, constant, torch.tensor(X.weights), torch.tensor(Y.weights)
    )
    assert (precision.item(), recall.item()) == pytest.approx((PRECISION, RECALL))
    precision.backward()
    assert similarity.grad.tolist() == [[0.25, 0, 0], [0.75, 0, 0]]


def test_the_harmonic_mean_needs_two_positive_numbers() -> None:
    assert harmonic_mean(0.5, 0.25) == pytest.approx(1 / 3)
    for precision, recall in ((0.0, 0.5), (0.5, 0.0), (-0.19, 0.2), (0.2, -0.19)):
        assert harmonic_mean(precision, recall) == 0


def test_a_low_of_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"rescale's low must be below 1, got 1\.0"):
        Rescale(1.0)
    for share in (0.0, 1.5):
        with pytest.raises(InputError, match="must be above 0 and at most 1, got"):
            WorstUnits(share)


@pytest.mark.parametrize(
    ("candidate", "references", "flags"),
    [
        ("a", ("b",), set()),
        (" ", ("b",), {"empty_candidate"}),
        ("a", ("", " "), {"empty_reference"}),
        ("a", ("", "b"), set()),
        ("", ("", "b"), {"empty_candidate", "empty_reference"}),
    ],
)
def test_empty_texts_are_flagged(
    candidate: str, references: tuple[str, ...], flags: set[str]
) -> None:
    pair = Pair(candidate, references)
    assert empty_side_flags(pair) == flags
    found = empty_score(pair)
    assert (told(found) if found else None) == ((float(len(flags) == 2), flags) if flags else None)


def test_the_best_reference_counts_and_empty_ones_do_not() -> None:
    def score(candidate: str, reference: str) -> Score:
        return Score(float(len(reference)), precision=float(len(candidate)))

    found = best_over_references(Pair("ab", ("x", "", "xyz", "zyx", "xy")), score)
    assert (found.value, found.precision) == (3, 2)
    assert best_over_references(Pair("", ("x",)), score).value == 0
    assert overlap_score(0.0, 0.1, 0.2) == Score(0.0, 0.1, 0.2, frozenset({"no_match"}))
    assert overlap_score(0.3, 0.1, 0.2) == Score(0.3, 0.1, 0.2)
