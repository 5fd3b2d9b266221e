"""Pooling and weighting of small hidden states, against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evenmatch.errors import DataError, InputError
from evenmatch.models.tokenizer import HiddenStates
from evenmatch.types import Array, Units
from evenmatch.vectors.pooling import embed_units, pool_tokens, readable_units
from evenmatch.vectors.weighting import (
    Idf,
    IdfTable,
    Norm,
    Uniform,
    count_documents,
    load_idf_table,
    pin_idf_table,
    store_idf_json,
    store_idf_table,
)

VECTORS = np.array([[9.0, 9.0], [1.0, -2.0], [3.0, 4.0], [0.0, 2.0], [7.0, 7.0]])
# "[CLS] play ##ing cards [SEP]" of the text "playing cards"
STATES = HiddenStates(
    "playing cards",
    np.array([101, 5, 6, 7, 102]),
    np.array([(0, 0), (0, 4), (4, 7), (8, 13), (0, 0)]),
    {0: "[CLS]", 4: "[SEP]"},
)
WORDS = Units(STATES.text, ("playing", "cards"), ((0, 7), (8, 13)), ((0,), (0, 1)))


class ById:
    """A weight of one tenth of the token's id."""

    def __call__(self, keys: Array, vectors: Array) -> Array:
        return keys / 10


def test_maxima_are_taken_over_the_tokens_of_a_unit() -> None:
    found = pool_tokens(WORDS, STATES, VECTORS, "max", Uniform(), Uniform())
    assert found.vectors.tolist() == [[3, 4], [3, 4]]
    lone = Units(STATES.text, WORDS.words, WORDS.spans, ((1,), (0,)))
    found = pool_tokens(lone, STATES, VECTORS - 5, "max", Uniform(), Uniform())
    assert found.vectors.tolist() == [[-5, -3], [-2, -1]]


def test_means_are_taken_over_the_tokens_of_a_unit() -> None:
    found = pool_tokens(WORDS, STATES, VECTORS, "mean", Uniform(), Uniform())
    assert found.vectors == pytest.approx(np.array([[2, 1], [4 / 3, 4 / 3]]))


def test_weight_and_mass_of_a_unit_are_means_over_its_tokens() -> None:
    found = pool_tokens(WORDS, STATES, VECTORS, "max", ById(), Norm())
    assert found.weights == pytest.approx([0.55, 0.6])
    norms = [math.sqrt(5), 5.0, 2.0]
    assert found.mass == pytest.approx([sum(norms[:2]) / 2, sum(norms) / 3])


def test_weights_of_units_multiply_those_of_tokens() -> None:
    units = Units(STATES.text, WORDS.words, WORDS.spans, WORDS.groups, weights=(2.0, 0.5))
    found = pool_tokens(units, STATES, VECTORS, "max", ById(), Uniform())
    assert found.weights == pytest.approx([1.1, 0.3])
    assert found.mass.tolist() == [1, 1]


def test_a_unit_beyond_the_limit_has_no_vector_weight_or_mass() -> None:
    units = Units("playing cards now", ("playing", "now"), ((0, 7), (14, 17)), ((0,), (1,)))
    found = pool_tokens(units, STATES, VECTORS, "max", Uniform(), Uniform())
    assert found.vectors.tolist() == [[3, 4], [0, 0]]
    assert (found.weights.tolist(), found.mass.tolist()) == ([1, 0], [1, 0])


def test_a_token_that_overlaps_two_words_counts_for_both_and_once_for_a_unit() -> None:
    """The token "ay ca" covers parts of both words; tokens may also be out of order."""
    spans = np.array([(0, 2), (2, 10), (10, 13)])
    states = HiddenStates(STATES.text, np.array([5, 6, 7]), spans, {})
    units = Units(STATES.text, WORDS.words, WORDS.spans, ((0,), (1,), (0, 1)))
    found = pool_tokens(units, states, VECTORS[1:4], "mean", ById(), Uniform())
    assert found.vectors == pytest.approx(np.array([[2, 1], [1.5, 3], [4 / 3, 4 / 3]]))
    assert found.weights == pytest.approx([0.55, 0.65, 0.6])
    backwards = HiddenStates(STATES.text, np.array([7, 6, 5]), spans[::-1], {})
    found = pool_tokens(units, backwards, VECTORS[3:0:-1], "mean", ById(), Uniform())
    assert found.vectors == pytest.approx(np.array([[2, 1], [1.5, 3], [4 / 3, 4 / 3]]))


