from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenmatch.metrics.ngram.sacrebleu import bleu_from_totals, chrf_from_totals, ter_from_totals
from evenmatch.protocols import CorpusMetric
from evenmatch.registry import build
from evenmatch.scoring.inputs import make_pairs
from evenmatch.types import Array

sacrebleu: Any = pytest.importorskip("sacrebleu")

TEXTS = st.lists(st.sampled_from("a b c d e . Ünï 猫".split()), max_size=7).map(" ".join)
CORPORA = st.lists(
    st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=2)), min_size=1, max_size=6
)


def library_scorer(spec: str) -> Any:
    """The same metric by sacrebleu's public interface."""
    metric = build(spec)
    if spec.startswith("bleu"):
        return sacrebleu.BLEU(
            tokenize=metric.tokenizer,
            smooth_method=metric.smoothing,
            max_ngram_order=metric.order,
            force=True,
        )
    if spec.startswith("chrf"):
        return sacrebleu.CHRF(
            word_order=metric.word_order, beta=metric.beta, eps_smoothing=metric.eps_smoothing
        )
    return sacrebleu.TER(normalized=metric.normalized)


SPECS = [
    *(f"bleu(smoothing='{name}')" for name in ("exp", "floor", "add-k", "none")),
    "bleu(order=2, tokenizer='char')",
    "chrf",
    "chrf(word_order=2, beta=3.0)",
    "chrf(eps_smoothing=True)",
    "ter",
    "ter(normalized=True)",
]


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=20)
@given(corpus=CORPORA)
def test_the_corpus_score_is_the_librarys(spec: str, corpus: list[tuple[str, list[str]]]) -> None:
    metric = build(spec)
    pairs = make_pairs([c for c, _ in corpus], [r for _, r in corpus])
    scores = metric(pairs)
    # sacrebleu takes streams of references of equal length, so a missing one repeats the first.
    streams = [[r[min(n, len(r) - 1)] for _, r in corpus] for n in range(2)]
    if any(len(r) < 2 for _, r in corpus):
        streams = streams[:1]
        pairs = make_pairs([c for c, _ in corpus], [r[:1] for _, r in corpus])
        scores = metric(pairs)
    theirs = library_scorer(spec).corpus_score([c for c, _ in corpus], streams).score / 100
    assert scores.corpus == pytest.approx(min(theirs, 1.0) if "ter" not in spec else theirs)


@given(
    counts=st.lists(st.integers(0, 12), min_size=10, max_size=10),
    smoothing=st.sampled_from(["exp", "floor", "add-k", "none"]),
)
def test_bleu_of_any_possible_totals_equals_the_library(counts: list[int], smoothing: str) -> None:
    ngrams = sorted(counts[6:], reverse=True)
    matches = [min(pair) for pair in zip(counts[2:6], ngrams, strict=True)]
    own = [ngrams[0], counts[1], *matches, *ngrams]
    library = sacrebleu.metrics.BLEU(smooth_method=smoothing)
    wanted = library._compute_score_from_stats(list(own)).score / 100
    found = bleu_from_totals(np.array(own, dtype=float), order=4, smoothing=smoothing)
    assert found == pytest.approx(min(1.0, wanted), abs=1e-12)


@given(
    counts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=6, max_size=6),
    eps=st.booleans(),
)
def test_chrf_of_any_possible_totals_equals_the_library(
    counts: list[tuple[int, int]], eps: bool
) -> None:
    own = [number for a, b in counts for number in (a, b, min(a, b) // 2)]
    library = sacrebleu.metrics.CHRF(eps_smoothing=eps)
    wanted = library._compute_score_from_stats(own).score / 100
    found = chrf_from_totals(np.array(own, dtype=float), beta=2.0, eps_smoothing=eps)
    assert found == pytest.approx(wanted, abs=1e-12)


def test_many_totals_are_scored_at_once_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    every: list[tuple[Callable[[Array], Array], int]] = [
        (lambda totals: bleu_from_totals(totals, order=4, smoothing="exp"), 10),
        (lambda totals: chrf_from_totals(totals, beta=2.0, eps_smoothing=False), 18),
        (ter_from_totals, 2),
    ]
    for score, width in every:
        totals = rng.integers(0, 20, size=(5, 3, width)).astype(float)
        together = score(totals)
        assert together.shape == (5, 3)
        assert all(together[i] == pytest.approx(score(totals[i])) for i in np.ndindex(5, 3))


def test_only_metrics_with_totals_say_so() -> None:
    assert all(isinstance(build(name), CorpusMetric) for name in ("bleu", "chrf", "ter"))
    assert not isinstance(build("rouge1"), CorpusMetric)
    assert not isinstance(build("align(vectors=hashed)"), CorpusMetric)
