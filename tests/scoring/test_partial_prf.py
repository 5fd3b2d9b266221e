"""The reducer `partial_prf` and the metric `f_partial`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.scoring.reducers import PartialPrf, harmonic_mean
from evenmatch.types import Array, Embedded, Score, Units
from tests.support.strategies import similarities


def score(similarity: Array, weights: Array | None = None) -> Score:
    sides = []
    for count in similarity.shape:
        ones = np.ones(count)
        sides.append(Embedded(Units("x"), np.zeros((count, 1)), ones, ones))
    if weights is not None:
        sides[0] = Embedded(sides[0].units, sides[0].vectors, weights, sides[0].mass)
    return PartialPrf()(similarity, em.solve(similarity, "partial"), *sides)


@pytest.mark.parametrize(
    ("likeness", "precision"),
    [
        (0.3, (1.5 + 0.5) / 3),  # new content counts 0.5
        (0.9, 1.5 / (3 + 1)),  # repetition counts two units
        (0.7, (1.5 + 0.5 * 0.5) / (3 + 0.5)),  # half of each
    ],
)
def test_an_unmatched_unit_is_new_or_repeated(likeness: float, precision: float) -> None:
    # rows 0 and 2 are matched with 1.0 and 0.5; row 1 is not
    found = score(np.array([[1.0, 0.2], [likeness, 0.1], [0.3, 0.5]]))
    assert found.precision == pytest.approx(precision)
    assert found.recall == pytest.approx(0.75)
    assert found.value == pytest.approx(2 * precision * 0.75 / (precision + 0.75))


def test_weights_count_for_matched_and_unmatched_units() -> None:
    similarity = np.array([[1.0, 0.2], [0.9, 0.1], [0.3, 0.1]])
    # 2 × 1.0 matched, 3 × 2 repeated, 4 × 0.5 new
    found = score(similarity, np.array([2.0, 3.0, 4.0]))
    assert found.precision == pytest.approx((2 + 4 * 0.5) / (9 + 3))


def test_missing_content_gets_nothing() -> None:
    found = score(np.array([[1.0, 0.3]]))
    assert (found.precision, found.recall) == (1.0, 0.5)
    assert found.value == pytest.approx(2 / 3)


def test_without_a_match_the_score_is_0_and_flagged() -> None:
    found = score(np.full((2, 2), 0.2))
    assert found == Score(0.0, 0.5, 0.0, frozenset({"no_match"}))


@given(similarities(low=0.0))
def test_where_all_units_are_matched_it_is_prf(similarity: Array) -> None:
    sides = [
        Embedded(Units("x"), np.zeros((k, 1)), np.ones(k), np.ones(k)) for k in similarity.shape
    ]
    greedy = em.solve(similarity, "greedy")
    found, wanted = (each(similarity, greedy, *sides) for each in (PartialPrf(), em.Prf()))
    assert found.precision == pytest.approx(wanted.precision)
    assert found.value == pytest.approx(harmonic_mean(wanted.precision or 0, wanted.recall or 0))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("partial_prf(credit=1.5)", "partial_prf's credit must be from 0 to 1"),
        ("partial_prf(penalty=0.5)", "partial_prf's penalty must be at least 1"),
        ("partial_prf(new=0.8)", "partial_prf's repeated must be above new"),
    ],
)
def test_settings_without_a_meaning_are_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.build(spec)


@pytest.mark.model
def test_repetition_costs_as_one_to_one_and_new_content_less() -> None:
    reference = "the government announced new rules for the railways on friday"
    repeated = f"{reference} the government announced new rules railways rules government"
    longer = f"{reference} while heavy rain flooded several villages near our coast"
    scores = em.score([reference, repeated, longer], [reference] * 3, ["f_disc", "f_partial"])
    lost = {name: [1 - each.value for each in found.segments] for name, found in scores.items()}
    assert lost["f_partial"][0] == pytest.approx(0, abs=1e-6)
    assert lost["f_partial"][1] > 0.9 * lost["f_disc"][1]
    assert lost["f_partial"][2] < 0.7 * lost["f_disc"][2]


@pytest.mark.model
def test_the_options_of_f_partial_reach_their_parts() -> None:
    made = em.build("f_partial(price=0.2, credit=0.1, penalty=2.0, new=0.3, repeated=0.5)")
    assert made.alignment == em.Partial(0.2)
    assert made.scoring == PartialPrf(0.1, 2.0, 0.3, 0.5)
