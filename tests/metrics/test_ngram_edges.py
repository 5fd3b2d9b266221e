"""N-gram metrics on unusual text: empty, short, in any script, in symbols."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenmatch as em

OVERLAP = (
    "bleu",
    "bleu_nltk",
    "chrf",
    "chrf_nltk",
    "meteor",
    "nist",
    "rouge1",
    "rouge2",
    "rougeL",
)
ALL = (*OVERLAP, "ter")
NO_WORD = ("", " ", "\n\t", "\u3000")
EVERY_SCRIPT = {
    "Latin": "The quick brown fox",
    "Latin with marks": "Čeština má háčky",
    "Cyrillic": "Быстрая коричневая лиса",
    "Greek": "Η γρήγορη αλεπού",
    "Arabic": "الثعلب البني السريع",
    "Hebrew": "השועל החום המהיר",
    "Devanagari": "तेज़ भूरी लोमड़ी",
    "Chinese": "敏捷的棕色狐狸",
    "Japanese": "素早い茶色のキツネ",
    "Korean": "빠른 갈색 여우",
    "Thai": "สุนัขจิ้งจอกสีน้ำตาล",
    "emoji": "🦊 🟤 💨",
    "a family": "👨\u200d👩\u200d👧 👍🏽",
    "punctuation": "!? ...",
    "digits": "1 2 3",
}
ODD = (
    *EVERY_SCRIPT.values(),
    "one",
    "😀",
    "猫",
    "\u200b",
    "\ud83d",
    "\x00",
    "<skipped>",
    "&amp; &quot;",
    "| | |",
    "a" * 5000,
    "a " * 300,
    "猫 means cat",
)
any_text = st.text(max_size=30) | st.sampled_from(ODD)


def one(candidate: str, reference: str, metric: str) -> em.Score:
    return em.score([candidate], [reference], metric).segments[0]


def said(score: em.Score) -> tuple[float, set[str]]:
    return score.value, set(score.flags)


@pytest.mark.parametrize("metric", ALL)
@given(candidate=any_text, references=st.lists(any_text, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_any_text_scores_within_bounds(metric: str, candidate: str, references: list[str]) -> None:
    part = em.build(metric)
    scores = part([em.Pair(candidate, tuple(references))])
    low, high = part.bounds
    assert all(low <= score.value <= high for score in scores.segments)
    assert all(math.isfinite(score.value) for score in scores.segments)
    assert scores.corpus is None or math.isfinite(scores.corpus)


@pytest.mark.parametrize("metric", OVERLAP)
@pytest.mark.parametrize("nothing", NO_WORD)
def test_an_empty_side_scores_0_and_two_score_1_in_their_rows(metric: str, nothing: str) -> None:
    candidates = ["a b c d e", nothing, "a b c d e", nothing, "a b c d e"]
    references = ["a b c d e", "a b c d e", nothing, nothing, "a b c d e"]
    first, no_candidate, no_reference, neither, last = em.score(
        candidates, references, metric
    ).segments
    assert first == last
    assert first.value > 0
    assert first.flags == frozenset()
    assert said(no_candidate) == (0, {"empty_candidate"})
    assert said(no_reference) == (0, {"empty_reference"})
    assert said(neither) == (1, {"empty_candidate", "empty_reference"})


def test_rouges_empty_sides_have_precision_and_recall_too() -> None:
    for candidate, reference, value in (("", "a", 0), ("a", "", 0), ("", "", 1)):
        score = one(candidate, reference, "rougeL")
        assert (score.precision, score.recall) == (value, value)


def test_ter_keeps_its_own_rule_for_empty_sides() -> None:
    candidates, references = ["", "a b", "", "a b"], ["a b", "", "", "a b"]
    found = em.score(candidates, references, "ter").segments
    assert [score.value for score in found] == [1, 1, 0, 0]
    assert [score.flags for score in found] == [
        {"empty_candidate"},
        {"empty_reference"},
        {"empty_candidate", "empty_reference"},
        frozenset(),
    ]


@pytest.mark.parametrize("metric", OVERLAP)
def test_an_empty_candidate_equals_an_empty_reference_among_others(metric: str) -> None:
    score = em.score([""], [["a b", ""]], metric).segments[0]
    assert said(score) == (1, {"empty_candidate", "empty_reference"})


@pytest.mark.parametrize("metric", OVERLAP)
def test_an_empty_reference_among_others_raises_no_flag(metric: str) -> None:
    score = em.score(["a b c d e"], [["", "a b c d e"]], metric).segments[0]
    assert score.value > 0
    assert score.flags == frozenset()


@pytest.mark.parametrize("metric", OVERLAP)
def test_texts_with_nothing_in_common_are_flagged(metric: str) -> None:
    score = one("abc def", "uvw xyz", metric)
    assert said(score) == (0, {"no_match"})


@pytest.mark.parametrize("metric", ["bleu", "chrf", "rouge1", "rougeL"])
@pytest.mark.parametrize("text", [*EVERY_SCRIPT.values(), "one", "猫", "😀"])
def test_equal_texts_score_1_in_every_script(metric: str, text: str) -> None:
    assert one(text, text, metric).value == pytest.approx(1)


@pytest.mark.parametrize("text", [*EVERY_SCRIPT.values(), "one", "猫", "😀"])
def test_equal_texts_need_no_edit_in_any_script(text: str) -> None:
    assert one(text, text, "ter").value == 0


@pytest.mark.parametrize("metric", ["rouge2", "nist", "meteor", "bleu_nltk", "chrf_nltk"])
@pytest.mark.parametrize("text", EVERY_SCRIPT.values())
def test_equal_texts_of_several_words_score_above_0_in_every_script(metric: str, text: str) -> None:
    assert one(text, text, metric).value > 0


def test_equal_single_words_score_what_the_definitions_say() -> None:
    assert one("rain", "rain", "meteor").value == 0.5  # a chunk of one match is all penalty
    assert one("rain", "rain", "nist").value == 0  # the only word tells nothing
    assert one("rain", "rain", "rouge2").value == 0  # there is no pair of words


def test_bleu_warns_of_text_without_spaces() -> None:
    texts = ["我们都喜欢这只小猫", "今天会下雨", "火车又晚点了"]
    with pytest.warns(UserWarning, match=r"use bleu\(tokenizer='zh'\) for Chinese"):
        em.score(texts, texts, "bleu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        em.score(texts, texts, "bleu(tokenizer='zh')")
        em.score([*texts, "a", "b", "c"], [*texts, "a", "b", "c"], "bleu")


def test_chinese_is_compared_character_by_character() -> None:
    assert one("我爱北京", "我爱南京", "rouge1").value == 0.75
    assert one("我爱北京", "我爱南京", "meteor").value > 0.5
    assert one("我爱北京", "我爱南京", "bleu(tokenizer='zh')").value > 0.3


def test_different_emoji_do_not_match() -> None:
    assert one("😀 🚗", "😀 🚀", "rouge1").value == 0.5


def test_rouge_takes_a_tokenizer() -> None:
    assert one("猫", "猫", "rouge1(tokenizer='rouge')").value == 0
    assert one("Café!", "café", "rouge1(tokenizer='words')").precision == 0.5
    assert one("日本 runs", "日本 running", "rouge1(stemmer=True)").value == 1


def test_nothing_to_score_gives_no_scores() -> None:
    for metric in ALL:
        scores = em.build(metric)([])
        assert (scores.segments, scores.corpus) == ((), None)


def test_a_corpus_of_empty_references_has_a_corpus_score() -> None:
    assert em.score(["a", ""], ["", ""], "nist").corpus == 0
    assert em.score(["a", ""], ["", ""], "bleu").corpus == 0
    assert em.score(["a", ""], ["", ""], "ter").corpus == 1
