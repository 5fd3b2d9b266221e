"""Keyphrase scores of small lists, against values computed by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenmatch as em
from evenmatch.metrics.keyphrases import phrase_similarity
from evenmatch.metrics.keyphrases.phrase_reducers import BestMatch, F1At, FineGrained, TokenMatch
from evenmatch.metrics.keyphrases.phrase_similarity import PhraseScorer, similarity_ceiling
from evenmatch.metrics.regression import Regression
from evenmatch.registry import CallContext
from evenmatch.similarity.strings import edit_similarity, token_f1
from evenmatch.training.keyphrases.objectives import (
    compute_returns,
    group_rewards,
    reward_metric,
)
from evenmatch.training.keyphrases.sequences import (
    END_ID,
    PAD_ID,
    SPLIT_ID,
    KeyphraseExample,
    build_vocabulary,
)
from evenmatch.types import Alignment, Array, Embedded, Score, Units

LOG3 = math.log2(3)
SOURCE = "fast parsing of trees . neural nets parse graphs"


def score(spec: str, candidate: str, reference: str, source: str = SOURCE) -> Score:
    return em.score([candidate], [reference], spec, sources=[source]).segments[0]


@pytest.mark.parametrize(
    ("spec", "candidate", "reference", "value"),
    [
        # two of three right, two of four found
        ("f1_at_m", "trees; neural nets; x", "tree; neural net; y; z", 4 / 7),
        # over five and over four
        ("f1_at_5", "trees; neural nets; x", "tree; neural net; y; z", 4 / 9),
        ("f1_at_5(pad=False)", "trees; neural nets; x", "tree; neural net; y; z", 4 / 7),
        ("keyphrase_f1(k='G')", "trees; neural nets; x", "tree; neural net; y; z", 1 / 2),
        ("keyphrase_f1(k='O')", "x; trees; neural nets", "tree; neural net", 1 / 2),
        ("keyphrase_f1(k=1)", "trees; x", "tree; y", 2 / 3),
        # the tenth is the sixth phrase: cut off
        ("f1_at_5", "a; b; c; d; e; trees", "tree", 0),
        # duplicates after stemming are dropped, counted as wrong, or matched once
        ("f1_at_m", "trees; tree", "trees", 1),
        ("f1_at_m(duplicates='wrong')", "trees; tree", "trees", 2 / 3),
        ("f1_at_m(duplicates='keep')", "trees; tree", "trees; tree; x", 2 / 4),
        ("f1_at_m(reference_duplicates='keep')", "trees", "trees; tree", 2 / 3),
        ("f1_at_m", "trees", "trees; tree", 1),
        # phrases with a comma, a full stop or <unk> as a word
        ("f1_at_m", "trees; a , b; a . b; <unk>", "trees", 1),
        ("f1_at_m(invalid='wrong')", "trees; a . b", "trees", 2 / 3),
        ("f1_at_m(invalid='keep', tokens='whitespace')", "a . b", "a . b", 1),
        # present phrases are those whose stems occur in the source as whole words in a row
        ("f1_at_m(which='present')", "neural net; logic; graph", "neural nets; logic", 2 / 3),
        ("f1_at_m(which='absent')", "neural net; logic; graph", "neural nets; logic", 1),
        ("f1_at_m(which='present')", "tree; net parse", "tree; eural; nets neural", 2 / 3),
        ("f1_at_m(most=1)", "x; trees", "trees", 0),
        # FG: 'neural tree' shares one of two words (edit 1/2, F1 1/2); of one against two phrases
        ("fg", "neural tree", "neural nets; logic", 0.5 * 0.75),
        ("fg(quantity=False)", "neural tree", "neural nets; logic", 0.5),
        ("fg(similarity=exact)", "neural tree", "neural nets", 0),
        ("f1_at_10", "trees; neural nets; x", "tree; neural net; y; z", 2 * 0.2 * 0.5 / 0.7),
        ("f1_at_o", "x; trees; neural nets", "tree; neural net", 1 / 2),
        ("recall_at_10", "trees; x", "tree; y; z", 1 / 3),
        ("recall_at_10", "a; b; c; d; e; f; g; h; i; j; trees", "tree", 0),
        ("recall_at_50", "a; b; c; d; e; f; g; h; i; j; trees", "tree", 1),
        ("keyphrase_f1(k=2, report='precision')", "trees; x; y", "tree; y; z", 1 / 2),
        # correct at ranks 1, 3 and 4: precisions 1, 2/3 and 3/4, over four references
        ("keyphrase_map", "a; x; b; c", "a; b; c; d", (1 + 2 / 3 + 3 / 4) / 4),
        ("keyphrase_map(k=3)", "a; x; b; c", "a; b; c; d", (1 + 2 / 3) / 4),
        ("keyphrase_map", "x; a", "a", 1 / 2),
        # gains at ranks 1 and 3; the ideal has three references at ranks 1 to 3
        ("keyphrase_ndcg", "a; x; b", "a; b; c", (1 + 1 / 2) / (1 + 1 / LOG3 + 1 / 2)),
        ("keyphrase_ndcg(k=2)", "a; x; b", "a; b; c", 1 / (1 + 1 / LOG3)),
        # the best order of its own phrases has both correct ones first
        ("keyphrase_ndcg(ideal='predictions')", "a; x; b", "a; b; c", 1.5 / (1 + 1 / LOG3)),
        ("keyphrase_ndcg(ideal='predictions')", "x; a; b", "a", 1 / LOG3),
        # 'net' is a part of both references, 'deep net' of one, which is matched already
        (
            "keyphrase_alpha_ndcg",
            "x; net; deep net",
            "deep nets; neural nets",
            (2 / LOG3 + 0.5 / 2) / (2 + 0.5 / LOG3),
        ),
        (
            "keyphrase_alpha_ndcg(alpha=0.0)",
            "x; net; deep net",
            "deep nets; neural nets",
            (2 / LOG3 + 1 / 2) / (2 + 1 / LOG3),
        ),
        (
            "keyphrase_alpha_ndcg(k=2)",
            "x; net; deep net",
            "deep nets; neural nets",
            2 / LOG3 / (2 + 0.5 / LOG3),
        ),
        # 'deep net' alone would come first in a worse order, and is penalised there
        (
            "keyphrase_alpha_ndcg",
            "deep net; net",
            "deep net; neural net",
            (1 + 1.5 / LOG3) / (2 + 0.5 / LOG3),
        ),
    ],
)
def test_each_setting_has_its_score(
    spec: str, candidate: str, reference: str, value: float
) -> None:
    assert score(spec, candidate, reference).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("candidate", "reference", "released", "paper"),
    [
        ("language natural processing", "natural language processing", 2 / 3, 2 / 3),
        # raw 1, 1/2 and 1/4; both rules reject the second and the third: a, then b, is used up
        ("a b; a c; b c", "a b; c d", 8 / 27, 8 / 27),
        # the words of the rejected second phrase are free again for the third, or used up
        ("a b; a c; c x y z", "a b; c d", (1 + 7 / 24) / 3 * 8 / 9, 8 / 27),
        # one word of fifteen: (1/15 + 2/17) / 2 is below a tenth
        ("a " + " ".join("cdefghijklmnop"), "a b", 0, (1 / 15 + 2 / 17) / 2),
        ("", "", 1, 1),
        ("a", "", 0, 0),
        ("", "a", 0, 0),
    ],
)
def test_fg_has_the_value_of_either_rule(
    candidate: str, reference: str, released: float, paper: float
) -> None:
    for mode, value in (("released", released), ("paper", paper)):
        found = score(f"fg(mode={mode!r}, stem='none')", candidate, reference)
        assert found.value == pytest.approx(value)


def test_the_separator_of_present_and_absent_phrases_is_no_phrase() -> None:
    assert score("f1_at_m", "trees; <peos>; logic", "trees; logic").value == 1


def test_phrases_beyond_the_limit_are_flagged() -> None:
    assert "truncated" in score("f1_at_m(most=1)", "x; trees", "trees").flags
    assert "truncated" not in score("f1_at_m(most=2)", "x; trees", "trees").flags


def test_documents_without_reference_phrases_count_or_are_skipped() -> None:
    lists = ["trees", "x"], ["trees", ""]
    for spec, corpus in (
        ("keyphrase_f1", 1 / 2),
        ("keyphrase_f1(no_reference='skip')", 1.0),
        ("keyphrase_f1(average='mean', no_reference='skip')", 1.0),
        ("fg(no_reference='skip')", 1.0),
    ):
        assert em.score(*lists, spec).corpus == pytest.approx(corpus)


def phrases(*given: str) -> Embedded:
    """Single words, or two words joined by a hyphen."""
    words = tuple(word for phrase in given for word in phrase.split("-"))
    groups, at = [], 0
    for phrase in given:
        groups.append(tuple(range(at, at + len(phrase.split("-")))))
        at += len(phrase.split("-"))
    ones = np.ones(len(given))
    return Embedded(Units("", words, groups=tuple(groups)), np.zeros((len(given), 0)), ones, ones)


def plan(cells: list[tuple[int, int]], shape: tuple[int, int]) -> Alignment:
    rows: Array = np.zeros(shape)
    for cell in cells:
        rows[cell] = 1
    return Alignment(rows, rows)


def test_a_phrase_that_scores_exactly_a_tenth_is_wrong_in_the_released_rules() -> None:
    x, y = phrases("a", "b"), phrases("c", "d")
    similarity = np.array([[0.1, 0.0], [0.0, 0.3]])
    diagonal = plan([(0, 0), (1, 1)], (2, 2))
    assert FineGrained()(similarity, diagonal, x, y).value == pytest.approx(0.15)
    assert FineGrained("paper")(similarity, diagonal, x, y).value == pytest.approx(0.2)


def test_of_equal_phrases_the_later_one_comes_first_in_the_released_rules() -> None:
    """Both score 0.5 and use the word a, which the reference has once; b is used by the first."""
    x, y = phrases("a-b", "a-c", "b"), phrases("a-x", "b-y", "z")
    similarity = np.array([[0.5, 0, 0], [0.5, 0, 0], [0, 0.4, 0]])
    cells = plan([(0, 0), (1, 0), (2, 1)], (3, 3))
    # released: a-c is taken, a-b is rejected and frees b; paper: a-b uses up a and b
    assert FineGrained()(similarity, cells, x, y).value == pytest.approx(0.9 / 3)
    assert FineGrained("paper")(similarity, cells, x, y).value == pytest.approx(0.5 / 3)


def test_of_equal_phrases_the_earlier_one_comes_first_in_the_papers_rules() -> None:
    """All score 0.5; the reference has the words a and b once."""
    x, y = phrases("a-b", "a", "b"), phrases("a-x", "b-y", "z")
    similarity = np.array([[0.5, 0, 0], [0.5, 0, 0], [0, 0.5, 0]])
    cells = plan([(0, 0), (1, 0), (2, 1)], (3, 3))
    # paper: a-b uses up a and b; released: b and a come before it
    assert FineGrained("paper")(similarity, cells, x, y).value == pytest.approx(0.5 / 3)
    assert FineGrained()(similarity, cells, x, y).value == pytest.approx(1.0 / 3)


def test_credit_beyond_the_cutoff_moves_to_an_equal_phrase_before_it() -> None:
    """Both phrases equal the reference, and the solver chose the second one."""
    found = F1At(1)(np.ones((2, 1)), plan([(1, 0)], (2, 1)), phrases("a", "a"), phrases("a"))
    assert found.value == 1


def test_credit_is_neither_negative_nor_more_than_there_are_references() -> None:
    similarity = np.array([[1.0], [1.0], [-1.0]])
    everything = plan([(0, 0), (1, 0), (2, 0)], (3, 1))
    found = F1At()(similarity, everything, phrases("a", "b", "c"), phrases("a"))
    assert (found.precision, found.recall) == pytest.approx((1 / 3, 1))
    half = F1At()(similarity / 2, everything, phrases("a", "b", "c"), phrases("a", "b", "c"))
    assert half.precision == pytest.approx(1 / 3)


def test_token_match_averages_over_phrases() -> None:
    """a-b against a: precision 1/2, recall 1; c against c-d: precision 1, recall 1/2."""
    x, y = phrases("a-b", "c", "z"), phrases("a", "c-d")
    cells = plan([(0, 0), (1, 1), (2, 0)], (3, 2))
    found = TokenMatch()(np.zeros((3, 2)), cells, x, y)
    assert found.value == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert found.precision == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found.recall == pytest.approx((1 + 1 / 2 + 0) / 3)
    only = TokenMatch()(np.zeros((1, 1)), plan([(0, 0)], (1, 1)), phrases("a-b"), phrases("a"))
    assert (only.precision, only.recall) == pytest.approx((1 / 2, 1))
    totals = np.array(TokenMatch().count_matches(np.zeros((3, 2)), cells, x, y))
    assert TokenMatch().score_totals(totals) == pytest.approx(4 / 9)


def test_best_match_is_many_to_one_on_both_sides() -> None:
    """Both candidates are closest to the first reference, whose best one is the second."""
    x, y = phrases("a", "b"), phrases("c", "d", "e")
    similarity = np.array([[0.6, 0.5, 0.0], [0.8, 0.3, 0.1]])
    found = BestMatch()(similarity, em.solve(similarity, "greedy"), x, y)
    precision, recall = (0.6 + 0.8) / 2, (0.8 + 0.5 + 0.1) / 3
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    assert found.value == pytest.approx(2 * precision * recall / (precision + recall))
    totals = np.array([precision + 0.5, recall + 0.1, found.value + 0.3, 2.0])
    assert BestMatch().score_totals(totals) == pytest.approx((found.value + 0.3) / 2)
    wanted = (precision + 0.5) / 2, (recall + 0.1) / 2
    assert BestMatch().precision_recall(totals) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("spec", "precision", "recall"),
    [
        # documents of (2/3, 1/2), (0, 0) and (1, 1); 3 of 5 predicted, 3 of 6 references
        ("f1_at_m", 5 / 9, 1 / 2),
        ("f1_at_m(average='mean')", 5 / 9, 1 / 2),
        ("f1_at_m(average='micro')", 3 / 5, 3 / 6),
    ],
)
def test_precision_and_recall_of_a_corpus_follow_the_average(
    spec: str, precision: float, recall: float
) -> None:
    metric = em.build(spec)
    lists = [("a; b; x", "a; b; c; d"), ("x", "y"), ("a", "a")]
    totals = metric([em.Pair(p, (g,)) for p, g in lists]).counts.sum(0)
    assert metric.precision_recall(totals) == pytest.approx((precision, recall))


@pytest.mark.parametrize(
    ("spec", "corpus"),
    [
        ("f1_at_m", 2 * 5 / 9 * 1 / 2 / (5 / 9 + 1 / 2)),  # F1 of the means above
        ("f1_at_m(average='mean')", (4 / 7 + 0 + 1) / 3),
        ("f1_at_m(average='micro')", 6 / 11),
        ("keyphrase_f1(report='recall')", 1 / 2),
        ("keyphrase_f1(report='precision')", 5 / 9),
        ("fg", (2 / 3 * (1 - 1 / 16) + 0 + 1) / 3),
        ("keyphrase_map", (1 / 2 + 0 + 1) / 3),
    ],
)
def test_the_score_of_a_corpus_follows_the_average(spec: str, corpus: float) -> None:
    found = em.score(["a; b; x", "x", "a"], ["a; b; c; d", "y", "a"], spec)
    assert (found.mean if found.corpus is None else found.corpus) == pytest.approx(corpus)


def test_the_ceiling_of_a_phrase_is_what_fg_can_give_to_its_length() -> None:
    """The best phrase of that length has all words of the reference, in order."""
    for count in range(3, 12):
        best = ("a", "b", *(f"x{i}" for i in range(count - 2)))
        whole = "fg(stem='none', mode='paper', quantity=False)"
        wanted = score(whole, " ".join(best), "a b").value
        assert similarity_ceiling(best, ("a", "b")) == pytest.approx(wanted)
        assert similarity_ceiling(("z",) * count, ("a", "b")) < wanted


@given(*[st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(tuple)] * 2)
def test_fgs_similarity_never_exceeds_the_ceiling(p: tuple[str, ...], q: tuple[str, ...]) -> None:
    assert (edit_similarity(p, q) + token_f1(p, q)) / 2 <= similarity_ceiling(p, q) + 1e-12


@pytest.mark.parametrize(
    ("candidate", "reference", "value"),
    [
        ("nlp", "natural language processing", 1),
        ("a b", "c d", 1),
        ("a a", "b c", (1 / 2 + 2 / 4) / 2),
        ("a a", "a a", 1),
        ("a b c", "d", (1 / 3 + 2 / 4) / 2),
        ("a a a a", "a b", (1 / 4 + 2 / 6) / 2),
    ],
)
def test_only_long_and_repetitive_phrases_have_a_ceiling(
    candidate: str, reference: str, value: float
) -> None:
    found = similarity_ceiling(tuple(candidate.split()), tuple(reference.split()))
    assert found == pytest.approx(value)


def test_the_phrase_scorer_is_the_logistic_function_of_its_logit_and_guarded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The logits are ln 3 and 0; equal stems score 1, and long phrases at most their ceiling.

    The comma of the last reference is a word, as in running text.
    """
    logits = {
        ("fast tree", "tree"): math.log(3),
        ("trees", "tree"): 0.0,
        ("trees trees trees", "tree"): math.log(3),
        ("graphs graphs", "graphs, trees"): math.log(3),
    }

    def open_metric(metric: Any, context: Any) -> Any:
        assert metric == Regression("none", "candidate")
        found = [[Score(logit) for logit in logits.values()]]
        return SimpleNamespace(score_chunk=lambda chunk: found)

    checkpoint = SimpleNamespace(name="none", label="none")
    monkeypatch.setattr(PhraseScorer, "checkpoint", lambda scorer: checkpoint)
    monkeypatch.setattr(phrase_similarity, "open_metric", open_metric)
    single = [em.Pair(candidate, (reference,)) for candidate, reference in logits]
    chunk: Any = SimpleNamespace(pairs=single)
    chunk.single_references = lambda: chunk
    ceilings = [(1 / 2 + 2 / 3) / 2, 1.0, (1 / 3 + 2 / 4) / 2, (1 / 3 + 2 / 5) / 2]
    for guard, expected in ((True, ceilings), (False, [3 / 4, 1 / 2, 3 / 4, 3 / 4])):
        found = PhraseScorer(guard=guard).open(CallContext()).score_chunk(chunk)[0]
        assert [each.value for each in found] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["f1", "fg", "fb"])
