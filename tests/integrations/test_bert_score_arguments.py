from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.integrations.bert_score import BERTScorer, choose_model, plot_example, score
from evenmatch.models.checkpoints import BEST_LAYERS

pytest.importorskip("torch")
pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def theirs() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bert_score
    return bert_score


@pytest.mark.parametrize("name", ["score", "BERTScorer", "plot_example"])
def test_functions_take_the_same_arguments(theirs: Any, name: str) -> None:
    ours = {"score": score, "BERTScorer": BERTScorer, "plot_example": plot_example}[name]
    assert arguments(ours) == arguments(getattr(theirs, name))


@pytest.mark.parametrize("name", ["score", "compute_idf", "plot_example"])
def test_methods_take_the_same_arguments(theirs: Any, name: str) -> None:
    assert arguments(getattr(BERTScorer, name)) == arguments(getattr(theirs.BERTScorer, name))


def arguments(function: Any) -> list[tuple[str, object]]:
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


def test_known_layers_agree_with_the_package(theirs: Any) -> None:
    from bert_score.utils import model2layers

    for model, layer in BEST_LAYERS.items():
        assert model2layers.get(model, layer) == layer


def test_a_model_for_every_language_agrees_with_the_package(theirs: Any) -> None:
    from bert_score.utils import lang2model

    for lang in ["en", "EN", "zh", "tr", "en-sci", "de", "xx"]:
        model = choose_model(None, lang)
        assert model == lang2model[lang.lower()]
        assert model in BEST_LAYERS


def test_without_model_and_language_there_is_nothing_to_choose() -> None:
    with pytest.raises(em.InputError, match="neither model_type nor lang is given; give one"):
        score(["a"], ["a"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": 3}, "model_type must be a string, got int"),
        ({"num_layers": 7}, "has layers 0 to 6, got layer 7"),
        ({"num_layers": "4"}, "num_layers must be a whole number, got '4'"),
        ({"rescale_with_baseline": True}, "give lang='en' or baseline_path='FILE'"),
        ({"rescale_with_baseline": True, "lang": "en"}, "no baseline is known for minilm in 'en'"),
        ({"idf": {1: 0.5}}, "must come from bert_score's get_idf_dict"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(em.InputError, match=message):
        score(["a"], ["a"], **{"model_type": "minilm", **options})


def test_weights_that_are_no_idf_are_refused() -> None:
    made_up: defaultdict[int, float] = defaultdict(lambda: math.log(11), {5: 1.234})
    with pytest.raises(em.InputError, match=r"not of the form log\(\(N \+ 1\) / \(df \+ 1\)\)"):
        score(["a"], ["a"], "minilm", idf=made_up)


@pytest.mark.parametrize("refs", ["a", [["a"], "b"], [1, 2], None])
def test_misshapen_references_are_refused(refs: Any) -> None:
    for idf in (False, True):
        with pytest.raises(em.InputError, match="reference"):
            score(["a", "b"], refs, "minilm", idf=idf)


def test_a_scorer_asks_for_its_idf() -> None:
    scorer = BERTScorer("minilm", idf=True)
    with pytest.raises(em.InputError, match=r"not counted yet; give idf_sents=\[\.\.\.\]"):
        scorer.score(["a"], ["a"])
    with pytest.raises(em.InputError, match="counted from a list of strings"):
        scorer.compute_idf("a sentence")


def test_counting_idf_again_warns() -> None:
    scorer = BERTScorer("minilm", idf=True, idf_sents=["a b", "b c"])
    with pytest.warns(UserWarning, match="previous idf weights are replaced"):
        scorer.compute_idf(["c d"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("LAYER,P,R,F\n4,0.1,0.2,0.3\n", "lacks layer 3; it has 4 to 4"),
        ("LAYER,P\n3,0.1\n", "is not a baseline file; expected a header LAYER,P,R,F"),
        ("LAYER,P,R,F\n3,a,b,c\n", "is not a baseline file"),
    ],
)
def test_a_bad_baseline_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "b.tsv"
    path.write_text(content)
    with pytest.raises(em.DataError, match=message):
        score(["a"], ["a"], "minilm", 3, rescale_with_baseline=True, baseline_path=str(path))
    with pytest.raises(em.DataError, match=r"cannot read the baseline .*: No such file"):
        score(["a"], ["a"], "minilm", 3, rescale_with_baseline=True, baseline_path="none.tsv")


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(em.MissingExtraError, match=r"pip install 'evenmatch\[torch\]'"):
        BERTScorer("minilm")
