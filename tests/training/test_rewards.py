from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.scoring.metric import as_metric
from evenmatch.training.rewards import as_reward, is_log_probability

LSA = "align(vectors=hashed, alignment=lsa)"
GREEDY = "align(vectors=hashed)"


def pairs(*texts: tuple[str, str]) -> list[em.Pair]:
    return [em.Pair(candidate, (reference,)) for candidate, reference in texts]


SOME = pairs(("the the cat", "the cat sat"), ("a dog", "a dog"), ("nothing", "alike"))


def test_a_score_between_0_and_1_is_its_own_reward() -> None:
    scores = em.build(LSA)(SOME)
    assert em.reward(LSA)(SOME) == [s.value for s in scores.segments]


def test_the_best_of_several_references_counts() -> None:
    both = em.Pair("a dog", ("a cat", "a dog"))
    assert em.reward(LSA)([both]) == em.reward(LSA)(pairs(("a dog", "a dog")))


def test_operators_work_row_by_row() -> None:
    a, b = em.reward(LSA), em.reward(GREEDY)
    mixed = (2 * a - 0.5 * b + b * a - 0.25 + (1 - a)).clip(0.2, 1.4)
    wanted = [
        min(max(2 * x - 0.5 * y + y * x - 0.25 + (1 - x), 0.2), 1.4)
        for x, y in zip(a(SOME), b(SOME), strict=True)
    ]
    assert mixed(SOME) == pytest.approx(wanted)


def test_a_mixture_pickles_and_gives_the_same() -> None:
    mixed = (em.reward(LSA) - 0.1 * em.reward(GREEDY)).clip(0, 1)
    again = pickle.loads(pickle.dumps(mixed))
    assert again == mixed
    assert again(SOME) == mixed(SOME)


def test_the_signature_is_the_expression_and_what_it_rests_on() -> None:
    mixed = (em.reward(LSA) - 0.5 * em.reward(GREEDY)).clip(0, 1)
    lsa, greedy = (em.build(s).signature.split(" · ")[0] for s in (LSA, GREEDY))
    expression, *facts = mixed.signature.split(" · ")
    assert expression == f"clip((reward({lsa}) - (0.5 * reward({greedy}))), 0.0, 1.0)"
    assert facts == [f"evenmatch {em.__version__}"]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_text_without_words_scores_0_and_is_counted(text: str) -> None:
    found = em.reward(LSA).evaluate([*SOME, *pairs((text, text)), *SOME])
    assert found.values[:3] == found.values[4:] == tuple(em.reward(LSA)(SOME))
    assert (found.values[3], found.odd) == (0.0, (3,))


@pytest.mark.model
@pytest.mark.parametrize("text", ["", " ", "[SEP]", "[PAD][CLS]", "\ud800", "\x00", "a" * 9000])
def test_no_text_raises_on_a_real_model(text: str) -> None:
    found = em.reward("f_disc").evaluate(pairs((text, "a cat"), ("a cat", "a cat")))
    assert 0.0 <= found.values[0] < 1.0
    assert found.values[1] == pytest.approx(1.0)


@pytest.mark.model
def test_a_text_that_the_metric_refuses_scores_0_and_leaves_the_others() -> None:
    strict = em.reward("f_disc(long='error')")
    found = strict.evaluate(pairs(("a cat", "a cat"), ("word " * 900, "a cat"), ("a", "a")))
    assert found.odd == (1,)
    assert found.values == pytest.approx((1.0, 0.0, 1.0))


def test_a_metric_that_cannot_run_at_all_says_so() -> None:
    with pytest.raises(em.EvenmatchError, match="nowhere"):
        em.reward("bertscore(model='nowhere')")(SOME)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(em.InputError, match="candidate of row 0 must be a string"):
        em.reward(LSA)([em.Pair(None, ("a",))])  # type: ignore[arg-type]  # on purpose


