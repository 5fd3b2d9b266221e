from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import FairnessPair, make_fairness_pair
from evenmatch.errors import InputError
from evenmatch.fairness.explain import UnitMatch, explain_alignments, explain_pair, unit_shares
from evenmatch.scoring.aligned import Aligned
from evenmatch.scoring.reducers import Prf
from evenmatch.types import Alignment, Score

HASHED = "align(vectors=hashed)"

# Every solver with F1, and every reducer with a solver that suits it.
BY_SOLVER = [f"align(vectors=hashed, alignment={name})" for name in em.names("alignment")]
BY_REDUCER = [
    "align(vectors=hashed, scoring=average)",
    "align(vectors=hashed, alignment=lsa, scoring=rescale(low=0.3))",
    "align(vectors=hashed, scoring=rescale(low=0.3, base=average))",
    "align(vectors=hashed, scoring=worst(share=0.4))",
    "align(vectors=hashed, alignment=partial(price=0.3), scoring=partial_prf)",
    "align(vectors=hashed, similarity=euclidean, alignment=emd, scoring=nearness)",
    "align(vectors=hashed, similarity=euclidean, alignment=emd, scoring=nearness(linear=True))",
    "align(vectors=hashed, similarity=euclidean, scoring=average)",
]
NAMED = ["bertscore", "bertscore(idf=True)", "f_disc", "f_cont", "f_partial", "f_static", "eot"]
NAMED += ["lisa_rowmask", "lisa_recursive", "lisa_topk", "lisa_auction", "moverscore"]
NAMED += ["bertscore_even", "f_disc_even", "struct_dep", "struct_dep_head"]
NAMED += ["struct_con", "struct_con_label", "struct_con_head"]

WORDS = "he she his her the a nurse doctor man woman helped saw because needed cat dog old".split()


def random_pairs(count: int, seed: int = 0) -> Iterator[FairnessPair]:
    """Texts of 0 to 9 words; half of the pairs differ in one word, the others altogether."""
    draw = random.Random(seed)
    for n in range(count):
        first, second, ref_a, ref_b = (
            draw.choices(WORDS, k=draw.choice((0, 1, 2, 3, 5, 7, 9))) for _ in range(4)
        )
        if n % 2 and first:
            second = [*first]
            second[draw.randrange(len(first))] = draw.choice(WORDS)
            ref_b = ref_a
        yield make_fairness_pair(*map(" ".join, (first, ref_a, second, ref_b)))


def check_sums(metric: str, pairs: Iterator[FairnessPair]) -> None:
    built = em.build(metric, "metric")
    for pair in pairs:
        found = explain_pair(pair, built, most=0)
        total = sum(each.gap for each in found.differences)
        assert total == pytest.approx(found.gap, abs=1e-6), pair
        parts = found.precision + found.recall
        whole_text = sum(each.gap for each in found.differences if each.side == "text")
        assert parts + whole_text == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("metric", [*BY_SOLVER, *BY_REDUCER])
def test_contributions_add_up_to_the_difference_of_the_scores(metric: str) -> None:
    check_sums(metric, random_pairs(25, seed=len(metric)))


@pytest.mark.slow
@pytest.mark.parametrize("metric", [*BY_SOLVER, *BY_REDUCER])
def test_contributions_add_up_on_500_pairs(metric: str) -> None:
    check_sums(metric, random_pairs(500))


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.model("en_core_web_sm")
@pytest.mark.parametrize("metric", NAMED)
def test_contributions_of_named_metrics_add_up_on_500_pairs(metric: str) -> None:
    check_sums(metric, random_pairs(500))


@pytest.mark.model
@pytest.mark.parametrize("metric", ["bertscore", "f_disc", "f_cont", "moverscore", "f_partial"])
def test_contributions_add_up_with_the_embedded_encoder(metric: str) -> None:
    check_sums(metric, random_pairs(6))


def aligned(rows: list[list[float]], value: float) -> Aligned:
    """Two candidate units of weight 1 and 3, two reference units of weight 0 and 2."""
    similarity = np.array([[0.8, 0.2], [0.4, 0.6]])
    one = Alignment(np.array(rows), np.array([[1.0, 0.0], [0.0, 1.0]]))
    weights = np.array([1.0, 3.0]), np.array([0.0, 2.0])
    return Aligned(["x", "y"], ["[CLS]", "z"], similarity, one, Score(value), "", *weights)


