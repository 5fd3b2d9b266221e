"""Named alignment metrics against scores computed by hand.

Each metric is taken apart: its own encoder embeds hidden states that are given here, so that the
numbers depend on every choice that a name stands for, but on no model. Words are single letters:
a = (1, 0), b = (0, 2), c = (3, 4), and cosines are a·b = 0, a·c = 0.6, b·c = 0.8. The opening token
is (1, 1), the closing token (1, -1).
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment.assignment import Greedy, Lsa
from evenmatch.alignment.lisa import Auction, Recursive, RowMask, TopK
from evenmatch.alignment.partial import Partial, Unbalanced
from evenmatch.alignment.transport import Emd, Sinkhorn
from evenmatch.metrics.fitted import Projection, pair_features
from evenmatch.metrics.keyphrases.keyphrase_metric import KeyphraseMetric
from evenmatch.metrics.keyphrases.phrase_reducers import F1At, FineGrained
from evenmatch.metrics.keyphrases.phrase_similarity import ByMetric, PhraseScorer
from evenmatch.metrics.likelihood import Likelihood
from evenmatch.metrics.ngram.meteor import Meteor
from evenmatch.metrics.ngram.rouge import Rouge
from evenmatch.metrics.ngram.sacrebleu import Bleu, Chrf, Ter
from evenmatch.metrics.regression import Regression
from evenmatch.models.tokenizer import HiddenStates
from evenmatch.scoring.reducers import PartialPrf
from evenmatch.similarity.strings import PhraseStringSimilarity
from evenmatch.similarity.vectors import Cosine, Euclidean, SameLabel
from evenmatch.types import Array, Embedded, Problem, Score, Units
from evenmatch.units.keyphrases import Phrases
from evenmatch.units.parsers.files import ParseFile
from evenmatch.units.subtrees import Constituents, Subtrees
from evenmatch.units.text import Sentences
from evenmatch.vectors.hashed import Bare
from evenmatch.vectors.lookup import Lookup
from evenmatch.vectors.mover import Mover, _MoverSide
from evenmatch.vectors.transformer import Transformer
from evenmatch.vectors.weighting import Idf, Norm, Uniform
from tests.support.parses import write_brackets, write_conllu

VECTORS = {"a": (1.0, 0.0), "b": (0.0, 2.0), "c": (3.0, 4.0)}
IDS = {"[CLS]": 0, "a": 1, "b": 2, "c": 3, "[SEP]": 4}
S = math.sqrt(0.5)


def hidden_states(text: str, closing: tuple[float, float] = (1.0, -1.0)) -> HiddenStates:
    words = text.split()
    at = [text.index(word) for word in words]
    spans = [(0, 0), *((i, i + len(word)) for i, word in zip(at, words, strict=True)), (0, 0)]
    vectors = np.array([(1.0, 1.0), *(VECTORS[word] for word in words), closing])
    ids = np.array([IDS[token] for token in ("[CLS]", *words, "[SEP]")])
    special = {0: "[CLS]", len(words) + 1: "[SEP]"}
    return HiddenStates(text, ids, np.array(spans), special, {0: vectors})


def align(metric: Any, x: Embedded, y: Embedded) -> Score:
    similarity = metric.similarity(x, y)
    [alignment] = metric.alignment([Problem(similarity, x.mass, y.mass)])
    score: Score = metric.scoring(similarity, alignment, x, y)
    return score


def score(metric: Any, candidate: str, reference: str, **states: Any) -> Score:
    """Score a pair by the metric's own parts on the hidden states of this module."""
    x = metric.vectors.embed(metric.units(candidate), hidden_states(candidate), 0)
    y = metric.vectors.embed(metric.units(reference), hidden_states(reference, **states), 0)
    return align(metric, x, y)


@pytest.mark.parametrize(
    ("spec", "precision", "recall"),
    [
        # a takes a (1) and b takes c (0.8); c takes the opening token, (3, 4)·(1, 1) / 5√2.
        ("bertscore", 0.9, (7 * S / 5 + 1) / 2),
        ("bertscore(marks=False)", 0.9, (0.8 + 1) / 2),
        ("f_disc", 0.9, 0.9),
        # Masses are (1, 2) / 3 and (5, 1) / 6: a gives half of its mass to c and half to a.
        ("f_cont", (0.8 + 0.8) / 2, (0.76 + 1) / 2),
        ("f_cont(mass=uniform)", 0.9, 0.9),
        ("lisa_rowmask", 0.9, 0.9),
        ("lisa_recursive", 0.9, 0.9),
        ("lisa_auction", 0.9, 0.9),
    ],
)
def test_each_name_gives_its_score_by_hand(spec: str, precision: float, recall: float) -> None:
    found = score(em.build(spec), "a b", "c a")
    assert found.precision == pytest.approx(precision)
    assert found.recall == pytest.approx(recall)
    assert found.value == pytest.approx(2 * precision * recall / (precision + recall))


