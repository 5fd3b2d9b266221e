"""Vectors without a model, pooling of pieces into units, and the three weightings."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.models.tokenizer import HiddenStates
from evenmatch.types import Array, Units
from evenmatch.vectors.pooling import pool_tokens

WORD = em.Words()


def test_equal_words_are_alike_and_others_nearly_orthogonal() -> None:
    (found,) = em.Hashed(dim=1024)([WORD("cat Cat dog")])
    similarity = em.Cosine()(found, found)
    assert similarity[0, 1] == pytest.approx(1.0)
    assert abs(similarity[0, 2]) < 0.15


def test_case_counts_where_that_is_asked_for() -> None:
    (found,) = em.Hashed(lower=False)([WORD("cat Cat")])
    assert em.Cosine()(found, found)[0, 1] < 0.5


def test_vectors_are_the_same_in_every_process() -> None:
    program = (
        "import evenmatch as em; print(em.Hashed(dim=3)([em.Words()('cat')])[0].vectors.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(em.Hashed(dim=3)([WORD("cat")])[0].vectors.tolist())


def test_a_unit_of_several_words_is_their_sum() -> None:
    units = Units("black cat", ("black", "cat"), ((0, 5), (6, 9)), ((0,), (1,), (0, 1)))
    vectors = em.Hashed()([units])[0].vectors
    assert vectors[2] == pytest.approx(vectors[0] + vectors[1], abs=1e-6)


def test_a_mass_can_be_the_length_of_the_vector() -> None:
    units = Units("a b", ("a", "b"), ((0, 1), (2, 3)), ((0,), (0, 1)))
    (found,) = em.Hashed(mass=em.Norm())([units])
    assert found.mass == pytest.approx(np.linalg.norm(found.vectors, axis=1))
    assert found.weights.tolist() == [1, 1]


def test_the_dimension_must_be_positive() -> None:
    with pytest.raises(InputError, match="hashed's dim must be at least 1, got 0"):
        em.Hashed(dim=0)


SPANS = np.array([[0, 0], [0, 2], [2, 3], [4, 7], [0, 0]])  # marks, two pieces of a word, a word
KEYS = np.arange(5)
VECTORS = np.array([[9, 9], [1, 4], [3, 2], [5, 5], [9, 9]], dtype=np.float32)


def tokens(spans: Array, keys: Array) -> HiddenStates:
    return HiddenStates("", keys, spans, {})


def pooled(units: Units, how: str) -> tuple[Array, Array, Array]:
    found = pool_tokens(units, tokens(SPANS, KEYS), VECTORS, how, em.Uniform(), em.Norm())
    return found.vectors, found.weights, found.mass


@pytest.mark.parametrize(("how", "first"), [("max", [3, 4]), ("mean", [2, 3])])
def test_the_tokens_of_a_unit_are_pooled(how: str, first: list[float]) -> None:
    vectors, weights, mass = pooled(WORD("cat sat"), how)
    assert vectors.tolist() == [first, [5, 5]]
    assert weights.tolist() == [1, 1]
    norms = np.linalg.norm(VECTORS, axis=1)
    assert mass == pytest.approx([norms[1:3].mean(), norms[3]])


def test_a_piece_of_two_words_of_a_unit_counts_once() -> None:
    units = Units("cat sat", ("ca", "t"), ((0, 1), (1, 2)), ((0, 1),))
    assert pooled(units, "mean")[0].tolist() == [[1, 4]]


def test_a_unit_that_no_piece_covers_has_no_weight() -> None:
    units = Units("cat sat on", ("cat", "on"), ((0, 3), (8, 10)), ((0,), (1,), ()))
    vectors, weights, mass = pooled(units, "max")
    assert vectors[1:].tolist() == [[0, 0], [0, 0]]
    assert (weights.tolist()[1:], mass.tolist()[1:]) == ([0, 0], [0, 0])


def test_tokens_out_of_order_are_found_too() -> None:
    random = np.random.default_rng(0)
    order = random.permutation(5)
    units = WORD("cat sat")
    for how in ("max", "mean"):
        states = tokens(SPANS[order], KEYS[order])
        moved = pool_tokens(units, states, VECTORS[order], how, em.Uniform(), em.Norm())
        assert moved.vectors.tolist() == pooled(units, how)[0].tolist()


@pytest.mark.parametrize("text", ["", "x"])
def test_a_text_without_tokens_can_be_pooled(text: str) -> None:
    nothing = np.zeros((0, 2))
    states = tokens(nothing.astype(int), np.zeros(0))
    found = pool_tokens(WORD(text), states, nothing, "max", em.Uniform(), em.Norm())
    assert found.vectors.shape == (len(text), 2)
    assert not found.weights.any()