def test_as_a_reward_repeated_phrases_are_wrong_and_words_are_split_at_spaces(name: str) -> None:
    metric: Any = reward_metric(name)
    assert (metric.duplicates, metric.units.tokens) == ("wrong", "whitespace")
    assert name == "f1" or metric.scoring.both_empty == 0.5
    if name != "fb":
        example = KeyphraseExample(("trees",), (("trees",),), ())
        [found] = group_rewards(metric, [example], [("trees", "<sep>", "tree", "<eos>")])
        # of two phrases one is right: F1 2/3, and FG 1/2 · (1 - 1/4)
        assert found[0] == pytest.approx({"f1": 2 / 3, "fg": 3 / 8}[name])


def test_the_present_phrases_are_paid_at_the_separator_or_at_the_end() -> None:
    """Rewards 1 and 1/4; the second output has no separator, the third no closing token."""
    tokens = np.array([[9, SPLIT_ID, 9, END_ID], [9, 9, END_ID, PAD_ID], [9, SPLIT_ID, 9, 9]])
    found = compute_returns(np.array([[1.0, 0.25]] * 3), tokens)
    wanted = [[1.25, 1.25, 0.25, 0.25], [1.25, 1.25, 1.25, 0.0], [1.25, 1.25, 0.25, 0.25]]
    assert found.tolist() == wanted


def test_two_empty_groups_are_worth_one_half_as_a_reward() -> None:
    example = KeyphraseExample(("trees",), (("trees",),), ())
    outputs = [("trees", "<peos>", "<eos>"), ("trees", "<peos>", "logic", "<eos>")]
    found = group_rewards(reward_metric("fg"), [example, example], outputs)
    assert found.tolist() == [[1.0, 0.5], [1.0, 0.0]]
    assert group_rewards(reward_metric("f1"), [example], outputs[:1]).tolist() == [[1.0, 0.0]]


def test_words_of_equal_frequency_enter_the_vocabulary_in_alphabetical_order() -> None:
    examples = [KeyphraseExample(("c", "b", "a", "b"), (("d",),), (("c",),))]
    assert build_vocabulary(examples, 9).words[6:] == ("b", "c", "a")
