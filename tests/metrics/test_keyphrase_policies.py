"""Duplicates, invalid phrases, too many of them, empty lists, other languages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.errors import InputError
from evenmatch.metrics.presets import make_metric
from evenmatch.scoring.metric import score_metrics
from evenmatch.types import Pair, Run, Score

SOURCE = "we train neural networks , and parse trees ."


def one(metric: str, candidate: str, reference: str, source: str | None = None) -> Score:
    sources = None if source is None else [source]
    return em.score([candidate], [reference], metric, sources=sources).segments[0]


@pytest.mark.parametrize(("policy", "precision"), [("drop", 1), ("wrong", 0.5), ("keep", 0.5)])
def test_a_duplicate_is_dropped_or_wrong(policy: str, precision: float) -> None:
    found = one(
        f"f1_at_m(duplicates={policy!r})",
        "neural network; Neural Networks",
        "neural nets; neural network",
    )
    assert found.precision == precision


def test_a_wrong_duplicate_scores_nothing_and_is_counted_by_fg() -> None:
    kept = one("fg(duplicates='drop')", "a; a", "a")
    wrong = one("fg(duplicates='wrong')", "a; a", "a")
    assert (kept.value, wrong.value) == pytest.approx((1, 0.5 * 0.75))


@pytest.mark.parametrize("phrase", ["a , b", "a .", "<unk> b"])
@pytest.mark.parametrize(("policy", "precision"), [("drop", 1), ("wrong", 0.5), ("keep", 0.5)])
def test_an_invalid_phrase_is_dropped_wrong_or_kept(
    phrase: str, policy: str, precision: float
) -> None:
    assert one(f"f1_at_m(invalid={policy!r})", f"c; {phrase}", "c").precision == precision


def test_what_a_reference_says_is_never_invalid() -> None:
    assert one("f1_at_m(invalid='keep')", "a , b", "a , b").value == 1
    assert one("f1_at_m", "c", "c; a , b").recall == 0.5


def test_repeated_references_count_once_unless_kept() -> None:
    assert one("f1_at_m", "nets", "nets; net").recall == 1
    assert one("f1_at_m(reference_duplicates='keep')", "nets", "nets; net").recall == 0.5


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=4))
def test_kept_duplicates_match_one_to_one_and_the_first_of_them(
    given_: list[str], wanted: list[str]
) -> None:
    settings = "duplicates='keep', reference_duplicates='keep', stem='none'"
    found = one(f"f1_at_5({settings})", "; ".join(given_), "; ".join(wanted))
    # an earlier duplicate is matched first, so that what is cut off never was the match
    left, right = list(wanted), 0
    for phrase in given_[:5]:
        if phrase in left:
            left.remove(phrase)
            right += 1
    assert found.recall == pytest.approx(right / len(wanted) if wanted else 0)


def test_present_phrases_occur_consecutively_in_the_stemmed_source() -> None:
    lists = "neural network; parsing tree; deep nets", "parsed trees; network neural"
    present, absent = (one(f"f1_at_m(which={w!r})", *lists, SOURCE) for w in ("present", "absent"))
    assert (present.precision, present.recall) == (0.5, 1)
    assert (absent.precision, absent.recall) == (0, 0)


def test_only_whole_words_are_found_in_the_source() -> None:
    assert one("fg(which='present')", "net", "net", "the internet").flags == {
        "empty_candidate",
        "empty_reference",
    }


def test_a_duplicate_that_is_wrong_stays_on_its_own_side() -> None:
    metric = "f1_at_m(which='absent', duplicates='wrong')"
    assert one(metric, "x; x; neural; neural", "x", SOURCE).precision == 0.5


def test_present_phrases_need_a_source() -> None:
    with pytest.raises(InputError, match="row 0 has no source, but which='present' needs"):
        one("fg(which='present')", "a", "a")


def test_five_thousand_phrases_are_truncated_and_flagged() -> None:
    many = "; ".join(f"phrase number {i}" for i in range(5000))
    found = one("f1_at_m", many, "phrase number 7")
    assert found.precision == pytest.approx(1 / 200)
    assert found.flags == {"truncated"}
    assert one("f1_at_m(most=0)", many, "phrase number 4999").recall == 1


@pytest.mark.parametrize("metric", ["fg", "f1_at_5", "f1_at_m"])
def test_an_empty_document_keeps_its_place_and_is_flagged(metric: str) -> None:
    found = em.score(["a", "", "a"], ["a", "a", ""], metric, sources=["a", "", ""])
    assert [score.value > 0 for score in found.segments] == [True, False, False]
    assert [sorted(s.flags) for s in found.segments[1:]] == [
        ["empty_candidate"],
        ["empty_reference"],
    ]


def test_two_empty_lists_score_what_the_setting_says() -> None:
    assert one("fg", "", "").value == 1
    assert one("fg(both_empty=0.5)", "", "").value == 0.5
    assert one("f1_at_m", "", "").value == 0


@pytest.mark.parametrize(("policy", "value"), [("count", 0.5), ("skip", 1.0)])
def test_documents_without_a_reference_count_or_are_skipped(policy: str, value: float) -> None:
    found = em.score(["a", "b"], ["a", ""], f"fg(no_reference={policy!r})")
    assert (found.mean if found.corpus is None else found.corpus) == value
    assert len(found.segments) == 2


CHINESE = "我们研究神经网络的训练方法，并提出一种新的句法分析算法，用于自然语言处理。"
RUSSIAN = "Мы изучаем нейронные сети, и предлагаем новый метод разбора предложений текста."


@pytest.mark.parametrize(("source", "phrase"), [(CHINESE, "神经网络"), (RUSSIAN, "Нейронные сети")])
def test_other_languages_are_scored_and_flagged(source: str, phrase: str) -> None:
    found = one("fg(which='present')", phrase, phrase.lower(), source)
    assert found.value == 1
    assert found.flags == {"not_english"}


def test_english_is_not_flagged() -> None:
    assert not one("fg", "neural networks", "neural networks", f"{SOURCE} " * 5).flags


def test_a_semantic_similarity_sees_the_words_and_not_their_stems() -> None:
    seen: list[Pair] = []

    class Spy:
        signature, higher_is_better, bounds = "spy", True, (0.0, 1.0)

        def __call__(self, pairs: Any) -> em.Scores:
            seen.extend(pairs)
            return em.Scores(tuple(Score(0.5) for _ in pairs), "spy")

    from evenmatch.metrics.keyphrases.phrase_similarity import ByMetric

    metric = make_metric("fg", similarity=ByMetric(Spy()))
    scores = metric([Pair("Neural networks; parsing", ("deep learning",))])
    assert [(p.candidate, p.references[0]) for p in seen] == [
        ("Neural networks", "deep learning"),
        ("parsing", "deep learning"),
    ]
    assert scores.segments[0].value == pytest.approx(0.5 * 0.75)


@pytest.mark.model
def test_only_the_semantic_score_prefers_a_synonym_to_an_unrelated_phrase() -> None:
    gold = "car accidents"
    plain, semantic = "fg", "fg(similarity=by_metric)"
    for metric, better in ((plain, False), (semantic, True)):
        values = [one(metric, given, gold).value for given in ("automobile crashes", "apple trees")]
        assert (values[0] > values[1] + 0.05) is better


def test_metrics_scored_together_score_as_they_do_alone() -> None:
    pairs = [
        Pair("neural net; parse; x", ("neural networks; parsing", "x"), SOURCE),
        Pair("", ("a",), SOURCE),
        Pair("a b; a", ("a b c; b",), "a b c"),
    ]
    metrics = [
        em.build(spec)
        for spec in ("fg", "fg(which='present')", "f1_at_5", "f1_at_m(which='absent')")
    ]
    for metric, scores in zip(metrics, score_metrics(metrics, pairs, Run()), strict=True):
        alone = metric(pairs)
        assert scores == alone
        assert np.array_equal(np.asarray(scores.counts), alone.counts)


def test_token_match_is_over_phrases_and_their_best_partners() -> None:
    metric = "keyphrases(units=phrases(stem='none'), scoring=token_match)"
    found = em.score(["a b; x", "a b c d"], ["a b c; d", "a b"], metric)
    first = found.segments[0]
    assert (first.precision, first.recall) == pytest.approx((0.5, 1 / 3))
    assert found.corpus == pytest.approx((0.8 + 0 + 2 / 3) / 3)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("f1_at(k=0)", "f1_at's k must be at least 1, or 'M', 'G' or 'O', got 0"),
        ("keyphrases(most=-1)", "most must be 0 .all phrases. or more, got -1"),
    ],
)
def test_a_setting_without_meaning_is_refused(spec: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        em.build(spec)


def test_every_policy_that_is_not_the_usual_one_is_in_the_signature() -> None:
    settings = (
        "which='present', duplicates='keep', reference_duplicates='keep', invalid='wrong', "
        "most=5, no_reference='skip'"
    )
    signature = em.build(f"fg({settings})").signature
    assert signature.startswith(f"keyphrases({settings}) · evenmatch ")
    assert " · nltk " in signature