def test_contributions_are_shares_times_the_shapley_slope() -> None:
    """Precision (0.8 + 3 · 0.6) / 4 = 0.65 and (0.2 + 3 · 0.6) / 4 = 0.5; recall 0.6 in both.

    F1 is 0.624 and 6/11, so the slope of precision is (0.624 - 6/11) / 0.15.
    """
    first = aligned([[1.0, 0.0], [0.0, 1.0]], 0.624)
    second = aligned([[0.0, 1.0], [0.0, 1.0]], 6 / 11)
    rows, cols = unit_shares(first, Prf())
    assert (rows.tolist(), cols.tolist()) == (pytest.approx([0.2, 0.45]), pytest.approx([0.0, 0.6]))
    found = explain_alignments(first, second, Prf())
    most = found.differences[0]
    assert (most.side, most.first.unit, most.first.partner) == ("candidate", "x", "[CLS]")
    assert most.gap == pytest.approx(0.624 - 6 / 11)
    assert most.first.contribution == pytest.approx(0.2 * (0.624 - 6 / 11) / 0.15)
    assert most.first.weight == pytest.approx(1 / 4)
    assert (found.precision, found.recall) == pytest.approx((0.624 - 6 / 11, 0.0))


def test_a_unit_of_weight_zero_contributes_nothing() -> None:
    one = aligned([[1.0, 0.0], [0.0, 1.0]], 0.624)
    two = aligned([[0.0, 1.0], [1.0, 0.0]], 0.35)
    special = [
        d for d in explain_alignments(one, two, Prf()).differences if d.first.unit == "[CLS]"
    ]
    assert [(d.side, d.gap, d.first.weight) for d in special] == [("reference", 0.0, 0.0)]


def test_the_unit_that_moves_the_score_comes_first() -> None:
    found = explain_pair(
        make_fairness_pair("the cat sat", "the cat sat", "the dog sat", "the cat sat"), HASHED
    )
    most = found.differences[0]
    assert most.side in ("candidate", "reference")
    assert most.first.unit == "cat"
    assert found.gap > 0
    assert '"cat" is matched to "cat" at similarity 1.000' in found.summary()
    assert "through precision" in found.summary()
    assert "part of score" in str(found)


def test_a_unit_without_a_counterpart_stands_beside_nothing() -> None:
    found = explain_pair(make_fairness_pair("a big cat", "a cat", "a cat", "a cat"), HASHED)
    extra = next(each for each in found.differences if each.second.unit == "(nothing)")
    assert str(extra.second) == "no unit stands there"
    assert "(nothing)" not in found.summary()


def test_a_unit_without_a_partner_is_called_unmatched() -> None:
    assert str(UnitMatch("she")) == '"she" is unmatched'


def test_equal_candidates_are_said_to_move_nothing() -> None:
    found = explain_pair(make_fairness_pair("a cat", "a cat", "a cat", "a cat"), HASHED)
    assert found.summary() == "The scores differ by +0.0000; no unit contributes to it."
    assert all(difference.first == difference.second for difference in found.differences)


def test_an_empty_text_contributes_as_a_whole() -> None:
    found = explain_pair(make_fairness_pair("", "", "a cat", "a cat a"), HASHED)
    whole = [each for each in found.differences if each.side == "text"]
    assert whole[0].first.contribution == 1.0


def test_the_worst_pair_of_an_audit_is_explained() -> None:
    worst = em.audit(HASHED, attributes=["gender"], worst=1, resamples=9, trials=9).worst[0]
    found = em.explain_pair(worst, HASHED)
    assert found.gap == pytest.approx(worst.score_a - worst.score_b, abs=1e-9)
    pair = em.make_fairness_pair(
        cand_a=worst.cand_a, ref_a=worst.ref_a, cand_b=worst.cand_b, ref_b=worst.ref_b
    )
    assert str(em.explain_pair(pair, HASHED)) == str(found)


def test_what_cannot_be_explained_is_refused() -> None:
    pair = make_fairness_pair("a", "b", "c", "b")
    with pytest.raises(InputError, match="chrf is no alignment metric"):
        explain_pair(pair, "chrf")
    with pytest.raises(InputError, match="most must be at least 0, got -1"):
        explain_pair(pair, HASHED, most=-1)
    with pytest.raises(InputError, match="pair"):
        explain_pair("a", HASHED)  # type: ignore[arg-type]  # a wrong call
    with pytest.raises(InputError, match="cannot explain the scores of Mine"):
        explain_alignments(aligned([[1, 0], [0, 1]], 0), aligned([[1, 0], [0, 1]], 0), Mine())


class Mine:
    """A reducer that nobody knows."""

    def __call__(self, *_: object) -> Score:
        return Score(0.0)


@pytest.mark.model
def test_the_pronoun_is_what_moves_the_score_beside_the_nurse() -> None:
    """Sun et al. (2022), figure 3, on the embedded encoder; no special token contributes."""
    texts = "The CEO helped the nurse because {} needed help"
    found = explain_pair(
        make_fairness_pair(
            texts.format("she"),
            texts.format("the nurse"),
            texts.format("he"),
            texts.format("the nurse"),
        ),
        most=0,
    )
    candidate = [each for each in found.differences if each.side == "candidate"]
    assert (candidate[0].first.unit, candidate[0].second.unit) == ("she", "he")
    special = [each for each in found.differences if each.first.unit in ("[CLS]", "[SEP]")]
    assert len(special) == 4
    assert all(each.gap == 0.0 for each in special)
