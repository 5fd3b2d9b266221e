from __future__ import annotations

import runpy
import sys
from typing import Any

import pytest

import evenmatch as em
import evenmatch.integrations.evaluate as module

LSA = "align(vectors=hashed, alignment=lsa)"
CANDIDATES = ["the cat sat", "", "rain"]
SEVERAL = [["the cat sat down", "a cat"], ["something"], ["rain", "snow"]]
SINGLE = [references[0] for references in SEVERAL]


@pytest.fixture(scope="module")
def loaded() -> Any:
    """The module as users load it."""
    import evaluate  # late, since it takes seconds that whoever runs other tests would wait for

    return evaluate.load(module.__file__)


@pytest.mark.parametrize("references", [SINGLE, SEVERAL])
@pytest.mark.parametrize("metric", [LSA, "chrf"])
def test_results_are_those_of_score(loaded: Any, references: Any, metric: str) -> None:
    found = loaded.compute(predictions=CANDIDATES, references=references, metric=metric)
    scores = em.score(CANDIDATES, references, metric)
    assert found["mean"] == scores.mean
    assert found.get("corpus") == scores.corpus
    assert found["value"] == [segment.value for segment in scores.segments]
    assert found["signature"] == scores.signature
    assert ("precision" in found) is (metric == LSA)


def test_what_is_added_bit_by_bit_counts_together(loaded: Any) -> None:
    loaded.add(prediction=CANDIDATES[0], reference=SINGLE[0])
    loaded.add_batch(predictions=CANDIDATES[1:], references=SINGLE[1:])
    assert loaded.compute(metric=LSA)["mean"] == em.score(CANDIDATES, SINGLE, LSA).mean


def test_the_class_can_be_used_without_loading() -> None:
    found = module.EvenmatchEvaluateMetric().compute(
        predictions=CANDIDATES, references=SINGLE, metric=LSA, threads=1
    )
    assert found["mean"] == em.score(CANDIDATES, SINGLE, LSA).mean


def test_it_says_what_it_takes(loaded: Any) -> None:
    assert "metric: a name or spec" in loaded.inputs_description


def test_an_unknown_metric_is_refused(loaded: Any) -> None:
    with pytest.raises(em.UnknownNameError, match="unknown metric 'bertscre'"):
        loaded.compute(predictions=["a"], references=["a"], metric="bertscre")


def test_a_list_of_metrics_is_refused(loaded: Any) -> None:
    with pytest.raises(em.InputError, match="metric takes one name or spec, got"):
        loaded.compute(predictions=["a"], references=["a"], metric=["chrf", "bleu"])


def test_without_evaluate_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evaluate", None)
    with pytest.raises(em.MissingExtraError, match=r"pip install 'evenmatch\[evaluate\]'"):
        runpy.run_path(module.__file__)


@pytest.mark.model
def test_the_default_is_bertscore(loaded: Any) -> None:
    found = loaded.compute(predictions=["the cat"], references=["a cat"])
    assert found["mean"] == em.score(["the cat"], ["a cat"]).mean
