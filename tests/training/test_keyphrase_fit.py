from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.documents import Document, DocumentSet
from evenmatch.errors import DataError, InputError
from evenmatch.training.loop import FitSettings
from evenmatch.training.metrics.phrase_scorer import (
    degenerate_phrases,
    fit_keyphrases,
    make_degenerate_pairs,
    make_phrase_pairs,
    split_documents,
)

NOUNS = "tree graph net parser model corpus loss text word code cell gene".split()
KINDS = "neural deep sparse fast random linear robust public".split()


def documents(count: int) -> list[Document]:
    """Gold phrases of two words; predicted ones have both, one or neither of them."""
    draw = np.random.default_rng(0)
    made = []
    for _ in range(count):
        nouns, kinds = draw.permutation(NOUNS)[:5], draw.permutation(KINDS)[:5]
        gold = [f"{k} {n}" for k, n in zip(kinds, nouns, strict=True)]
        given = (gold[0], f"{kinds[1]} {nouns[2]}", f"{kinds[3]} thing", "apple pie")
        made.append(Document(" . ".join(gold), tuple(gold), {"system": given}))
    return made


def test_tuples_are_pairs_that_share_a_word_and_one_that_does_not() -> None:
    document = Document("", ("neural nets", "parse tree", "logic"), {"s": ("Neural net", "x")})
    found = make_phrase_pairs([document])
    assert found.pop(("Neural net", "neural nets")) == 1.0
    assert sorted(p for p, _ in found) == ["Neural net", "x"]
    assert set(found.values()) == {0.0}


def test_documents_are_set_apart_whole() -> None:
    every = documents(20)
    learnt, judged = split_documents(every, 0.25, seed=1)
    assert (len(learnt), len(judged)) == (15, 5)
    assert {id(d) for d in learnt} | {id(d) for d in judged} == {id(d) for d in every}


@pytest.mark.parametrize("share", [0.0, 1.0, 0.01])
def test_a_share_that_leaves_nothing_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="leaves none to train on or to test on"):
        split_documents(documents(10), share, seed=0)


def test_documents_without_gold_phrases_teach_nothing() -> None:
    with pytest.raises(InputError, match="no document has gold phrases to train on"):
        make_phrase_pairs([Document("a", ())])


def test_phrases_of_the_text_are_used_where_there_are_no_predictions() -> None:
    text = "we train a deep neural network and parse trees"
    found = make_phrase_pairs([Document(text, ("neural networks", "logic"))])
    assert found["neural networks", "neural networks"] == 1.0
    sampled = {p for p, _ in found} - {"neural networks", "logic"}
    assert len(sampled) > 3
    for phrase in sampled:
        assert phrase in text
        assert {"neural", "network"} & set(phrase.split())


