"""Edge cases of texts: empty, unusual, foreign, damaged, very long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.types import Embedded, Score, Units

MODEL = [pytest.param(name, marks=pytest.mark.model) for name in ("bertscore", "f_disc", "f_cont")]
HASHED = [
    f"align(vectors=hashed, alignment={solver})" for solver in ("greedy", "lsa", "emd", "sinkhorn")
]
ALL = pytest.mark.parametrize("metric", [*MODEL, *HASHED])
BOTH = frozenset({"empty_candidate", "empty_reference"})


def one(candidate: str, reference: str, metric: str) -> Score:
    (score,) = em.score([candidate], [reference], metric).segments
    return score


@ALL
@pytest.mark.parametrize("nothing", ["", " ", "\n\t \u00a0\u3000"])
def test_an_empty_side_scores_0_and_two_score_1(metric: str, nothing: str) -> None:
    assert one(nothing, "a reference", metric) == Score(0, 0, 0, frozenset({"empty_candidate"}))
    assert one("a candidate", nothing, metric) == Score(0, 0, 0, frozenset({"empty_reference"}))
    assert one(nothing, nothing, metric) == Score(1, 1, 1, BOTH)
    assert one(nothing, "", metric) == Score(1, 1, 1, BOTH)


@pytest.mark.parametrize("metric", MODEL)
@pytest.mark.parametrize("invisible", ["\x00", "\x00\x00", "\u200b", "\ufeff"])
def test_a_text_of_which_the_model_sees_nothing_is_empty(metric: str, invisible: str) -> None:
    assert one(invisible, "a reference", metric) == Score(0, 0, 0, frozenset({"empty_candidate"}))
    assert one(invisible, invisible, metric) == Score(1, 1, 1, BOTH)


@ALL
def test_empty_rows_stay_in_their_places(metric: str) -> None:
    candidates = ["", "the cat", "", "a dog", " "]
    references = ["x", "the cat", "", "", "a dog"]
    scores = em.score(candidates, references, metric).segments
    assert [round(s.value, 5) for s in scores] == [0, 1, 1, 0, 0]


@ALL
@pytest.mark.parametrize(
    "text",
    [
        "cat",
        "the cat sat on the mat",
        "一只猫坐在垫子上。",
        "القطة جلست على السجادة",
        "שלום עולם",
        "naïve café — “quoted”",
        "a\x00b \x01 c",
        "lone \ud800 surrogate \udfff",
        "👩‍👩‍👧 family",
        "x" * 300,
        "<s> [CLS] </s> [PAD]",
    ],
)
def test_identical_texts_score_1(metric: str, text: str) -> None:
    score = one(text, text, metric)
    assert score.value == pytest.approx(1.0, abs=1e-5)
    assert not score.flags & BOTH


@pytest.mark.parametrize("metric", MODEL)
def test_two_emoji_that_the_model_does_not_know_are_flagged(metric: str) -> None:
    score = one("🦩", "🪗", metric)
    assert "unknown_only" in score.flags
    assert "unknown_only" not in one("good 🦩", "good 🪗", metric).flags


@ALL
def test_one_word_against_many_is_scored(metric: str) -> None:
    score = one("cat", "the cat sat on the mat", metric)
    assert score.precision is not None
    assert score.recall is not None
    assert 0 < score.value < 1
    assert score.precision >= score.recall - 1e-9


@pytest.mark.parametrize("metric", MODEL)
def test_a_text_of_100_000_characters_is_truncated_and_flagged(metric: str) -> None:
    long = "the cat sat on the mat. " * 4200
    assert len(long) > 100_000
    score = one(long, "the cat sat on the mat.", metric)
    assert score.flags == {"truncated"}
    assert one("the cat", long, metric).flags == {"truncated"}
    assert one("the cat", "the cat", metric).flags == frozenset()


def test_a_text_of_100_000_characters_needs_no_limit_without_a_model() -> None:
    words = " ".join(f"w{i}" for i in range(1500))
    assert one(words * 9, words, "align(vectors=hashed(dim=8))").flags == frozenset()


@pytest.mark.model
def test_a_long_text_in_windows_is_compared_to_its_end() -> None:
    start, end = "the cat sat on the mat. " * 100, " and then it rained heavily in the north."
    long = start + end
    for name in ("bertscore", "f_disc"):
        cut, whole = (one(end, long, f"{name}(long='{how}')") for how in ("truncate", "windows"))
        assert cut.flags == {"truncated"}
        assert whole.flags == frozenset()
        assert whole.precision is not None
        assert cut.precision is not None
        assert whole.precision > cut.precision
        assert one(long, long, f"{name}(long='windows')").value == pytest.approx(1.0, abs=1e-5)


@pytest.mark.model
def test_a_text_that_is_too_long_can_be_an_error() -> None:
    with pytest.raises(InputError, match="tokens and minilm takes 512; shorten it, or set long="):
        one("word " * 600, "word", "bertscore(long='error')")


@dataclass(frozen=True)
class Lost:
    """An encoder whose vectors are no numbers where the text has an x in it."""

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return [
            Embedded(e.units, e.vectors * (np.nan if "x" in e.units.text else 1), e.weights, e.mass)
            for e in em.Hashed()(batch)
        ]


def test_vectors_that_are_no_numbers_are_refused_with_their_text() -> None:
    metric = em.AlignMetric(vectors=Lost())
    with pytest.raises(InputError, match="a similarity is not a number for the candidate 'an x'"):
        em.score(["fine", "an x"], ["fine", "other"], metric)
    with pytest.raises(InputError, match="a similarity is not a number"):
        em.align("an x", "other", metric)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_similarity_that_is_no_number_is_refused(wrong: float) -> None:
    for solver in em.names("alignment"):
        with pytest.raises(InputError, match="similarity contains a value that is not finite"):
            em.solve([[1.0, wrong]], solver)


def test_no_pairs_give_no_scores() -> None:
    scores = em.build(HASHED[0])([])
    assert scores.segments == ()
    assert math.isnan(scores.mean)


def test_units_that_share_nothing_are_flagged() -> None:
    (score,) = em.score(
        ["a"], ["b"], "align(vectors=hashed, similarity=floor(low=0.0), alignment=lsa)"
    ).segments
    assert score.flags == ({"no_match"} if score.value == 0 else frozenset())
    orthogonal = em.AlignMetric(vectors=em.Hashed(), similarity=Nothing())
    (score,) = em.score(["a"], ["b"], orthogonal).segments
    assert score == Score(0, 0, 0, frozenset({"no_match"}))


@dataclass(frozen=True)
class Nothing:
    """A similarity that finds nothing alike."""

    def __call__(self, x: Embedded, y: Embedded) -> object:
        return np.zeros((len(x.vectors), len(y.vectors)))
