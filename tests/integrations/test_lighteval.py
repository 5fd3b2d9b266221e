"""Metrics in lighteval: by the calls it documents and, if it is installed, by lighteval itself."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import pytest

import evenmatch as em
from evenmatch.integrations.lighteval import LightevalScores
from evenmatch.types import Run

SPEC = "align(vectors=hashed, alignment=lsa)"
CANDIDATES = ["a small dog", "a cat", ""]
REFERENCES = [["a dog"], ["a dog", "a cat"], ["a cat"]]
VALUES = [s.value for s in em.score(CANDIDATES, REFERENCES, SPEC).segments]


@dataclass
class Response:
    """The texts of a lighteval `ModelResponse`."""

    final_text: list[str]


@dataclass
class Document:
    """The parts of a lighteval `Doc` that metrics read."""

    choices: list[str]
    query: str = "Who?"

    def get_golds(self) -> list[str]:
        return self.choices


def test_responses_are_scored_together_or_one_by_one() -> None:
    scorer = LightevalScores(em.build(SPEC), Run())
    docs, responses = [Document(r) for r in REFERENCES], [Response([c]) for c in CANDIDATES]
    assert scorer.compute(responses=responses, docs=docs) == pytest.approx(VALUES)
    alone = [scorer.compute(doc=d, model_response=r) for d, r in zip(docs, responses, strict=True)]
    assert alone == pytest.approx(VALUES)


@pytest.mark.parametrize(
    ("docs", "responses", "words"),
    [
        ([Document([])], [Response(["a"])], "'Who\\?' has no gold choice"),
        ([Document(["a"])], [Response([])], "'Who\\?' has no text in its response"),
        ([Document(["a"])], [], "1 documents but 0 responses"),
    ],
)
def test_a_document_without_texts_is_named(docs: Any, responses: Any, words: str) -> None:
    with pytest.raises(em.InputError, match=words):
        LightevalScores(em.build(SPEC), Run()).compute(docs=docs, responses=responses)


def test_without_lighteval_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fail(name: str, *rest: Any) -> Any:
        if name.startswith("lighteval"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(em.MissingExtraError, match="pip install lighteval"):
        em.for_lighteval(SPEC)


@pytest.mark.filterwarnings("ignore")  # lighteval's own
def test_lighteval_computes_and_averages_the_metric() -> None:
    lighteval = pytest.importorskip("lighteval.metrics", reason="lighteval is not installed")
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    metric = em.for_lighteval(SPEC, name="overlap")
    docs = [Doc(query="Who?", choices=r, gold_index=list(range(len(r)))) for r in REFERENCES]
    responses = [ModelResponse(text=[c]) for c in CANDIDATES]
    found = [each["overlap"] for each in lighteval.apply_metric(responses, docs, [metric])]
    assert found == pytest.approx(VALUES)
    mean = metric.get_corpus_aggregations()["overlap"](found)
    assert mean == pytest.approx(sum(VALUES) / len(VALUES))
    assert em.for_lighteval("ter").higher_is_better is False
