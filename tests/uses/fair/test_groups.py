from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.fair_pairs import FairSet
from evenmatch.data.fair_texts import fair_pair
from evenmatch.uses.fair.audit import audit
from evenmatch.uses.fair.bias import Bias, measure
from evenmatch.uses.fair.groups import crossed, grouped
from evenmatch.uses.fair.kinds import Kind, kind_of, published_kind

MINILM = "minilm, layer 4"


@pytest.mark.model
@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("bertscore", Kind("greedy", MINILM)),
        ("f_disc", Kind("one-to-one", MINILM)),
        ("f_cont", Kind("transport", MINILM)),
        ("lisa_auction", Kind("one-to-one, approximate", MINILM)),
        ("lisa_topk", Kind("best pairs", MINILM)),
        ("moverscore", Kind("transport", "minilm, layer 6")),
        ("eot", Kind("one vector", "minilm, layer 6")),
        ("align(vectors=hashed)", Kind("greedy", "hashed")),
        ("rougeL", Kind("n-grams, edits", "none")),
    ],
)
def test_a_metric_s_kind_is_read_off_its_signature(metric: str, kind: Kind) -> None:
    assert kind_of(em.build(metric).signature) == kind


@pytest.mark.parametrize(
    ("recipe", "paradigm"),
    [
        ("align(units=subtrees, vectors=transformer(layer=4))", "structure"),
        ("likelihood", "likelihood, both ways"),
        ("likelihood(direction='recall')", "likelihood of the reference"),
        ("regression(model='sha256:01')", "regression, side by side"),
        ("fitted(model='sha256:01')", "regression, two towers"),
        ("blend(metrics=[bleu, fitted(model='sha256:01')])", "other"),
        ("align(alignment=<Mine>)", "other"),
    ],
)
def test_a_paradigm_is_read_off_a_recipe_whose_model_is_elsewhere(
    recipe: str, paradigm: str
) -> None:
    assert kind_of(f"{recipe} · evenmatch 0.1.0 · model 01@02").paradigm == paradigm


def test_an_adapter_makes_another_encoder() -> None:
    recipe = "align(vectors=transformer(layer=4, adapter='gender')) · model minilm@01"
    assert kind_of(f"{recipe} · adapter gender@02").encoder == f"{MINILM}, adapter gender"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("BERTScore-RoBERTa-base", Kind("greedy", "RoBERTa-base")),
        ("PRISM-p", Kind("likelihood of the candidate", "PRISM")),
        ("BARTScore-BART-large-F", Kind("likelihood, both ways", "BART-large")),
        ("FrugalScore-BERT-tiny", Kind("regression, side by side", "BERT-tiny")),
        ("chrF", Kind("n-grams, edits", "none")),
        ("mine", Kind("other", "none")),
    ],
)
def test_published_metrics_have_kinds(name: str, kind: Kind) -> None:
    assert published_kind(name) == kind


def bias(attribute: str, metric: str, apart: float) -> Bias:
    first = np.linspace(0.0, 1.0, 8)
    return measure(attribute, metric, first, first[::-1] * apart + first * (1 - apart))


def test_a_group_is_the_mean_over_metrics_and_attributes() -> None:
    biases = [bias(a, m, x) for a in ("age", "race") for m, x in (("m", 0.1), ("n", 0.5))]
    [both] = grouped(biases, {"m": Kind("greedy", "A"), "n": Kind("greedy", "A")})
    assert both.metrics == ("m", "n")
    assert both.bias == pytest.approx(np.mean([each.bias for each in biases]))


def test_an_interval_over_four_attributes_is_half_as_wide() -> None:
    kinds = {"m": Kind("greedy", "A")}
    [one] = grouped([bias("age", "m", 0.5)], kinds)
    [four] = grouped([bias(str(n), "m", 0.5) for n in range(4)], kinds)
    assert four.high - four.low == pytest.approx((one.high - one.low) / 2)


def test_groups_are_set_out_by_paradigm_and_encoder_the_fairest_first() -> None:
    biases = [bias("age", "m", 0.5), bias("age", "n", 0.1)]
    found = grouped(biases, {"m": Kind("greedy", "A"), "n": Kind("one-to-one", "B")})
    header, *rows = crossed(found)
    assert header == ["paradigm", "B", "A"]
    assert [row[0] for row in rows] == ["one-to-one", "greedy"]
    assert rows[0][2] == "-"
    assert rows[1][2] == f"{found[1].bias:.2f} ({found[1].low:.2f}-{found[1].high:.2f})"


def test_an_audit_says_its_groups() -> None:
    pairs = [
        fair_pair(f"he saw {thing}", f"it saw {thing}", f"she saw {thing}", f"it saw {thing}")
        for thing in ("a cat", "the dog", "rain")
    ]
    found = audit(["chrf", "align(vectors=hashed)"], FairSet("small", {"gender": pairs}))
    assert {group.paradigm for group in found.groups} == {"n-grams, edits", "greedy"}
    assert "paradigm" in str(found)
    alone = audit("chrf", FairSet("small", {"gender": pairs}))
    assert "paradigm" not in str(alone)
