"""What the papers claim, small enough to follow."""

from __future__ import annotations

import pytest

import evenmatch as em

GREEDY = "align(vectors=hashed)"
ONE_TO_ONE = "align(vectors=hashed, alignment=lsa)"
TRANSPORT = "align(vectors=hashed, alignment=emd)"
REFERENCE = "the cat sat on the mat"


def score(candidate: str, metric: str) -> em.Score:
    return em.score([candidate], [REFERENCE], metric).segments[0]


def test_repeating_a_word_costs_nothing_under_greedy() -> None:
    plain, padded = (score(c, GREEDY) for c in ("cat mat", "cat cat cat cat mat"))
    assert padded.precision == pytest.approx(plain.precision)
    assert padded.value >= plain.value - 1e-6


def test_repeating_a_word_does_not_pay_one_to_one() -> None:
    values = [score("cat mat" + " cat" * n, ONE_TO_ONE).value for n in range(4)]
    assert values == sorted(values, reverse=True)
    assert values[3] < values[0] - 0.05


def test_repeating_a_word_does_not_pay_under_transport() -> None:
    assert score("cat cat cat cat mat", TRANSPORT).value < score("cat mat", TRANSPORT).value + 1e-9


@pytest.mark.model
def test_repetition_that_bertscore_forgives_costs_in_f_disc() -> None:
    found = em.score(
        [REFERENCE, REFERENCE + " mat mat mat"], [REFERENCE] * 2, ["bertscore", "f_disc"]
    )
    drop = {name: s.segments[0].value - s.segments[1].value for name, s in found.items()}
    assert drop["f_disc"] > drop["bertscore"] + 0.1


def test_word_order_is_invisible_without_context() -> None:
    for metric in (GREEDY, ONE_TO_ONE, TRANSPORT):
        assert score("mat the on sat cat the", metric).value == pytest.approx(1.0)


@pytest.mark.model
def test_word_order_shows_in_context() -> None:
    found = em.score(["dog bites man", "man bites dog"], ["man bites dog"] * 2)
    assert found.segments[0].value < found.segments[1].value - 0.01


@pytest.mark.parametrize("candidate", ["the cat", "a dog sat there all day long", REFERENCE])
def test_with_equal_masses_and_weights_transport_gives_equal_precision_and_recall(
    candidate: str,
) -> None:
    found = score(candidate, TRANSPORT)
    assert found.precision == pytest.approx(found.recall)


@pytest.mark.model
def test_f_cont_weighs_by_norm_and_so_tells_precision_from_recall() -> None:
    (found,) = em.score(["the cat sat"], ["the lazy old cat sat down"], "f_cont").segments
    assert found.precision != pytest.approx(found.recall, abs=1e-3)


@pytest.mark.model
def test_a_paraphrase_beats_a_contradiction_beats_nonsense() -> None:
    reference = "The committee rejected the proposal on Tuesday."
    candidates = [
        "On Tuesday the committee turned the proposal down.",
        "The committee accepted the proposal on Tuesday.",
        "Bananas are rich in potassium.",
    ]
    for name in ("bertscore", "f_disc", "f_cont"):
        values = [s.value for s in em.score(candidates, [reference] * 3, name).segments]
        assert values[2] < min(values[:2]), name
