from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import evenmatch as em
from evenmatch.errors import InputError
from tests.support.strategies import sentences

METRICS = [
    "align(vectors=hashed)",
    "align(units=words(lower=True), vectors=hashed, alignment=lsa)",
    "align(vectors=hashed(mass=norm), alignment=emd)",
    *(pytest.param(n, marks=pytest.mark.model) for n in ("bertscore", "f_disc", "f_cont")),
    pytest.param("bertscore(marks=False)", marks=pytest.mark.model),
    pytest.param("f_disc(marks=True)", marks=pytest.mark.model),
    pytest.param("align(units=words)", marks=pytest.mark.model),
    pytest.param("align(vectors=lookup(model='minilm'))", marks=pytest.mark.model),
    pytest.param(
        "align(units=pieces(marks=True), vectors=lookup(model='minilm'))", marks=pytest.mark.model
    ),
]
ALL = pytest.mark.parametrize("metric", METRICS)


@ALL
@given(candidate=sentences(), reference=sentences())
@settings(max_examples=6)
def test_an_alignment_is_the_one_that_was_scored(
    metric: str, candidate: str, reference: str
) -> None:
    aligned = em.align(candidate, reference, metric)
    shape = (len(aligned.candidate_units), len(aligned.reference_units))
    assert aligned.similarity.shape == aligned.alignment.rows.shape == shape
    (score,) = em.score([candidate], [reference], metric).segments
    assert aligned.score.value == pytest.approx(score.value, abs=1e-6)
    assert aligned.score.flags == score.flags


@ALL
def test_an_alignment_reads_as_a_table(metric: str) -> None:
    lines = str(em.align("the cat sat sat", "the cat sat", metric)).splitlines()
    assert lines[0].split() == ["candidate", "weight", "similarity", "reference"]
    assert lines[-1].startswith("score ")
    assert any("cat" in line and line.rstrip().endswith("cat") for line in lines)


def test_a_word_that_nobody_took_is_shown_as_unmatched() -> None:
    aligned = em.align("the cat sat sat", "the cat sat", "align(vectors=hashed, alignment=lsa)")
    assert [(i, j) for i, j, _ in aligned.pairs] == [(0, 0), (1, 1), (2, 2)]
    assert [line.split() for line in str(aligned).splitlines() if "unmatched" in line] == [
        ["sat", "-", "-", "(unmatched)"]
    ]
    aligned = em.align("the cat", "the cat sat", "align(vectors=hashed, alignment=lsa)")
    assert "(unmatched)       -           -  sat" in str(aligned)


def test_the_weight_of_a_pair_is_the_mean_of_both_shares() -> None:
    aligned = em.align("a a", "a", "align(vectors=hashed)")
    assert aligned.pairs == [(0, 0, 1.0), (1, 0, 0.5)]


@pytest.mark.model
def test_units_are_tokens_as_written_in_the_text() -> None:
    aligned = em.align("Unbelievably", "X", "f_disc")
    assert "".join(aligned.candidate_units) == "Unbelievably"
    assert len(aligned.candidate_units) > 1
    assert em.align("cat", "cat", "bertscore").candidate_units == ["[CLS]", "cat", "[SEP]"]


@pytest.mark.model
def test_tokens_after_leading_spaces_and_surrogates_keep_their_spans() -> None:
    assert em.align("  \u3000the cat", "x", "f_disc").candidate_units == ["the", "cat"]
    assert em.align("a \ud800 b", "x", "f_disc").candidate_units[-1] == "b"


def test_only_alignment_metrics_align() -> None:
    with pytest.raises(InputError, match="only alignment metrics can align texts, such as"):
        em.align("a", "b", "bleu")


def test_an_alignment_says_what_made_it() -> None:
    aligned = em.align("a b", "b a", "align(vectors=hashed)")
    assert aligned.signature == em.score(["a"], ["a"], "align(vectors=hashed)").signature
    assert np.isfinite(aligned.similarity).all()


@pytest.mark.model
def test_sub_words_that_continue_a_word_are_shown_as_such() -> None:
    aligned = em.align("A walkathon, it's 猫猫.", "walkathon", "bertscore")
    assert aligned.labels[0] == "[CLS] A walk ##ath ##on , it ' s 猫 猫 . [SEP]".split()
    assert aligned.labels[1] == "[CLS] walk ##ath ##on [SEP]".split()
    assert "##ath" in str(aligned)
    flat = em.align("walkathon walkathon", "a", "align(vectors=hashed)")
    assert flat.labels[0] == flat.candidate_units


def test_long_units_are_shortened_in_the_printed_table() -> None:
    text = "a very long sentence about nothing at all " * 4 + "."
    lines = str(em.align(text, text, "align(units=sentences, vectors=hashed)")).splitlines()
    assert all(len(line) < 160 for line in lines)
    assert "…" in lines[1]
