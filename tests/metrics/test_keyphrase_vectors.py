"""The worked examples of the FG score and of F1@k, and the published figures on real predictions.

Words are stems already, so stemming is turned off where it would cut them again.
"""

from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em
from evenmatch.metrics.keyphrases.phrase_reducers import F1At
from evenmatch.types import Alignment, Embedded, Units


def score(metric: str, candidate: str, reference: str) -> float:
    return em.score([candidate], [reference], metric).segments[0].value


def fg(candidate: str, reference: str, mode: str = "released") -> float:
    return score(f"fg(stem='none', mode={mode!r})", candidate, reference)


@pytest.mark.parametrize("mode", ["released", "paper"])
@pytest.mark.parametrize(
    ("candidate", "reference", "value"),
    [
        ("a b", "a b; c; d", 0.555556),
        ("a b; a c; b c", "a b; c d", 0.296296),
        ("a b; a b c; d", "a b c; d", 0.592593),
        ("natur process; natur languag; natur natur natur", "natur languag process", 0.135802),
        ("x1 a b; c a; c", "a b; c d", 0.390123),
        ("deep learn; deep; learn", "deep learn", 0.185185),
        ("a", "", 0),
        ("", "a", 0),
        ("", "", 1),
    ],
)
def test_fg_gives_the_published_vectors_in_both_modes(
    mode: str, candidate: str, reference: str, value: float
) -> None:
    assert fg(candidate, reference, mode) == pytest.approx(value, abs=1e-6)


def test_a_rejected_phrase_leaves_its_words_free_in_the_released_rules_only() -> None:
    lists = "a b; a c; c x y z", "a b; c d"
    assert fg(*lists) == pytest.approx(0.382716, abs=1e-6)
    assert fg(*lists, "paper") == pytest.approx(0.296296, abs=1e-6)


def test_a_phrase_that_scores_a_tenth_or_less_is_wrong_in_the_released_rules_only() -> None:
    lists = "a " + " ".join(f"x{i}" for i in range(14)), "a b"
    assert fg(*lists) == 0
    assert fg(*lists, "paper") == pytest.approx(0.092157, abs=1e-6)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("similarity=token_f1", 0.8),
        ("similarity=edit", 2 / 3),
        ("repetition=False", (1 + 0.733333) / 2 * 0.75),
        ("quantity=False", 0.5),
    ],
)
def test_each_ablation_leaves_out_its_own_part(setting: str, value: float) -> None:
    lists = ("a b", "a b c") if "similarity" in setting else ("a b c; a b", "a b c")
    assert score(f"fg(stem='none', {setting})", *lists) == pytest.approx(value, abs=1e-6)


def side(count: int) -> Embedded:
    return Embedded(Units(""), np.zeros((count, 0)), np.ones(count), np.ones(count))


# |Y| is 4, 4, 4, 5, 5, 4, 4 and 3; the last is documents without a prediction
@pytest.mark.parametrize(
    ("matches", "wanted", "k", "precision", "recall", "value"),
    [
        ([1, 0, 1], 4, 5, 0.4, 0.5, 0.4444),
        ([1, 0, 1], 4, "M", 0.6667, 0.5, 0.5714),
        ([1, 0, 1], 4, "G", 0.5, 0.5, 0.5),
        ([1, 1, 0, 0, 1, 1, 0], 5, 5, 0.6, 0.6, 0.6),
        ([1, 1, 0, 0, 1, 1, 0], 5, "M", 0.5714, 0.8, 0.6667),
        ([1, 0], 4, 5, 0.2, 0.25, 0.2222),
        ([1, 0], 4, "G", 0.25, 0.25, 0.25),
        ([1, 0, 0, 1, 1], 3, "O", 0.3333, 0.3333, 0.3333),
        ([], 3, 5, 0, 0, 0),
        ([], 3, "M", 0, 0, 0),
        ([], 3, "G", 0, 0, 0),
    ],
)
def test_f1_at_k_gives_the_published_vectors(
    matches: list[int], wanted: int, k: int | str, precision: float, recall: float, value: float
) -> None:
    similarity = np.zeros((len(matches), wanted))
    for column, row in enumerate(np.flatnonzero(matches)):
        similarity[row, column] = 1
    reducer = F1At(k)  # type: ignore[arg-type]  # the table mixes numbers and letters
    plan = Alignment(similarity, similarity)
    found = reducer(similarity, plan, side(len(matches)), side(wanted))
    assert (found.precision, found.recall, found.value) == pytest.approx(
        (precision, recall, value), abs=5e-5
    )


def test_without_padding_precision_is_over_the_phrases_there_are() -> None:
    found = em.score(["a; x; b"], ["a; b; c; d"], "f1_at_5(pad=False)").segments[0]
    assert found.precision == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("average", "value"), [("macro", 0.526316), ("mean", 0.523810), ("micro", 6 / 11)]
)
def test_the_score_of_many_documents_follows_the_average(average: str, value: float) -> None:
    """Documents of precision and recall (2/3, 1/2), (0, 0) and (1, 1)."""
    found = em.score(
        ["a; b; x", "x", "a"], ["a; b; c; d", "y", "a"], f"f1_at_m(average={average!r})"
    )
    assert found.corpus == pytest.approx(value, abs=1e-6)