def test_rewards_are_negated_divided_and_clipped_as_numbers_are() -> None:
    overlap, pairs = em.reward(LSA), [em.Pair("a b", ("a b c",))]
    [value] = overlap(pairs)
    changed: dict[str, tuple[Any, float]] = {
        "-r": (-overlap, -value),
        "r / 2": (overlap / 2, value / 2),
        "mean": (sum([overlap, overlap]) / 2, value),
        "numpy": (np.float64(0.5) * overlap, value / 2),
        "clip": ((2 * overlap).clip(), 1.0),
    }
    for made, wanted in changed.values():
        assert made(pairs) == [pytest.approx(wanted)]
    for wrong in (0, overlap):
        with pytest.raises(em.InputError, match="divided by a number other than 0"):
            overlap / wrong  # type: ignore[operator]  # the wrong value is the point
    with pytest.raises(em.InputError, match="rewards and finite numbers, got array"):
        np.array([0.5, 1.0]) * overlap


def test_clipping_upside_down_is_refused() -> None:
    with pytest.raises(em.InputError, match="give the lower bound first"):
        em.reward(LSA).clip(1, 0)


@pytest.mark.parametrize("other", ["a", None, True, math.nan])
def test_only_rewards_and_finite_numbers_join(other: object) -> None:
    with pytest.raises(em.InputError, match="can be combined with rewards and finite numbers"):
        em.reward(LSA) + other  # type: ignore[operator]  # on purpose


def test_an_unknown_run_setting_is_refused() -> None:
    with pytest.raises(em.InputError, match="a run has no setting 'speed'"):
        em.reward(LSA, speed=1)


RANGES = [(0.0, 1.0), (-1.0, 1.0), (0.0, 100.0), (-2.0, 0.0)]
RANGES += [(0.0, math.inf), (-math.inf, 0.0), (-math.inf, math.inf)]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("higher", [True, False])
@given(a=st.floats(-1e6, 1e6), b=st.floats(-1e6, 1e6))
def test_every_score_becomes_a_reward_that_keeps_its_direction(
    bounds: tuple[float, float], higher: bool, a: float, b: float
) -> None:
    low, high = sorted(min(max(x, bounds[0]), bounds[1]) for x in (a, b))
    first, second = (as_reward(x, bounds, higher) for x in (low, high))
    assert 0.0 <= min(first, second) <= max(first, second) <= 1.0
    assert first <= second if higher else first >= second


def test_the_ends_of_a_range_are_0_and_1() -> None:
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 100.0), (-2.0, 0.0)):
        assert (as_reward(low, (low, high), True), as_reward(high, (low, high), True)) == (0.0, 1.0)


def test_a_rating_with_an_upper_bound_is_no_log_probability() -> None:
    blend = "blend(parts=[sentinel_length], weights=[1.0], bias=11.0)"
    average, better = em.reward(blend)(pairs(("a very tiny", "a b"), ("a b", "a b")))
    assert average == 0.5
    assert better == pytest.approx(1 / (1 + math.exp(-8)))


@pytest.mark.parametrize(("name", "expected"), [("likelihood", True), ("sentinel_length", False)])
def test_only_likelihood_metrics_declare_log_probabilities(name: str, expected: bool) -> None:
    metric = as_metric(name)
    assert metric.bounds == (-math.inf, 0.0)
    assert is_log_probability(metric) is expected


def test_metrics_that_are_better_when_lower_are_turned_round() -> None:
    close, far = em.reward("ter")(pairs(("a b c d", "a b c d"), ("x y z", "a b c d")))
    assert close == 1.0
    assert 0.0 < far < 0.6


def test_nothing_to_judge_is_nothing() -> None:
    assert em.reward(LSA)([]) == []


def test_pairs_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(em.InputError, match=r"row 0 must be a Pair, got tuple; write em\.Pair"):
        em.reward("bleu")([("a", "b")])  # type: ignore[list-item]  # the wrong value is the point


def test_a_reward_prints_as_its_expression() -> None:
    shaped = 0.5 * em.reward("rouge1") * em.length_term()
    assert str(shaped) == shaped.signature.split(" · ")[0]
    assert str(shaped) == "((0.5 * reward(rouge)) * length_term(low=0.8, high=1.25))"
