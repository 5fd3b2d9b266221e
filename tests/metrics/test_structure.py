from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.models.tokenizer import HiddenStates
from evenmatch.protocols import Similarity, Solver
from evenmatch.scoring.metric import AlignMetric
from evenmatch.similarity.vectors import Cosine, SameLabel
from evenmatch.types import Embedded, Units
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Subtrees, UnitWeight
from evenmatch.vectors.pooling import pool_tokens
from evenmatch.vectors.weighting import Uniform
from tests.support.parses import BY, HAVING, write_conllu

NEEDS = pytest.mark.model("minilm", "en_core_web_sm")
NAMES = ("struct_dep", "struct_dep_head", "struct_con", "struct_con_label", "struct_con_head")


@dataclass(frozen=True)
class OneHot:
    """A direction of its own for every word, pooled by the maximum."""

    vocabulary: tuple[str, ...]

    def __call__(self, batch: Sequence[Units]) -> list[Embedded]:
        return [self._embed(units) for units in batch]

    def _embed(self, units: Units) -> Embedded:
        vectors = np.array([[float(w == v) for v in self.vocabulary] for w in units.words])
        spans, keys = np.array(units.spans), np.zeros(len(units.words), np.int64)
        states = HiddenStates(units.text, keys, spans, {})
        return pool_tokens(units, states, vectors, "max", Uniform(), Uniform())


@pytest.mark.parametrize(
    ("similarity", "alignment", "weight", "expected"),
    [
        # Pieces: a, ab, b against a, ac, c. a takes a (1), ab takes a (1/√2), b takes nothing.
        (Cosine(), Greedy(), "uniform", (1 + math.sqrt(0.5)) / 3),
        (SameLabel(), Greedy(), "uniform", (1 + math.sqrt(0.5)) / 3),
        (Cosine(), Greedy(), "log_length", math.sqrt(0.5)),
        # One to one: a with a (1), ab with ac (1/2).
        (Cosine(), Lsa(), "uniform", 1.5 / 3),
        (SameLabel(), Lsa(), "uniform", 1.5 / 3),
    ],
)
def test_hand_made_trees_give_hand_computed_scores(
    tmp_path: Path, similarity: Similarity, alignment: Solver, weight: UnitWeight, expected: float
) -> None:
    parser = ParseFile(write_conllu(tmp_path, {"a b": (0, 1), "a c": (0, 1)}))
    units = Subtrees(parser, weight=weight)
    metric = AlignMetric(units, OneHot(("a", "b", "c")), similarity, alignment)
    [score] = metric([em.Pair("a b", ("a c",))]).segments
    assert score.precision == pytest.approx(expected)
    assert score.recall == pytest.approx(expected)


def test_the_filter_takes_away_what_hangs_on_another_head(tmp_path: Path) -> None:
    """The same words; only the root differs, so that ab and ab have different heads."""
    parser = ParseFile(write_conllu(tmp_path, {"a b": (0, 1), "b a": (0, 1)}))
    free, filtered = (
        AlignMetric(Subtrees(parser), OneHot(("a", "b")), similarity)([em.Pair("a b", ("b a",))])
        for similarity in (Cosine(), SameLabel())
    )
    assert free.mean == pytest.approx(1)
    assert filtered.mean == pytest.approx((2 + math.sqrt(0.5)) / 3)


def test_bleu_of_figure_1_is_50() -> None:
    assert em.score([BY], [HAVING], "bleu").corpus == pytest.approx(0.5, abs=1e-12)


@NEEDS
def test_figure_1_scores_clearly_lower_by_structure() -> None:
    found = em.score([BY], [HAVING], ["bertscore", "struct_dep_head", "struct_con_head"])
    words = found["bertscore"].mean
    assert found["struct_dep_head"].mean < words - 0.1
    assert found["struct_con_head"].mean < words - 0.1


@NEEDS
@pytest.mark.parametrize("name", NAMES)
def test_equal_texts_score_1(name: str) -> None:
    text = "The cat sat. It had been raining for days, so nobody minded."
    assert em.score([text], [text], name).mean == pytest.approx(1, abs=1e-6)


@NEEDS
def test_empty_sides_are_flagged() -> None:
    found = em.score(["", "a cat", " "], ["a cat", "", ""], "struct_dep_head").segments
    assert [s.value for s in found] == [0, 0, 1]
    assert "empty_candidate" in found[0].flags


@NEEDS
@pytest.mark.parametrize("name", ["struct_dep_head", "struct_con_head"])
def test_ten_thousand_words_are_scored_as_far_as_they_are_read(name: str) -> None:
    text = " ".join(["The quick fox jumped over a lazy dog ."] * 1112)
    [score] = em.score([text], ["The quick fox jumped over a dog ."], name).segments
    assert 0 < score.value < 1
    assert "truncated" in score.flags


@NEEDS
@pytest.mark.parametrize("alignment", ["greedy", "lsa", "emd"])
def test_the_alignment_is_one_field(alignment: str) -> None:
    [score] = em.score([BY], [HAVING], f"struct_con(alignment={alignment})").segments
    assert 0.5 < score.value < 1


@NEEDS
def test_a_score_is_the_same_alone_and_among_others() -> None:
    texts = [BY, HAVING, "Rome fell. So did Troy.", "It rains"]
    together = em.score(texts, texts[::-1], "struct_con_label").segments
    alone = [
        em.score([c], [r], "struct_con_label").segments[0]
        for c, r in zip(texts, texts[::-1], strict=True)
    ]
    assert [s.value for s in together] == pytest.approx([s.value for s in alone], abs=1e-6)
