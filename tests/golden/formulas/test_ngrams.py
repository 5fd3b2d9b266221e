"""N-gram metrics of short texts, against values computed by hand."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

import evenmatch as em
from evenmatch.metrics.ngram import meteor

SAT, DOWN = "the cat sat", "the cat sat down"


def geometric(*shares: float) -> float:
    return math.prod(shares) ** (1 / len(shares))


@pytest.mark.parametrize(
    ("spec", "candidate", "reference", "value"),
    [
        # all n-grams up to three words match; one word is missing
        ("bleu", SAT, DOWN, math.exp(1 - 4 / 3)),
        # no penalty for a longer candidate
        ("bleu", DOWN, SAT, geometric(3 / 4, 2 / 3, 1 / 2, 1 / 2)),
        # orders without a match count 1/2, then 1/4
        ("bleu", "a b x c", "a b y c", geometric(3 / 4, 1 / 3, 1 / 4, 1 / 4)),
        ("bleu(smoothing='floor')", "a b x c", "a b y c", geometric(3 / 4, 1 / 3, 0.05, 0.1)),
        ("bleu(smoothing='add-k')", "a b x c", "a b y c", geometric(3 / 4, 2 / 4, 1 / 3, 1 / 2)),
        ("bleu(smoothing='none')", "a b x c", "a b y c", 0),
        ("bleu", "A b", "a b", geometric(1 / 2, 1 / 2)),
        ("bleu(lowercase=True)", "A b", "a b", 1),
        ("bleu_nltk(order=2)", "a b x c", "a b y c", geometric(3 / 4, 1 / 3)),
        # a deletion; a substitution; a shift; upper case is ignored
        ("ter", SAT, DOWN, 1 / 4),
        ("ter", "the dog sat", SAT, 1 / 3),
        ("ter", "sat the cat", SAT, 1 / 3),
        ("ter", "The CAT sat", SAT, 0),
        ("ter(case_sensitive=True)", "The CAT sat", SAT, 2 / 3),
        ("ter", "sat.", "sat .", 1),  # one substitution and one insertion over two words
        ("ter(normalized=True)", "sat.", "sat .", 0),
        ("rouge1", "the cat", DOWN, 2 * 1 * 0.5 / 1.5),
        ("rouge2", "the cat", DOWN, 2 * 1 * (1 / 3) / (4 / 3)),
        ("rougeL", "cat the sat", SAT, 2 / 3),  # "cat sat" or "the sat"
        ("rouge1", "cats", "cat", 0),
        ("rouge(share='1', stemmer=True)", "Cats run", "run catsx", 1 / 2),
        ("sentinel_length", SAT, DOWN, -len(SAT)),
    ],
)
def test_each_metric_of_two_texts_by_hand(
    spec: str, candidate: str, reference: str, value: float
) -> None:
    found = em.score([candidate], [reference], spec).segments[0]
    assert found.value == pytest.approx(value)


def test_precision_of_rouge_is_that_of_the_candidate() -> None:
    for spec, precision, recall in (("rouge1", 1, 1 / 2), ("rouge2", 1, 1 / 3), ("rougeL", 1, 0.5)):
        found = em.score(["the cat"], [DOWN], spec).segments[0]
        assert (found.precision, found.recall) == pytest.approx((precision, recall))


@pytest.mark.parametrize(
    ("spec", "orders", "beta"),
    [("chrf", 6, 2), ("chrf(char_order=3)", 3, 2), ("chrf(beta=1.0)", 6, 1)],
)
def test_chrf_is_the_f_score_of_mean_precision_and_recall(
    spec: str, orders: int, beta: float
) -> None:
    """Popović (2015), of characters without spaces; orders that a text lacks are left out."""
    precisions, recalls = [], []
    texts = ["thecatsat", "acatsatdown"]
    for n in range(1, orders + 1):
        x, y = (Counter(t[i : i + n] for i in range(len(t) - n + 1)) for t in texts)
        precisions.append((x & y).total() / x.total())
        recalls.append((x & y).total() / y.total())
    p, r = sum(precisions) / orders, sum(recalls) / orders
    found = em.score(["the cat sat"], ["a cat sat down"], spec).segments[0]
    assert found.value == pytest.approx((1 + beta**2) * p * r / (beta**2 * p + r))
    assert em.score(["ab"], ["ab"], spec).segments[0].value == pytest.approx(1)


def test_words_count_in_chrf_as_well_if_asked_for() -> None:
    """Characters: a and b match of a, b and of a, b, c; words: a of "a b" and of "a bc"."""
    p, r = (1 + 1 + 1 / 2) / 3, (2 / 3 + 1 / 2 + 1 / 2) / 3
    found = em.score(["a b"], ["a bc"], "chrf(char_order=2, word_order=1)").segments[0]
    assert found.value == pytest.approx(5 * p * r / (4 * p + r))


def test_several_references_are_pooled_or_averaged_or_the_best_one_counts() -> None:
    references = [["the dog sat down here", "a cat"]]
    # edits to "a cat" are fewest: 2, over (5 + 2) / 2 words
    assert em.score([SAT], references, "ter").segments[0].value == pytest.approx(2 / 3.5)
    # all three words are in one of them, and no two in a row; two words are nearest in length
    found = em.score([SAT], references, "bleu(order=2)").segments[0]
    assert found.value == pytest.approx(geometric(1, 1 / 4))
    assert em.score([SAT], references, "rouge1").segments[0].value == pytest.approx(2 * 2 / 8)


def test_the_score_of_a_corpus_is_that_of_its_counts() -> None:
    """One edit of four words and two of three; of six words four match, of four bigrams two."""
    texts = [SAT, "a b sat"], [DOWN, SAT]
    assert em.score(*texts, "ter").corpus == pytest.approx(3 / 7)
    shares = (4 / 6, 2 / 4, 1 / 2)
    expected = math.exp(1 - 7 / 6) * geometric(*shares)
    assert em.score(*texts, "bleu(order=3)").corpus == pytest.approx(expected)


@pytest.mark.parametrize(
    ("spec", "candidate", "value"),
    [
        # three words in one chunk: F = PR / (0.9 P + 0.1 R) with P = 1, R = 3/4
        ("meteor", SAT, 0.75 / (0.9 + 0.075) * (1 - 0.5 * (1 / 3) ** 3)),
        # two chunks, and the precision weighted more
        ("meteor(alpha=0.5)", "sat the cat", 0.75 / 0.875 * (1 - 0.5 * (2 / 3) ** 3)),
        ("meteor(gamma=0.2, beta=1.0)", SAT, 0.75 / 0.975 * (1 - 0.2 / 3)),
        # "cats" has the stem of "cat", and "pet" is its synonym
        ("meteor", "the cats sat", 0.75 / 0.975 * (1 - 0.5 * (1 / 3) ** 3)),
        ("meteor", "the pet sat", 0.75 / 0.975 * (1 - 0.5 * (1 / 3) ** 3)),
        ("meteor", "dogs", 0),
    ],
)
def test_meteor_by_hand(
    monkeypatch: pytest.MonkeyPatch, spec: str, candidate: str, value: float
) -> None:
    lemmas = [SimpleNamespace(name=lambda: "pet"), SimpleNamespace(name=lambda: "cat")]
    synset = SimpleNamespace(lemmas=lambda: lemmas)
    known: Any = SimpleNamespace(synsets=lambda word: (synset,) if word == "pet" else ())
    monkeypatch.setattr(meteor, "wordnet", lambda: known)
    found = em.build(spec)([em.Pair(candidate, (DOWN,))])
    assert found.segments[0].value == pytest.approx(value)