def test_degenerate_phrases_are_repetitive_shuffled_long_or_cut() -> None:
    gold = ["graph neural network", "logic"]
    draw = np.random.default_rng(0)
    made = [degenerate_phrases(gold, draw) for _ in range(200)]
    assert {len(each) for each in made} == {2}
    first = [each[0].split() for each in made]
    kinds = {
        "repeated word": sum(len(set(words)) == 1 and len(words) > 1 for words in first),
        "repeated phrase": sum(words == gold[0].split() * (len(words) // 3) for words in first),
        "shuffled": sum(sorted(words) == sorted(gold[0].split()) for words in first),
        "long": sum(words[:3] == gold[0].split() and "logic" in words for words in first),
        "cut": sum(len(words) < 3 for words in first),
    }
    assert all(count > 15 for count in kinds.values()), kinds
    assert max(map(len, first)) >= 20


def test_a_very_long_phrase_can_be_made_degenerate() -> None:
    draw = np.random.default_rng(0)
    long = " ".join(f"word{i}" for i in range(60))
    assert all(degenerate_phrases([long], draw)[0] for _ in range(40))


def test_degenerate_pairs_have_the_similarity_of_fg() -> None:
    found = make_degenerate_pairs(documents(20))
    fg = em.build("keyphrases(scoring=fine_grained(mode='paper', repetition=False))")
    wanted = fg([em.Pair(p, (q,)) for p, q in found])
    assert [*found.values()] == pytest.approx([score.value for score in wanted])
    assert any(len(p.split()) > 10 for p, _ in found)


def test_a_scorer_that_was_never_trained_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no phrase scorer in .*none; train one with: "):
        em.score(["a"], ["a"], f"fb(model={str(tmp_path / 'none')!r})")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scorers") / "fb"
    sets = [DocumentSet("made", tuple(documents(40)), ("system",))]
    settings = FitSettings(epochs=2, batch=8, rate=3e-4, head_rate=3e-3)
    made = fit_keyphrases(sets, folder, settings=settings, frozen=5, hold_out=0.2, most=160)
    assert made.folder == folder
    return folder


@pytest.mark.model
def test_the_scorer_learns_what_fg_says_of_phrases(trained: Path) -> None:
    scorer = em.build(f"phrase_scorer(model={str(trained)!r})")
    pairs = [em.Pair(p, ("neural tree",)) for p in ("neural tree", "neural cell", "apple pie")]
    same, partial, wrong = (score.value for score in scorer(pairs).segments)
    assert same > wrong + 0.2
    assert partial > wrong + 0.1


# Phrases that a reward without a guard was seen to raise, and what FG can give to their length.
GAMES = [
    ("neural " * 50, 0.06),
    ("neural tree " * 20, 0.08),
    ("tree tree", 0.5),
    ("neural tree " + " ".join(f"word{i}" for i in range(18)), 0.15),
    ("neural tree neural", 0.74),
]


@pytest.mark.model
@pytest.mark.parametrize(("phrase", "most"), GAMES)
def test_long_and_repetitive_phrases_cannot_gain(trained: Path, phrase: str, most: float) -> None:
    scorer = em.build(f"phrase_scorer(model={str(trained)!r})")
    assert scorer([em.Pair(phrase.strip(), ("neural tree",))]).segments[0].value <= most


@pytest.mark.model
def test_phrases_with_equal_stems_score_exactly_one(trained: Path) -> None:
    scorer = em.build(f"phrase_scorer(model={str(trained)!r})")
    alike = [("neural tree", "neural tree"), ("Neural Trees", "neural tree"), ("q&a; x", "q&a; x")]
    assert [s.value for s in scorer([em.Pair(p, (q,)) for p, q in alike]).segments] == [1, 1, 1]
    fb = f"fb(model={str(trained)!r})"
    assert em.score(["fast nets; gene code"], ["fast net; gene codes"], fb).mean == 1


@pytest.mark.model
def test_without_its_guard_the_scorer_is_the_model_alone(trained: Path) -> None:
    pairs = [em.Pair(p, ("neural tree",)) for p in ("neural tree", "fast cell", "tree " * 40)]
    free, guarded = (
        [s.value for s in em.build(f"phrase_scorer(model={str(trained)!r}{g})")(pairs).segments]
        for g in (", guard=False", "")
    )
    assert guarded[0] == 1 > free[0]
    assert guarded[1] == free[1]
    assert guarded[2] <= free[2]


@pytest.mark.model
def test_padding_a_list_with_degenerate_phrases_lowers_fb(trained: Path) -> None:
    gold = "neural tree; fast net; gene code"
    spec = f"fb(model={str(trained)!r}, duplicates='wrong', both_empty=0.5)"
    honest = em.score(["neural tree; sparse loss; gene text"], [gold], spec).mean
    for phrase, _ in GAMES:
        assert em.score([f"neural tree; sparse loss; {phrase}"], [gold], spec).mean < honest


@pytest.mark.model
def test_fb_is_algorithm_1_over_the_scorers_numbers(trained: Path) -> None:
    scorer = em.build(f"phrase_scorer(model={str(trained)!r})")
    given, gold = ["neural tree", "fast net"], ["neural graph", "fast net", "gene code"]
    scores = scorer([em.Pair(p, (q,)) for p in given for q in gold])
    best = np.array([s.value for s in scores.segments]).reshape(2, 3).max(1)
    found = em.score(["; ".join(given)], ["; ".join(gold)], f"fb(model={str(trained)!r})")
    # no word is repeated; two phrases where three are wanted
    assert found.mean == pytest.approx(best.mean() * (1 - 1 / 9), abs=1e-6)


@pytest.mark.model
def test_a_trained_scorer_keeps_every_promise_of_a_metric(trained: Path) -> None:
    for spec in (f"phrase_scorer(model={str(trained)!r})", f"fb(model={str(trained)!r})"):
        em.check_metric(em.build(spec))


@pytest.mark.model
def test_the_folder_is_a_metric_with_a_card(trained: Path) -> None:
    card = (trained / "README.md").read_text("utf-8")
    assert "FB and FG on the held-out documents" in card
    assert "unseen pairs with degenerate phrases of 8 held-out documents" in card
    assert "the scorer without its guard" in card
    first, last = map(float, re.findall(r"([\d.]+) in the (?:first|last) tenth", card))
    assert last < 0.7 * first
    assert em.score(["a b"], ["a b"], str(trained)).mean > 0
