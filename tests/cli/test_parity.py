"""Commands and functions of Python have the same defaults and give the same results."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import evenmatch as em
from evenmatch.cli.main import COMMANDS, build_app
from tests.cli.conftest import Command
from tests.support.model_families import FolderOf
from tests.support.small_training import write_table

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "score": em.score,
    "align": em.align,
    "compare": em.compare,
    "meta": em.correlate,
    "audit": em.audit,
    "debias": em.debias,
    "keyphrases": em.score_keyphrases,
    "baseline": em.measure_baseline,
    "choose-layer": em.choose_layer,
    "fit": em.fit,
    "distil": em.distil,
    "calibrate": em.calibrate,
    "generate": em.generate,
}
REQUIRED = inspect.Parameter.empty


def plain(default: Any) -> Any:
    """An option that may be repeated has a list of its default; all forms of 'none' are alike."""
    if isinstance(default, list | tuple) and len(default) == 1:
        (default,) = default
    return None if default in ("", (), []) else default


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_command_has_the_defaults_of_its_function(name: str) -> None:
    app: Any = typer.main.get_command(build_app(list(COMMANDS)))
    options = {each.name: plain(each.default) for each in app.commands[name].params}
    defaults = {
        each.name: plain(each.default)
        for each in inspect.signature(FUNCTIONS[name]).parameters.values()
        if each.name in options and each.default is not REQUIRED
    }
    if name == "audit":  # without -m it takes bertscore, or none with --published
        del defaults["metric"]
    assert {each: options[each] for each in defaults} == defaults
    assert defaults


def test_an_audit_is_that_of_python(command: Command, tmp_path: Path) -> None:
    rows = [
        {"cand_a": "he left", "ref_a": "he went", "cand_b": "she left", "ref_b": "she went"},
        {"cand_a": "she came", "ref_a": "one came", "cand_b": "he came", "ref_b": "one came"},
    ]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("audit", "mine.jsonl", "-m", "chrf", "-m", "align(vectors=hashed)")
    document = json.loads(command(*asked, "--no-cache", "--json").out)
    found = em.audit(["chrf", "align(vectors=hashed)"], "mine.jsonl")
    assert document["rows"] == found.rows
    assert len(document["worst"]) == len(found.worst) == 2
    assert document["signatures"] == found.signatures
    assert command(*asked, "--no-cache").out == f"{found}\n"


def test_keyphrase_scores_are_those_of_python(command: Command) -> None:
    rows = [
        {"text": "we parse trees", "keyphrases": ["parse"], "pred": {"a": ["parse"], "b": ["x"]}},
        {"text": "we train nets", "keyphrases": ["nets"], "pred": {"a": ["net"], "b": ["nets"]}},
    ]
    Path("docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = em.score_keyphrases("docs.jsonl")
    document = json.loads(command("keyphrases", "docs.jsonl", "--json").out)
    expected = json.loads(json.dumps(found.document()))
    assert {name: document[name] for name in expected} == expected
    assert command("keyphrases", "docs.jsonl").out == f"{found}\n"


def test_a_calibrated_metric_is_that_of_python(command: Command, tmp_path: Path) -> None:
    ratings = write_table(tmp_path)
    hashed = "align(vectors=hashed)"
    asked = ("calibrate", ratings, "--test", ratings, "-m", "chrf", "-m", hashed, "--no-cache")
    said = command(*asked, "-o", "shell", "--json")
    assert said.code == 0, said.err
    made = em.calibrate(ratings, "python", ["chrf", hashed], test=ratings)
    document = json.loads(said.out)
    assert document["signature"] == made.document["signature"]
    assert document["rows"] == json.loads(json.dumps(made.document["rows"]))
    texts = ["a cat sat on the mat"], ["the cat sat on a mat"]
    assert em.score(*texts, "./shell").mean == em.score(*texts, "./python").mean


def test_baselines_and_layers_are_those_of_python(
    command: Command, folder_of: FolderOf, tmp_path: Path
) -> None:
    ratings = write_table(tmp_path)
    metric = f"f_disc(model={str(folder_of('bert'))!r}, layer='last')"
    texts = ["a cat sat", "rain in the north", "prices fell", "the quick brown fox"]
    Path("texts.txt").write_text("".join(text + "\n" for text in texts))
    said = command("baseline", "texts.txt", "-m", metric, "--pairs", "6")
    assert (said.code, said.out) == (0, f"{em.measure_baseline(texts, metric, pairs=6)}\n")
    asked = ("choose-layer", ratings, "-m", metric, "--folds", "3", "--no-store")
    found = em.choose_layer(ratings, metric, folds=3, store=False)
    assert command(*asked).out == f"{found}\n"
    document = json.loads(command(*asked, "--json").out)
    assert document == {**json.loads(json.dumps(found.document())), "command": document["command"]}


@pytest.mark.model
def test_a_cache_gives_the_scores_of_python(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVENMATCH_CACHE", str(tmp_path / "cache"))
    for name, lines in (("c.txt", "a cat\nrain\n"), ("r.txt", "the cat\nit rains\n")):
        Path(name).write_text(lines)
    asked = ("score", "-c", "c.txt", "-r", "r.txt", "-m", "f_disc", "--segments", "--json")
    texts = ["a cat", "rain"], ["the cat", "it rains"]
    for options, cache in (((), None), (("--cache",), True), (("--exact-cache",), "exact")):
        scores = em.score(*texts, "f_disc", cache=cache)
        for _ in range(2):  # computed, then read back
            found = json.loads(command(*asked, *options).out)["metrics"]["f_disc"]
            assert found["signature"] == scores.signature
            assert [s["value"] for s in found["segments"]] == scores.values.tolist()


@pytest.mark.model
def test_a_text_that_is_too_long_can_be_an_error_in_the_shell(command: Command) -> None:
    for name in ("c.txt", "r.txt"):
        Path(name).write_text("word " * 600 + "\n")
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", "f_disc(long='error')")
    with pytest.raises(em.InputError) as caught:
        em.score(["word " * 600], ["word " * 600], "f_disc(long='error')")
    assert (said.code, said.out, said.err) == (1, "", f"evenmatch: {caught.value}\n")
