"""Public functions answer a wrong call with an error of evenmatch: no number and no traceback."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.errors import EvenmatchError

HASHED = "align(vectors=hashed)"
NOTHING = object()

# For each function the arguments of a plausible call. Each is replaced by wrong values in turn.
CALLS: dict[str, dict[str, Any]] = {
    "align": {"candidate": "a", "reference": "b", "metric": HASHED},
    "audit": {"metric": HASHED, "pairs": "", "attributes": ["gender"], "resamples": 9},
    "build": {"spec": "lsa"},
    "calibrate": {"data": "ratings.tsv", "out": "new", "metrics": HASHED},
    "check_encoder": {"encoder": em.Hashed()},
    "check_metric": {"metric": em.AlignMetric(vectors=em.Hashed())},
    "check_solver": {"solver": em.Lsa()},
    "choose_layer": {"data": "ratings.tsv", "metric": "bertscore"},
    "compare": {"systems": {"a": ["x"], "b": ["y"]}, "references": ["x"], "metric": HASHED},
    "correlate": {"metrics": HASHED, "ratings": "ratings.tsv", "level": "system"},
    "counterfactuals": {"sentences": ["She left."], "attribute": "gender"},
    "debias": {"metric": "f_disc", "out": "new", "sentences": (), "judge_on": [""]},
    "distil": {"teacher": HASHED, "data": [em.Pair("a", ("b",))] * 20, "out": "new"},
    "explain_pair": {"pair": em.make_fairness_pair("he", "a", "she", "a"), "metric": HASHED},
    "fit": {"data": "ratings.tsv", "out": "new", "kind": "towers", "model": "minilm"},
    "for_lighteval": {"metric": "bleu"},
    "for_openrlhf": {"reward": "bleu"},
    "for_trl": {"reward": "bleu"},
    "for_verl": {"reward": "bleu"},
    "generate": {"model": "nosuchmodel", "sources": ["a"]},
    "join_phrases": {"phrases": ["a", "b"]},
    "length_term": {"low": 0.5, "high": 2.0},
    "make_fairness_pair": {"cand_a": "he", "ref_a": "a", "cand_b": "she", "ref_b": "a"},
    "measure_baseline": {"texts": ["a b", "c d"], "metric": "bertscore"},
    "names": {"kind": "metric"},
    "read_documents": {"data": "documents.jsonl", "predictions": ["a"]},
    "read_fair_pairs": {"data": "", "attributes": ["gender"]},
    "read_graphs": {"data": "graphs.jsonl"},
    "read_ratings": {"data": "ratings.tsv", "subsets": []},
    "register": {"kind": "units", "name": "mine"},
    "repetition_term": {"size": 2},
    "reward": {"metric": "bleu"},
    "score": {"candidates": ["a"], "references": ["b"], "metric": HASHED, "threads": 1},
    "score_files": {"path": "pairs.jsonl", "out": "scores.jsonl", "metric": HASHED},
    "score_keyphrases": {"data": "documents.jsonl", "metric": "fg", "predictions": ["a"]},
    "solve": {"similarity": [[1.0]], "solver": "lsa"},
    "solve_batch": {"similarities": [[[1.0]]], "solver": "lsa"},
    "spec": {"part": em.Lsa()},
    "tune": {"settings": "settings.toml"},
    "write_graphs": {"graphs": [], "path": "graphs.jsonl"},
    "write_report": {"result": {}, "path": "page.html"},
}
WRONG = {
    "None": None,
    "number": 7,
    "name": "no such thing",
    "bytes": b"text",
    "list of numbers": [7],
    "list of None": [None],
    "list of lists": [["a"], [7]],
    "tuple": ("a", "b"),
    "dictionary": {"a": 1},
    "object": NOTHING,
    "class": em.Lsa,
    "part of another kind": em.Prf(),
    "scores": em.Scores((em.Score(0.5),), "bleu"),
}
# Wrong values that are right there: defaults, and texts and numbers where these are asked for.
RIGHT = {
    ("audit", "resamples", "number"),
    ("debias", "out", "name"),
    ("fit", "out", "name"),
    ("score_files", "out", "name"),
    ("write_report", "result", "scores"),
    ("align", "candidate", "name"),
    ("align", "reference", "name"),
    ("check_solver", "solver", "class"),
    ("counterfactuals", "sentences", "tuple"),
    ("join_phrases", "phrases", "tuple"),
    ("length_term", "high", "number"),
    *(("make_fairness_pair", text, "name") for text in ("cand_a", "ref_a", "cand_b", "ref_b")),
    ("measure_baseline", "texts", "tuple"),
    ("names", "kind", "None"),
    ("score_keyphrases", "metric", "None"),
    ("repetition_term", "size", "number"),
    ("score", "threads", "number"),
    ("spec", "part", "part of another kind"),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{s}\t{n}\ta b\ta {n}\t{n + len(s)}" for s in ("x", "yy", "zzz") for n in range(4)]
    header = "system\tsegment\tcandidate\treferences\trating"
    Path("ratings.tsv").write_text("\n".join([header, *rows]) + "\n")
    Path("documents.jsonl").write_text('{"text": "a", "keyphrases": ["a"], "pred": {"a": ["a"]}}\n')
    Path("pairs.jsonl").write_text('{"candidate": "a", "reference": "a"}\n')
    Path("graphs.jsonl").write_text('{"source": "a", "references": ["a"]}\n')


def test_every_public_function_is_called() -> None:
    functions = {name for name in em.__all__ if inspect.isfunction(getattr(em, name))}
    assert functions == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_argument_is_refused(name: str, wrong: str) -> None:
    for argument in CALLS[name]:
        if (name, argument, wrong) not in RIGHT:
            call_refused(getattr(em, name), CALLS[name] | {argument: WRONG[wrong]})


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_option_is_refused(name: str) -> None:
    for parameter in inspect.signature(getattr(em, name)).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            call_refused(getattr(em, name), CALLS[name] | {parameter.name: NOTHING})


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_argument_is_refused(name: str) -> None:
    call_refused(getattr(em, name), CALLS[name] | {"nosuch": 1})


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_argument_is_refused(name: str) -> None:
    parameters = inspect.signature(getattr(em, name)).parameters.values()
    if any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
        call_refused(getattr(em, name), {})


@pytest.mark.parametrize("wrong", ["hashed", em.Hashed, None, 7])
def test_a_part_of_a_part_is_an_instance(wrong: Any) -> None:
    fields = ("units", "vectors", "similarity", "alignment", "scoring")
    for field in fields if wrong != "hashed" else fields[:1]:  # a name is built
        call_refused(em.AlignMetric, {field: wrong})
    call_refused(em.Hashed, {"mass": wrong})
    call_refused(em.Rescale, {"low": 0.5, "base": wrong})
    call_refused(em.SameLabel, {"base": wrong})


@pytest.mark.parametrize("wrong", [None, 7, "a", b"a", [7], ["a", "b"], {"a": 1}])
def test_what_a_reward_is_called_with_is_checked(wrong: Any) -> None:
    call_refused(em.reward("bleu"), {"pairs": wrong})
    call_refused(em.for_trl("bleu"), {"completions": ["a"], "references": wrong})
    call_refused(em.for_trl("bleu"), {"completions": wrong, "references": ["a"]})
    many = {"data_sources": [0], "solution_strs": ["a"], "ground_truths": ["a"]}
    for name in ("solution_strs", "ground_truths"):
        call_refused(em.for_verl("bleu").compute_batch, many | {name: wrong})
    given = {"queries": ["a"], "prompts": ["b"], "labels": ["c"]}
    for name in given:
        call_refused(em.for_openrlhf("bleu"), given | {name: wrong})


def call_refused(function: Any, arguments: dict[str, Any]) -> None:
    """Expect an error of evenmatch, or a TypeError of the call itself."""
    with pytest.raises((EvenmatchError, TypeError)) as raised:
        function(**arguments)
    if raised.type is TypeError:
        assert raised.traceback[-1].name in ("call_refused", "checked_call"), arguments
