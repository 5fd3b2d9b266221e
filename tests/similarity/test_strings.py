from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.similarity.strings import Exact, PhraseStringSimilarity, edit_similarity, token_f1
from evenmatch.types import Embedded
from evenmatch.units.keyphrases import Phrases
from evenmatch.vectors.hashed import Bare

WORDS = st.lists(st.sampled_from("abcd"), max_size=5).map(tuple)


def listed(text: str) -> Embedded:
    return Bare()([Phrases(stem="none")(text)])[0]


# Published examples (SPEC 6.1); the words are already stemmed
@pytest.mark.parametrize(
    ("p", "edits", "overlap", "mean"),
    [
        ("natur languag gener", 2 / 3, 2 / 3, 0.666667),
        ("appl tree", 0, 0, 0),
        ("languag natur process", 1 / 3, 1, 0.666667),
        ("natur languag process", 1, 1, 1),
    ],
)
def test_published_examples_of_phrase_similarity(
    p: str, edits: float, overlap: float, mean: float
) -> None:
    words, target = tuple(p.split()), ("natur", "languag", "process")
    assert edit_similarity(words, target) == pytest.approx(edits)
    assert token_f1(words, target) == pytest.approx(overlap)
    found = PhraseStringSimilarity()(listed(p), listed("natur languag process"))
    assert found[0, 0] == pytest.approx(mean, abs=1e-6)


@given(WORDS, WORDS)
def test_phrases_without_a_common_word_are_0_and_equal_ones_1(
    p: tuple[str, ...], q: tuple[str, ...]
) -> None:
    for compare in (edit_similarity, token_f1):
        assert 0 <= compare(p, q) <= 1
        if not set(p) & set(q):
            assert compare(p, q) == 0
        assert compare(p, p) == (1 if p else 0)


@given(WORDS, WORDS, WORDS)
def test_the_edit_distance_satisfies_the_triangle_inequality(
    p: tuple[str, ...], q: tuple[str, ...], r: tuple[str, ...]
) -> None:
    def distance(a: tuple[str, ...], b: tuple[str, ...]) -> float:
        return (1 - edit_similarity(a, b)) * max(len(a), len(b))

    assert distance(p, r) <= distance(p, q) + distance(q, r) + 1e-9


def test_only_equal_phrases_match_and_empty_ones_never() -> None:
    x = listed("a b; b a; c")
    emptied = Embedded(
        em.Units("", x.units.words, x.units.spans, ((), *x.units.groups[1:])),
        x.vectors,
        x.weights,
        x.mass,
    )
    assert Exact()(x, listed("b a; a b")).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert Exact()(emptied, emptied).tolist() == np.diag([0, 1, 1]).tolist()
