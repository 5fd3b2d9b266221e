from __future__ import annotations

import numpy as np
import pytest

import evenmatch as em
from evenmatch.data.fairness_sets import FairnessSet, make_fairness_pair
from evenmatch.fairness.audit import audit
from evenmatch.fairness.bias import AttributeScores, Bias, measure_bias
from evenmatch.fairness.paradigms import (
    MetricKind,
    group_biases,
    metric_kind,
    paradigm_table,
    published_metric_kind,
)
from evenmatch.stats.paired import Resampling

MINILM = "minilm, layer 4"


@pytest.mark.model
@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("bertscore", MetricKind("greedy", MINILM)),
        ("f_disc", MetricKind("one-to-one", MINILM)),
        ("f_cont", MetricKind("transport", MINILM)),
        ("lisa_auction", MetricKind("one-to-one, approximate", MINILM)),
        ("lisa_topk", MetricKind("best pairs", MINILM)),
        ("moverscore", MetricKind("transport", "minilm, layer 6")),
        ("eot", MetricKind("one vector", "minilm, layer 6")),
        ("align(vectors=hashed)", MetricKind("greedy", "hashed")),
        ("rougeL", MetricKind("n-grams, edits", "none")),
    ],
)
def test_a_metric_s_kind_is_read_off_its_signature(metric: str, kind: MetricKind) -> None:
    assert metric_kind(em.build(metric).signature) == kind


@pytest.mark.parametrize(
    ("recipe", "paradigm"),
    [
        ("align(units=subtrees, vectors=transformer(layer=4))", "structure"),
        ("likelihood", "likelihood, both ways"),
        ("likelihood(direction='recall')", "likelihood of the reference"),
        ("likelihood(direction='candidate')", "fluency"),
        ("regression(model='sha256:01')", "regression, cross-encoder"),
        ("fitted(model='sha256:01')", "regression, bi-encoder"),
        ("blend(metrics=[bleu, fitted(model='sha256:01')])", "other"),
        ("align(alignment=<Mine>)", "other"),
    ],
)
def test_a_paradigm_is_read_off_a_recipe_whose_model_is_elsewhere(
    recipe: str, paradigm: str
) -> None:
    assert metric_kind(f"{recipe} · evenmatch 0.1.0 · model 01@02").paradigm == paradigm


def test_an_adapter_makes_another_encoder() -> None:
    recipe = "align(vectors=transformer(layer=4, adapter='gender')) · model minilm@01"
    assert metric_kind(f"{recipe} · adapter gender@02").encoder == f"{MINILM}, adapter gender"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("BERTScore-RoBERTa-base", MetricKind("greedy", "RoBERTa-base")),
        ("PRISM-p", MetricKind("likelihood of the candidate", "PRISM")),
        ("BARTScore-BART-large-F", MetricKind("likelihood, both ways", "BART-large")),
        ("FrugalScore-BERT-tiny", MetricKind("regression, cross-encoder", "BERT-tiny")),
        ("chrF", MetricKind("n-grams, edits", "none")),
        ("mine", MetricKind("other", "none")),
    ],
)
def test_published_metrics_have_kinds(name: str, kind: MetricKind) -> None:
    assert published_metric_kind(name) == kind


def bias(attribute: str, metric: str, apart: float) -> Bias:
    first = np.linspace(0.0, 1.0, 8)
    second = first[::-1] * apart + first * (1 - apart)
    testing = Resampling(confidence=0.95, resamples=1000, trials=10_000, seed=0)
    return measure_bias(AttributeScores(attribute, metric, first, second), testing)


def test_a_group_is_the_mean_over_metrics_and_attributes() -> None:
    biases = [bias(a, m, x) for a in ("age", "race") for m, x in (("m", 0.1), ("n", 0.5))]
    [both] = group_biases(biases, {"m": MetricKind("greedy", "A"), "n": MetricKind("greedy", "A")})
    assert both.metrics == ("m", "n")
    assert both.bias == pytest.approx(np.mean([each.bias for each in biases]))
    assert both.effect == pytest.approx(np.mean([each.effect for each in biases]))


def test_an_interval_over_four_attributes_is_half_as_wide() -> None:
    kinds = {"m": MetricKind("greedy", "A")}
    [one] = group_biases([bias("age", "m", 0.5)], kinds)
    [four] = group_biases([bias(str(n), "m", 0.5) for n in range(4)], kinds)
    assert four.high - four.low == pytest.approx((one.high - one.low) / 2)
    width = one.effect_high - one.effect_low
    assert four.effect_high - four.effect_low == pytest.approx(width / 2)
    assert width == pytest.approx((one.high - one.low) * one.effect / one.bias)


def test_groups_are_set_out_by_paradigm_and_encoder_the_fairest_first() -> None:
    biases = [bias("age", "m", 0.5), bias("age", "n", 0.1)]
    found = group_biases(
        biases, {"m": MetricKind("greedy", "A"), "n": MetricKind("one-to-one", "B")}
    )
    header, *rows = paradigm_table(found)
    assert header == ["paradigm", "B", "A"]
    assert [row[0] for row in rows] == ["one-to-one", "greedy"]
    assert rows[0][2] == "-"
    most = found[1]
    assert rows[1][2] == f"{most.effect:.2f} ({most.effect_low:.2f}-{most.effect_high:.2f})"


def test_an_audit_says_its_groups() -> None:
    pairs = [
        make_fairness_pair(
            f"he saw {thing}", f"it saw {thing}", f"she saw {thing}", f"it saw {thing}"
        )
        for thing in ("a cat", "the dog", "rain")
    ]
    found = audit(["chrf", "align(vectors=hashed)"], FairnessSet("small", {"gender": pairs}))
    assert {group.paradigm for group in found.groups} == {"n-grams, edits", "greedy"}
    assert "paradigm" in str(found)
    alone = audit("chrf", FairnessSet("small", {"gender": pairs}))
    assert "paradigm" not in str(alone)