def test_one_to_one_alignment_leaves_the_longer_side_unmatched() -> None:
    found = score(em.build("f_disc"), "a b c", "c a")
    assert (found.precision, found.recall) == pytest.approx((2 / 3, 1))
    found = score(em.build("bertscore(marks=False)"), "a b c", "c a")
    assert (found.precision, found.recall) == pytest.approx((2.8 / 3, 1))


def test_eot_is_the_cosine_of_the_closing_tokens() -> None:
    found = score(em.build("eot"), "a b", "c", closing=(0.0, 3.0))
    assert found.value == found.precision == found.recall == pytest.approx(-S)


def test_idf_weights_each_token_in_precision_and_recall(tmp_path: Path) -> None:
    """Of 3 documents, 1 has a, 3 have c and none has b: idf is log 2, 0 and log 4."""
    table = tmp_path / "idf.json"
    table.write_text(json.dumps({"documents": 3, "counts": [[1, 1], [3, 3]]}))
    found = score(em.build(f"bertscore(idf={str(table)!r})"), "a b", "c a")
    assert found.precision == pytest.approx((1 + 2 * 0.8) / 3)
    assert found.recall == pytest.approx(1)
    found = score(em.build(f"f_disc(idf={str(table)!r})"), "a b", "c b")
    assert found.precision == pytest.approx((0.6 + 2 * 1) / 3)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("struct_dep", 1.0),
        # "b a" as a whole has the head b, "a b" has a; it takes the word b, at 2 / √5.
        ("struct_dep_head", (2 + 2 / math.sqrt(5)) / 3),
    ],
)
def test_subtrees_match_by_head_only_where_the_name_says_so(
    tmp_path: Path, name: str, precision: float
) -> None:
    """The first word is the root; maxima of a and b give (1, 2), whose cosine with b is 2 / √5."""
    parser = ParseFile(write_conllu(tmp_path, {"a b": (0, 1), "b a": (0, 1)}))
    found = score(with_parser(name, parser), "b a", "a b")
    assert found.precision == pytest.approx(precision)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("struct_con", 1.0),
        # NP matches NP; DT is a here and b there.
        ("struct_con_label", 1 / 3),
        # NP has the head b here and a there, and takes the word b, at 2 / √5.
        ("struct_con_head", (2 + 2 / math.sqrt(5)) / 3),
    ],
)
def test_constituents_match_by_label_or_head_only_where_the_name_says_so(
    tmp_path: Path, name: str, precision: float
) -> None:
    parser = ParseFile(write_brackets(tmp_path, "(NP (DT a) (NN b))", "(NP (DT b) (NN a))"))
    found = score(with_parser(name, parser), "a b", "b a")
    assert found.precision == pytest.approx(precision)


def test_log_length_counts_longer_units_more(tmp_path: Path) -> None:
    """Units of one word have weight log 1 = 0, so that only "a b" against "a c" remains."""
    parser = ParseFile(write_conllu(tmp_path, {"a b": (0, 1), "a c": (0, 1)}))
    metric = with_parser("struct_dep(weight='log_length')", parser)
    # maxima (1, 2) against a = (1, 0), a c = (3, 4) and c = (3, 4)
    assert score(metric, "a b", "a c").precision == pytest.approx(11 / (5 * math.sqrt(5)))
    plain = score(with_parser("struct_dep", parser), "a b", "a c")
    assert plain.precision == pytest.approx((1 + 11 / (5 * math.sqrt(5)) + 0.8) / 3)


