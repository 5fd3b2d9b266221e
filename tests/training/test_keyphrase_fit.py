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
    fit_keyphrases,
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


def test_documents_without_predictions_teach_nothing() -> None:
    with pytest.raises(InputError, match="no document has both predicted and gold phrases"):
        make_phrase_pairs([Document("a", ("a",))])


def test_a_scorer_that_was_never_trained_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no phrase scorer in .*none; train one with: "):
        em.score(["a"], ["a"], f"fb(model={str(tmp_path / 'none')!r})")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scorers") / "fb"
    sets = [DocumentSet("made", tuple(documents(40)), ("system",))]
    settings = FitSettings(epochs=2, batch=8, rate=3e-4, head_rate=3e-3)
    made = fit_keyphrases(sets, folder, settings=settings, frozen=4, hold_out=0.2)
    assert made.folder == folder
    return folder


@pytest.mark.model
def test_the_scorer_learns_what_fg_says_of_phrases(trained: Path) -> None:
    scorer = em.build(f"phrase_scorer(model={str(trained)!r})")
    pairs = [em.Pair(p, ("neural tree",)) for p in ("neural tree", "neural cell", "apple pie")]
    same, partial, wrong = (score.value for score in scorer(pairs).segments)
    assert same > wrong + 0.2
    assert partial > wrong + 0.1


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
    first, last = map(float, re.findall(r"([\d.]+) in the (?:first|last) tenth", card))
    assert last < 0.7 * first
    assert em.score(["a b"], ["a b"], str(trained)).mean > 0