def test_the_model_s_own_tokens_are_selected_without_special_ones() -> None:
    units = Units(STATES.text, by_model=True)
    found = embed_units(units, STATES, VECTORS, how="max", weights=ById(), mass=Norm())
    assert found.vectors.tolist() == VECTORS[1:4].tolist()
    assert found.weights == pytest.approx([0.5, 0.6, 0.7])
    assert found.mass == pytest.approx([math.sqrt(5), 5, 2])
    assert readable_units(units, STATES).words == ("play", "ing", "cards")


def test_special_tokens_are_units_without_weight() -> None:
    units = Units(STATES.text, by_model=True, special_tokens=True)
    found = embed_units(units, STATES, VECTORS, how="max", weights=ById(), mass=Uniform())
    assert found.vectors.tolist() == VECTORS.tolist()
    assert found.weights == pytest.approx([0, 0.5, 0.6, 0.7, 0])
    assert found.mass.tolist() == [1] * 5
    assert readable_units(units, STATES).words == ("[CLS]", "play", "ing", "cards", "[SEP]")
    empty = HiddenStates("", np.array([101, 102]), np.zeros((2, 2), int), {0: "[CLS]", 1: "[SEP]"})
    found = embed_units(units, empty, VECTORS[:2], how="max", weights=ById(), mass=Uniform())
    assert found.vectors.shape == (0, 2)


@pytest.mark.parametrize(("which", "at"), [("opening", 0), ("closing", 4)])
def test_one_special_token_may_be_the_only_unit(which: str, at: int) -> None:
    units = Units(STATES.text, by_model=True, **{which: True})  # type: ignore[arg-type]  # by name
    found = embed_units(units, STATES, VECTORS, how="max", weights=ById(), mass=Uniform())
    assert found.vectors.tolist() == [VECTORS[at].tolist()]


BARE = HiddenStates("a b", np.array([5, 6]), np.array([(0, 1), (2, 3)]), {})


def test_the_last_token_stands_for_a_closing_token_that_a_model_does_not_have() -> None:
    units = Units("a b", by_model=True, closing=True)
    found = embed_units(units, BARE, VECTORS[:2], how="max", weights=ById(), mass=Uniform())
    assert found.vectors.tolist() == [VECTORS[1].tolist()]
    assert readable_units(units, BARE).words == ("b",)


def test_a_model_without_an_opening_token_is_refused() -> None:
    units = Units("a b", by_model=True, opening=True)
    with pytest.raises(InputError, match="this model puts no opening token before a text"):
        embed_units(units, BARE, VECTORS[:2], how="max", weights=ById(), mass=Uniform())


def test_norms_and_equal_weights() -> None:
    assert Norm()(np.zeros(2), np.array([[3.0, 4.0], [0.0, 0.5]])).tolist() == [5, 0.5]
    assert Uniform()(np.array([7, 8]), np.zeros((2, 1))).tolist() == [1, 1]


def test_idf_is_the_logarithm_of_the_inverse_document_frequency() -> None:
    """Of three documents, two have 5 and one has 9; 1 is in none."""
    table = count_documents([np.array([5, 5, 9]), np.array([5]), np.array([], int)])
    assert (table.documents, table.keys.tolist(), table.counts.tolist()) == (3, [5, 9], [2, 1])
    expected = [math.log(4), math.log(4 / 3), math.log(4), math.log(2), math.log(4)]
    assert table.idf(np.array([1, 5, 7, 9, 11])) == pytest.approx(expected)
    empty = IdfTable(3, np.zeros(0, int), np.zeros(0, int))
    assert empty.idf(np.array([1, 2])) == pytest.approx([math.log(4)] * 2)
    name = store_idf_table(table)
    assert Idf(name)(np.array([9]), np.zeros((1, 1))) == pytest.approx([math.log(2)])
    assert store_idf_json(table.to_json()) == name == pin_idf_table(name)
    shuffled = '{"documents": 3, "counts": [[9, 1], [5, 2]]}'
    assert store_idf_json(shuffled) == name
    assert load_idf_table(name).keys.tolist() == [5, 9]
    with pytest.raises(DataError, match="the received text is not an idf table; expected JSON"):
        store_idf_json("[]")