def with_parser(spec: str, parser: ParseFile) -> Any:
    metric = em.build(spec)
    return dataclasses.replace(metric, units=dataclasses.replace(metric.units, parser=parser))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bertscore", (Cosine(), Greedy(), Transformer())),
        ("bertscore_even", (Cosine(), Greedy(), Transformer(adapter="gender"))),
        ("f_disc", (Cosine(), Lsa(), Transformer())),
        ("f_disc_even", (Cosine(), Lsa(), Transformer(adapter="gender"))),
        ("f_cont", (Cosine(), Emd(), Transformer(mass=Norm()))),
        ("f_partial", (Cosine(), Partial(0.5), Transformer())),
        ("f_static", (Cosine(), Lsa(), Lookup(model="minilm", weights=Idf("english")))),
        ("eot", (Cosine(), Greedy(), Transformer(layer="last"))),
        ("lisa_rowmask", (Cosine(), RowMask(), Transformer())),
        ("lisa_recursive", (Cosine(), Recursive(10, 0.8), Transformer())),
        ("lisa_topk", (Cosine(), TopK(10, 10.0), Transformer())),
        ("lisa_auction", (Cosine(), Auction("short", 1.0), Transformer())),
        ("struct_dep", (Cosine(), Greedy(), Transformer())),
        ("struct_dep_head", (SameLabel(), Greedy(), Transformer())),
        ("struct_con", (Cosine(), Greedy(), Transformer())),
        ("struct_con_label", (SameLabel(), Greedy(), Transformer())),
        ("struct_con_head", (SameLabel(), Greedy(), Transformer())),
    ],
)
def test_each_name_stands_for_its_parts(name: str, parts: tuple[Any, ...]) -> None:
    metric = em.build(name)
    assert (metric.similarity, metric.alignment, metric.vectors) == parts


def test_parts_have_their_defaults() -> None:
    """An encoder pools maxima with equal weights, and so on."""
    assert Transformer() == Transformer("minilm", "auto", "max", Uniform(), Uniform())
    assert em.build("f_partial").scoring == PartialPrf(credit=0.5, penalty=2, new=0.6, repeated=0.8)
    assert Chrf() == Chrf(6, 0, 2.0, False, False, False)
    assert Bleu() == Bleu("13a", False, "exp", 4)
    assert Ter() == Ter(False, False, False, False)
    assert Meteor() == Meteor(0.9, 3.0, 0.5, "auto")
    assert Rouge() == Rouge("1", False, "auto")
    assert Sinkhorn() == Sinkhorn(0.05, 1000, 1e-6)
    assert Partial() == Partial(0.4)
    assert Unbalanced() == Unbalanced(0.5, 0.05, 1000, 1e-5)
    assert FineGrained() == FineGrained("released", True, True, 1.0)
    assert F1At() == F1At("M", True, "macro", "f1")
    assert KeyphraseMetric() == KeyphraseMetric(
        Phrases(";", "porter", "auto"), "all", "drop", "drop", "drop", 200, "count",
        Bare(), PhraseStringSimilarity(), Greedy(), FineGrained(),
    )  # fmt: skip
    units = Subtrees()
    assert (units.nodes, units.paths, units.descendants) == (True, True, True)
    assert (units.multiset, units.lower, units.weight) == (False, False, "uniform")
    assert (Constituents().label, Constituents().words) == ("head", True)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("smart1", em.AlignMetric(Sentences(), Bare(), ByMetric(Chrf()), Greedy())),
        ("fb", KeyphraseMetric(similarity=ByMetric(PhraseScorer()), scoring=FineGrained("paper"))),
        ("rouge1", Rouge("1")),
        ("rouge2", Rouge("2")),
        ("rougeL", Rouge("L")),
        ("bartscore", Likelihood("facebook/bart-large-cnn", "both")),
        ("bartscore_precision", Likelihood("facebook/bart-large-cnn", "precision")),
        ("bartscore_recall", Likelihood("facebook/bart-large-cnn", "recall")),
        (
            "prism",
            Likelihood("facebook/m2m100_418M", source_tag="__en__", target_tag="__en__"),
        ),
        ("bleurt", Regression("Elron/bleurt-base-512", "reference", 512)),
        (
            "frugalscore",
            Regression("moussaKam/frugalscore_tiny_bert-base_bert-score", "candidate", 128),
        ),
    ],
)
def test_each_other_preset_is_its_metric(name: str, metric: Any) -> None:
    assert em.build(name) == metric


def mover_side(metric: Any, weighting: Any = Uniform()) -> _MoverSide:
    """One side of MoverScore on hidden states of layer 0; c is dropped."""
    backbone: Any = None
    dropped = np.array([False, False, False, True, False])
    return _MoverSide(backbone, (0,), metric.vectors.n_gram, weighting, dropped)


