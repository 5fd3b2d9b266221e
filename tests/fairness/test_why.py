from __future__ import annotations

import pytest

from evenmatch.data.fairness_sets import make_fairness_pair
from evenmatch.fairness.explain import explain_pair

HASHED = "align(vectors=hashed)"


def test_the_unit_that_moves_the_score_comes_first() -> None:
    found = explain_pair(
        make_fairness_pair("the cat sat", "the cat sat", "the dog sat", "the cat sat"), HASHED
    )
    first = found.differences[0]
    assert (first.unit_a, first.partner_a, first.unit_b) == ("cat", "cat", "dog")
    assert first.gap > 0.5
    assert found.gap > 0
    assert '"cat" is matched to "cat" at similarity 1.000, "dog" to' in found.summary()
    assert "matched to" in str(found)


def test_a_unit_without_a_counterpart_stands_beside_nothing() -> None:
    found = explain_pair(make_fairness_pair("a big cat", "a cat", "a cat", "a cat"), HASHED)
    assert {share.unit_b for share in found.differences} >= {"(nothing)"}


def test_equal_candidates_are_said_to_move_nothing() -> None:
    found = explain_pair(make_fairness_pair("a cat", "a cat", "a cat", "a cat"), HASHED)
    assert found.summary() == "The scores differ by +0.0000; no unit is matched differently."
    assert all(share.unit_a == share.unit_b for share in found.differences)
    assert all(share.partner_a == share.partner_b for share in found.differences)


@pytest.mark.model
def test_the_pronoun_is_what_moves_the_score_beside_the_nurse() -> None:
    """Paper 003's figure 3, on the embedded encoder."""
    texts = "The CEO helped the nurse because {} needed help"
    found = explain_pair(
        make_fairness_pair(
            texts.format("she"),
            texts.format("the nurse"),
            texts.format("he"),
            texts.format("the nurse"),
        )
    )
    assert (found.differences[0].unit_a, found.differences[0].unit_b) == ("she", "he")
