"""smart1: sentences matched softly by another metric."""

from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em

CANDIDATE = "The cat sat. It rained."
REFERENCE = "A cat sat. Nobody came. It rained."


def test_smart1_is_worked_by_hand_from_the_similarities_of_sentences() -> None:
    """Token F1 by ROUGE-1: {the, cat, sat} and {a, cat, sat} share 2 of 3, "it rained" is equal."""
    score = em.score([CANDIDATE], [REFERENCE], "smart1(metric=rouge1)").segments[0]
    assert score.precision == pytest.approx((2 / 3 + 1) / 2)
    assert score.recall == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert score.value == pytest.approx(2 * (5 / 6) * (5 / 9) / (5 / 6 + 5 / 9))


def test_smart1_compares_sentences_by_chrf() -> None:
    candidate, reference = CANDIDATE.replace(". ", ".\n").splitlines(), REFERENCE.split(". ")
    reference = [reference[0] + ".", reference[1] + ".", reference[2]]
    pairs = [(c, r) for c in candidate for r in reference]
    scores = em.score([c for c, _ in pairs], [r for _, r in pairs], "chrf").values
    matrix = np.array(scores).reshape(2, 3)
    found = em.score([CANDIDATE], [REFERENCE], "smart1").segments[0]
    assert found.precision == pytest.approx(matrix.max(1).mean())
    assert found.recall == pytest.approx(matrix.max(0).mean())


def test_the_order_of_sentences_does_not_matter() -> None:
    found = em.score(["It rained. We left."], ["We left. It rained."], "smart1")
    assert found.mean == pytest.approx(1.0)


def test_one_to_one_does_not_reward_a_repeated_sentence() -> None:
    greedy, one = (
        em.score(["It rained. It rained."], [REFERENCE], f"smart1(alignment={solver})").segments[0]
        for solver in ("greedy", "lsa")
    )
    assert greedy.precision == pytest.approx(1.0)
    assert one.precision is not None
    assert one.precision < 0.7


@pytest.mark.model
def test_long_texts_are_read_to_the_end() -> None:
    """f_disc alone truncates these texts before the last sentence, where they differ."""
    body = "The committee discussed the plan for the new bridge over the river. " * 60
    texts = [body + "Everybody agreed.", body + "Penguins swim."]
    alone = em.score(texts, [texts[0]] * 2, "f_disc")
    assert alone.flagged
    assert alone.values[0] == pytest.approx(alone.values[1], abs=1e-6)
    by_sentence = em.score(texts, [texts[0]] * 2, "smart1(metric=f_disc)")
    assert not by_sentence.flagged
    assert by_sentence.values[0] > by_sentence.values[1] + 1e-3
