"""Similarities of two small texts against values computed by hand.

The vectors are x = (3, 4), (1, 0), (0, 0) and y = (4, 3), (0, -2).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenmatch.protocols import Similarity
from evenmatch.similarity.strings import Edit, Exact, PhraseStringSimilarity, TokenF1
from evenmatch.similarity.vectors import (
    Cosine,
    Dot,
    Euclidean,
    Floor,
    SameLabel,
    clip_values,
    similarity_bounds,
)
from evenmatch.types import Array, Embedded, Units

X = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
Y = np.array([[4.0, 3.0], [0.0, -2.0]])
COSINES = np.array([[0.96, -0.8], [0.8, 0.0], [0.0, 0.0]])


def side(vectors: Array, labels: tuple[str, ...] = ()) -> Embedded:
    ones = np.ones(len(vectors))
    return Embedded(Units("", labels=labels), np.array(vectors), ones, ones)


def phrases(*given: str) -> Embedded:
    words = tuple(word for phrase in given for word in phrase.split())
    ends = np.cumsum([len(phrase.split()) for phrase in given]).tolist()
    groups = tuple(
        tuple(range(end - len(phrase.split()), end))
        for phrase, end in zip(given, ends, strict=True)
    )
    ones = np.ones(len(given))
    return Embedded(Units("", words, groups=groups), np.zeros((len(given), 0)), ones, ones)


@pytest.mark.parametrize(
    ("similarity", "expected"),
    [
        (Cosine(), COSINES),
        (Dot(), [[24, -8], [4, 0], [0, 0]]),
        (Euclidean(), -np.sqrt(2 - 2 * COSINES)),
        (Euclidean(squared=True), 2 * COSINES - 2),
        (Floor(), [[0.96, 0], [0.8, 0], [0, 0]]),
        (Floor(low=0.9), [[0.96, 0.9], [0.9, 0.9], [0.9, 0.9]]),
        (Floor(Dot(), low=-1.0), [[24, -1], [4, 0], [0, 0]]),
    ],
    ids=repr,
)
def test_each_vector_similarity_has_its_hand_computed_matrix(
    similarity: Similarity, expected: Array
) -> None:
    assert_allclose(similarity(side(X), side(Y)), expected, atol=1e-12)


def test_single_precision_gives_the_same_cosines() -> None:
    x, y = side(X.astype(np.float32)), side(Y.astype(np.float32))
    assert_allclose(Cosine()(x, y), COSINES, atol=1e-6)
    assert Cosine()(x, y).dtype == np.float32
    assert_allclose(Euclidean()(x, x)[0, 0], 0, atol=1e-7)


def test_torch_tensors_give_the_same_numbers_and_keep_their_gradient() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.tensor(X, requires_grad=True)
    one, other = (Embedded(Units(""), v, None, None) for v in (x, torch.tensor(Y)))
    assert_allclose(Cosine()(one, other).detach(), COSINES, atol=1e-12)
    assert_allclose(Euclidean()(one, other).detach(), -np.sqrt(2 - 2 * COSINES), atol=1e-12)
    Cosine()(one, other)[0, 0].backward()
    # d cos(x, y) / dx = (y/|y| - cos x/|x|) / |x|
    assert_allclose(x.grad[0], (np.array([0.8, 0.6]) - 0.96 * np.array([0.6, 0.8])) / 5)
    assert clip_values(torch.tensor([-2.0, 0.5, 2.0]), -1.0, 1.0).tolist() == [-1.0, 0.5, 1.0]


def test_only_units_with_the_same_label_keep_their_similarity() -> None:
    x, y = side(X, ("a", "b", "a")), side(Y, ("a", "b"))
    assert_allclose(SameLabel()(x, y), [[0.96, 0.0], [0.0, 0.0], [0.0, 0.0]], atol=1e-12)
    assert_allclose(SameLabel(Dot())(x, y), [[24, 0], [0, 0], [0, 0]])
    assert_allclose(SameLabel()(side(X), y), COSINES, atol=1e-12)
    assert_allclose(SameLabel()(x, side(Y)), COSINES, atol=1e-12)


@pytest.mark.parametrize(
    ("similarity", "bounds"),
    [
        (Cosine(), (-1, 1)),
        (Dot(), (-math.inf, math.inf)),
        (Euclidean(), (-2, 0)),
        (Euclidean(squared=True), (-4, 0)),
        (Floor(), (0, 1)),
        (Floor(low=-3.0), (-1, 1)),
        (Floor(low=1.5), (1.5, 1.5)),
        (SameLabel(), (-1, 1)),
        (SameLabel(Floor(low=0.2)), (0, 1)),
        (SameLabel(Euclidean()), (-2, 0)),
        (Edit(), (0, 1)),
    ],
    ids=repr,
)
def test_each_similarity_declares_its_bounds(
    similarity: Similarity, bounds: tuple[float, float]
) -> None:
    assert similarity_bounds(similarity) == bounds


EDITS = np.array([[1, 1 / 3, 1 / 3], [2 / 3, 1 / 3, 1 / 2]])
SHARED_WORDS = np.array([[1, 1, 0.4], [0.8, 0.8, 0.5]])


@pytest.mark.parametrize(
    ("similarity", "expected"),
    [
        (Exact(), [[1, 0, 0], [0, 0, 0]]),
        (Edit(), EDITS),
        (TokenF1(), SHARED_WORDS),
        (PhraseStringSimilarity(), (EDITS + SHARED_WORDS) / 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_phrase_similarity_has_its_hand_computed_matrix(
    similarity: Similarity, expected: Array
) -> None:
    x, y = phrases("a b c", "a b"), phrases("a b c", "b a c", "a x")
    assert_allclose(similarity(x, y), expected, atol=1e-12)


def test_a_phrase_without_words_matches_nothing() -> None:
    x = phrases("a", "")
    for similarity in (Exact(), Edit(), TokenF1(), PhraseStringSimilarity()):
        assert_allclose(similarity(x, x), [[1, 0], [0, 0]])
