from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.protocols import Similarity
from evenmatch.similarity.vectors import similarity_bounds
from evenmatch.types import Array, Embedded, Units
from tests.support.parts import Row, rows


def embedded(vectors: Array, labels: tuple[str, ...] = ()) -> Embedded:
    count = len(vectors)
    words = tuple(f"w{i}" for i in range(count))
    units = Units(" ".join(words), words, groups=tuple((i,) for i in range(count)), labels=labels)
    return Embedded(units, np.asarray(vectors, float), np.ones(count), np.ones(count))


@st.composite
def sides(draw: st.DrawFn) -> tuple[Embedded, Embedded]:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n, dim = (draw(st.integers(1, 5)) for _ in range(3))
    x, y = (random.normal(0, 1, (k, dim)) for k in (m, n))
    return tuple(  # type: ignore[return-value]  # two of them
        embedded(v, tuple(random.choice(["N", "V"], len(v)))) for v in (x, y)
    )


@pytest.mark.parametrize("row", rows("similarity"))
@given(both=sides())
def test_a_similarity_is_a_matrix_within_its_bounds(
    row: Row, both: tuple[Embedded, Embedded]
) -> None:
    similarity = em.build(row.spec)
    found = similarity(*both)
    low, high = similarity_bounds(similarity)
    assert found.shape == (len(both[0].vectors), len(both[1].vectors))
    assert (found >= low).all()
    assert (found <= high).all()


@pytest.mark.parametrize("row", rows("similarity"))
@given(both=sides())
def test_a_similarity_is_symmetric(row: Row, both: tuple[Embedded, Embedded]) -> None:
    similarity = em.build(row.spec)
    assert similarity(*both) == pytest.approx(similarity(*both[::-1]).T)


@pytest.mark.parametrize("row", rows("similarity"))
@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (3, 0)])
def test_an_empty_side_gives_an_empty_matrix(row: Row, shape: tuple[int, int]) -> None:
    x, y = (embedded(np.zeros((k, 4))) for k in shape)
    assert em.build(row.spec)(x, y).shape == shape


def test_the_cosine_ignores_the_norm() -> None:
    x, y = embedded(np.array([[3.0, 4.0]])), embedded(np.array([[6.0, 8.0], [-3.0, -4.0]]))
    assert em.Cosine()(x, y)[0] == pytest.approx([1.0, -1.0])
    assert em.Dot()(x, y)[0] == pytest.approx([50.0, -25.0])


def test_a_zero_vector_is_similar_to_nothing() -> None:
    x, y = embedded(np.zeros((1, 3))), embedded(np.ones((2, 3)))
    assert em.Cosine()(x, y).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("kinds", [(np.int64, np.int64), (np.int64, np.float32), (np.float16,) * 2])
def test_vectors_of_any_number_type_are_compared(kinds: tuple[type, type]) -> None:
    vectors = [[3, 4], [1, 0]]
    x, y = (dataclasses.replace(embedded(vectors), vectors=np.array(vectors, k)) for k in kinds)
    before = x.vectors.copy(), y.vectors.copy()
    assert em.Cosine()(x, y) == pytest.approx(np.array([[1, 0.6], [0.6, 1]]), abs=1e-3)
    assert np.array_equal(before[0], x.vectors)
    assert np.array_equal(before[1], y.vectors)


def test_no_cosine_exceeds_one() -> None:
    vectors = np.random.default_rng(0).normal(0, 1, (50, 384)).astype(np.float32)
    side = Embedded(Units(""), vectors, np.ones(50), np.ones(50))
    assert em.Cosine()(side, side).max() <= 1.0


def test_units_with_different_labels_are_not_similar() -> None:
    x, y = embedded(np.ones((2, 3)), ("N", "V")), embedded(np.ones((1, 3)), ("N",))
    assert em.SameLabel()(x, y) == pytest.approx(np.array([[1.0], [0.0]]))


def test_without_labels_nothing_is_set_to_zero() -> None:
    x, y = embedded(np.ones((2, 3)), ("N", "V")), embedded(np.ones((1, 3)))
    assert em.SameLabel()(x, y) == pytest.approx(np.ones((2, 1)))


def test_a_floor_raises_only_lower_values() -> None:
    x, y = embedded(np.array([[1.0, 0.0]])), embedded(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    assert em.Floor(low=0.25)(x, y).tolist() == [[0.25, 1.0]]


@pytest.mark.parametrize(
    ("similarity", "bounds"),
    [
        (em.Cosine(), (-1, 1)),
        (em.Dot(), (-np.inf, np.inf)),
        (em.Floor(low=0.2), (0.2, 1)),
        (em.SameLabel(em.Floor(low=0.2)), (0, 1)),
        (em.Floor(em.Dot(), 0.0), (0, np.inf)),
    ],
)
def test_bounds_follow_from_the_base_similarity(
    similarity: Similarity, bounds: tuple[float, float]
) -> None:
    assert similarity_bounds(similarity) == bounds


def test_a_floor_must_be_a_number() -> None:
    with pytest.raises(InputError, match="Floor's low takes a number, got 'low'"):
        em.Floor(low="low")  # type: ignore[arg-type]  # the wrong type is the point
