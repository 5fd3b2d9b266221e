from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.training.rewards import repeated_share

LSA = em.reward("align(vectors=hashed, alignment=lsa)")


def pair(candidate: str, *references: str) -> em.Pair:
    return em.Pair(candidate, references)


def test_length_is_worth_1_within_its_bounds_and_falls_outside() -> None:
    wanted = "one two three four"
    given = [pair(" ".join(["word"] * n), wanted) for n in (1, 2, 4, 5, 10, 20)]
    assert em.length_term(0.5, 1.25)(given) == [0.5, 1.0, 1.0, 1.0, 0.5, 0.25]


def test_the_reference_whose_length_suits_best_counts() -> None:
    assert em.length_term(1, 1)([pair("a b", "a b c d", "a b", "a")]) == [1.0]


def test_repeating_pairs_of_words_costs_their_share() -> None:
    texts = ("the cat sat", "the cat the cat", "the the the the the", "word")
    assert em.repetition_term()([pair(t, "x") for t in texts]) == pytest.approx([1, 2 / 3, 0.25, 1])


def test_letters_of_either_case_are_the_same_word() -> None:
    assert em.repetition_term(1)([pair("The the", "x")]) == [0.5]


def test_repeating_pays_less_with_the_term_than_without() -> None:
    plain, repeated = pair("a cat sat", "a cat sat"), pair("a cat sat a cat sat", "a cat sat")
    shaped = LSA * em.repetition_term() * em.length_term()
    (a, b), (c, d) = LSA([plain, repeated]), shaped([plain, repeated])
    assert c == pytest.approx(a)
    assert d < 0.6 * b


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
@pytest.mark.parametrize("term", [em.length_term(), em.repetition_term()], ids=["length", "repeat"])
def test_text_without_words_is_worth_0_and_counted(term: em.Reward, text: str) -> None:
    found = term.evaluate([pair("a cat", "a cat"), pair(text, "a cat")])
    assert (found.values[1], found.odd) == (0.0, (1,))


def test_a_reference_without_words_has_no_length() -> None:
    assert em.length_term().evaluate([pair("a cat", "")]).odd == (0,)
    assert em.length_term()([pair("a cat", "", "a dog")]) == [1.0]


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_no_text_raises_and_terms_stay_between_0_and_1(text: str, references: list[str]) -> None:
    mixed = em.length_term() * em.repetition_term(3)
    assert 0.0 <= mixed([pair(text, *references)])[0] <= 1.0


def test_terms_join_pickle_and_sign() -> None:
    mixed = (0.5 * LSA + em.length_term(0.5, 2) - (1 - em.repetition_term(3))).clip(0, 1)
    some = [pair("a cat", "a cat"), pair("a a a a", "b")]
    assert pickle.loads(pickle.dumps(mixed))(some) == mixed(some)
    assert "length_term(low=0.5, high=2.0)" in mixed.signature
    assert "repetition_term(size=3)" in mixed.signature
    assert em.length_term().signature.endswith(f" · evenmatch {em.__version__}")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1.5, 2), (0.5, 0.8), (-1, 1)])
def test_lengths_that_leave_the_reference_out_are_refused(low: float, high: float) -> None:
    with pytest.raises(em.InputError, match="needs 0 < low <= 1 <= high"):
        em.length_term(low, high)


@pytest.mark.parametrize("size", [0, 1.5, "2"])
def test_runs_of_no_words_are_refused(size: object) -> None:
    with pytest.raises(em.InputError, match="a size of at least 1 word"):
        em.repetition_term(size)  # type: ignore[arg-type]  # on purpose


def test_short_texts_repeat_nothing() -> None:
    assert repeated_share(["a"], 2) == repeated_share([], 1) == 0.0