def test_moverscore_is_one_over_one_and_the_distance() -> None:
    """Of "a c b" a and b are left; b is √2 from a, and half of the mass moves that far."""
    metric = em.build("moverscore(idf=False)")
    assert metric.similarity == Euclidean()
    x, y = (
        mover_side(metric).embed(metric.units(text), hidden_states(text)) for text in ("a c b", "a")
    )
    assert x.vectors.tolist() == [[1, 0], [0, 2]]
    assert align(metric, x, y).value == pytest.approx(1 / (1 + S))


def test_moverscore_moves_mass_by_idf(tmp_path: Path) -> None:
    table = tmp_path / "idf.json"
    table.write_text(json.dumps({"documents": 3, "counts": [[1, 1]]}))
    metric = em.build("moverscore")
    weighting = Idf(str(table))
    x, y = (
        mover_side(metric, weighting).embed(metric.units(text), hidden_states(text))
        for text in ("a b", "a")
    )
    # b has idf log 4, twice that of a: two thirds of the mass move √2
    assert x.mass == pytest.approx([math.log(2), math.log(4)])
    assert align(metric, x, y).value == pytest.approx(1 / (1 + 2 / 3 * math.sqrt(2)))


def test_the_first_moverscore_squares_distances_of_weighted_bigrams() -> None:
    metric = em.build("moverscore(version=1, n_gram=2, idf=False)")
    assert isinstance(metric.vectors, Mover)
    assert metric.vectors.layers == 5
    x, y = (
        mover_side(metric).embed(metric.units(text), hidden_states(text)) for text in ("a b", "a")
    )
    # Special tokens have no weight: the bigrams of "a b" are a, the mean of a and b, and b.
    assert x.vectors.tolist() == [[1, 0], [0.5, 1], [0, 2]]
    assert x.mass.tolist() == [1, 2, 1]
    # Masses 1/4, 1/2, 1/4; squared distances from a are 0, 2 - 2/√5 and 2.
    expected = 1 - ((2 - 2 / math.sqrt(5)) / 2 + 2 / 4)
    assert align(metric, x, y).value == pytest.approx(expected)


def test_several_layers_are_combined_by_minimum_mean_and_maximum() -> None:
    side = dataclasses.replace(mover_side(em.build("moverscore")), layers_read=(0, 1))
    layers = {0: np.array([[3.0, 4.0]]), 1: np.array([[0.0, -2.0]])}
    states = HiddenStates("c", np.array([3]), np.array([(0, 1)]), {}, layers)
    found: Array = side._combine_layers(states)
    assert found == pytest.approx(np.array([[0, -1, 0.3, -0.1, 0.6, 0.8]]))


def test_units_that_are_words_are_pooled_by_their_mean() -> None:
    units = Units("a b", ("a b",), ((0, 3),), ((0,),))
    found = mover_side(em.build("moverscore")).embed(units, hidden_states("a b"))
    assert found.vectors.tolist() == [[0.5, 1]]


def _projection(importance: list[float], shift: float = 0.0) -> Projection:
    """A projection that adds `shift` times the first number, if positive, to the second one."""
    down, up = np.array([[1.0, 0]]), np.array([[0.0], [shift]])
    return Projection(down, np.zeros(1), up, np.zeros(2), np.array(importance))


def test_the_matches_that_a_fitted_head_reads() -> None:
    """Six tokens against one: cosines 1, 1, 1, 1, .6 and 0; a fifth of six tokens is two."""
    x = np.array([[1.0, 0], [2, 0], [3, 0], [1, 0], [3, 4], [0, 1]])
    y = np.array([[5.0, 0]])
    found = pair_features({1: x}, {1: y}, (1,), [_projection([0.0, 0])])[4:]
    plain = [4.6 / 6, 1.0, 2 * 4.6 / 10.6]
    assert found == pytest.approx([*plain, 0.3, 1.0, *plain])
    weighted = pair_features({1: x[4:]}, {1: y}, (1,), [_projection([-4.0, 3.5])])[4:]
    # the logarithms are 2 and 3.5, which is limited to 3; the reference's, -20, does not matter
    precision = 0.6 * np.exp(2) / (np.exp(2) + np.exp(3))
    f = 2 * precision * 0.6 / (precision + 0.6)
    assert weighted[5:] == pytest.approx([precision, 0.6, f])
    nothing = pair_features({1: x[:0]}, {1: y}, (1,), [_projection([1.0, 1])])[4:]
    assert nothing.tolist() == [0.0] * 8


def test_a_projection_adds_a_rectified_change() -> None:
    found = _projection([0.0, 0], 2.0)(np.array([[1.0, 0], [-1, 0]]))
    assert found.tolist() == [[1, 2], [-1, 0]]
