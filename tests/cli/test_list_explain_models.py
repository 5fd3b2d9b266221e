from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.data.tables import table_to_text
from evenmatch.files import models_dir
from tests.cli.conftest import Command


def test_list_names_every_part_with_its_kind_and_what_it_is(command: Command) -> None:
    lines = command("list").out.splitlines()
    assert lines[0].split() == ["name", "kind", "description"]
    assert sorted(line.split()[0] for line in lines[1:]) == list(em.names())
    assert all(len(line.split()) > 3 for line in lines[1:])


def test_list_of_one_kind_names_that_kind(command: Command) -> None:
    lines = command("list", "alignment").out.splitlines()
    assert tuple(line.split()[0] for line in lines[1:]) == em.names("alignment")


def test_list_as_json_says_the_same(command: Command) -> None:
    parts = json.loads(command("list", "metric", "--json").out)["parts"]
    assert tuple(part["name"] for part in parts) == em.names("metric")
    [bertscore] = [part for part in parts if part["name"] == "bertscore"]
    assert bertscore["kind"] == "metric"
    assert bertscore["about"].startswith("BERTScore: match every token with its most similar one")


def test_list_of_an_unknown_kind_names_the_known(command: Command) -> None:
    said = command("list", "colour")
    assert (said.code, said.out) == (1, "")
    assert "there is no kind 'colour'; known: units," in said.err


def test_explain_shows_settings_inside_settings(command: Command) -> None:
    lines = command("explain", "align(vectors=hashed(dim=8), alignment=lsa)").out.splitlines()
    assert lines[0] == "align(vectors=hashed(dim=8), alignment=lsa)"
    rows = {line.split()[0]: line for line in lines[4:-2]}
    assert rows["vectors"].split()[1] == "hashed"
    assert rows["dim"].startswith("  dim ")
    assert rows["dim"].split()[1] == "8"
    assert "`lower` ignores the case of words." in rows["lower"]
    assert "min(m, n) pairs" in rows["alignment"]
    assert lines[-1] == f"signature: {em.build(lines[0]).signature}"


@pytest.mark.model
def test_explain_resolves_what_auto_stands_for(command: Command) -> None:
    found = json.loads(command("explain", "bertscore(idf=True)", "--json").out)
    assert (found["kind"], found["unresolved"]) == ("metric", None)
    settings = {setting["path"]: setting for setting in found["settings"]}
    assert settings["vectors.layer"]["value"] == "'auto'"
    assert settings["vectors.layer"]["resolved"] == "4"
    assert settings["vectors.weights"]["value"] == "idf"
    assert settings["vectors.weights.table"]["value"] == "''"
    assert found["signature"] == em.build("bertscore(idf=True)").signature
    assert "'auto' → 4" in command("explain", "bertscore").out


def test_explain_without_the_model_says_what_is_missing(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENMATCH_MODELS", "nowhere")
    said = command("explain", "f_disc")
    assert said.code == 0
    assert "no signature on this machine: the model 'minilm' is not in nowhere" in said.out
    assert json.loads(command("explain", "f_disc", "--json").out)["signature"] is None


def test_explain_of_a_part_without_settings_needs_no_table(command: Command) -> None:
    said = command("explain", "lsa").out
    assert "setting" not in said.split("signature")[0]
    assert said.startswith("lsa\nThe one-to-one alignment")


def test_explain_refuses_an_unknown_setting(command: Command) -> None:
    said = command("explain", "sinkhorn(epsilno=1.0)")
    assert said.code == 1
    assert "sinkhorn has no setting 'epsilno'; did you mean 'epsilon'?" in said.err


def test_models_list_says_what_is_installed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENMATCH_MODELS", "nowhere")
    models = json.loads(command("models", "list", "--json").out)["models"]
    [minilm] = [model for model in models if model["name"] == "minilm"]
    assert minilm["installed"] is False
    assert "all-MiniLM-L6-v2" in minilm["about"]
    assert re.search(r"minilm +no ", command("models", "list").out)


@pytest.mark.model
def test_models_get_gives_the_folder_of_a_model_that_is_here(command: Command) -> None:
    said = command("models", "get", "minilm")
    assert (said.code, Path(said.out.strip())) == (0, models_dir() / "minilm")
    assert said.err == "evenmatch: minilm is ready\n"


def test_models_get_of_an_unknown_name_lists_the_known(command: Command) -> None:
    said = command("models", "get", "nope")
    assert (said.code, said.out) == (1, "")
    assert "is called 'nope'; known: minilm" in said.err


def test_a_table_folds_its_last_column_to_the_width() -> None:
    table = [["name", "about"], ["x", "one two three four five six seven eight nine"]]
    assert table_to_text(table, width=36).splitlines() == [
        "name  about",
        "x     one two three four five six",
        "      seven eight nine",
    ]


def test_explain_shows_each_part_of_a_blend(command: Command) -> None:
    said = command("explain", "wmt_blend", "--json")
    settings = {each["path"]: each["value"] for each in json.loads(said.out)["settings"]}
    blend = em.build("wmt_blend").meant
    assert settings["parts"] == f"{len(blend.parts)} parts"
    shown = [settings[f"parts.{n}"] for n in range(1, len(blend.parts) + 1)]
    assert shown == [em.spec(part) for part in blend.parts]
