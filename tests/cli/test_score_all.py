from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.scoring.metric import select_metrics
from evenmatch.types import Run
from tests.cli.conftest import Command

NO_DOWNLOAD = {"bleu", "chrf", "ter", "rouge1", "rouge2", "rougeL"}
DOWNLOAD = {"bartscore", "bartscore_precision", "bartscore_recall", "prism", "bleurt"}


@pytest.fixture
def nothing_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No embedded model is here, so that only metrics without one run, and quickly."""
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path / "models"))


@pytest.mark.usefixtures("nothing_fetched")
def test_all_prints_one_table_and_says_why_the_others_cannot_run(command: Command) -> None:
    Path("pairs.jsonl").write_text('{"candidate": "the cat sat", "reference": "a cat sat"}\n')
    said = command("score", "pairs.jsonl", "-m", "all")
    assert said.code == 0
    table = said.out.split("\n\n")[0].splitlines()
    shown = {row.split()[0] for row in table[1:]}
    assert shown >= NO_DOWNLOAD
    assert "rouge" not in shown  # it is rouge1
    told = {line.split()[1]: line for line in said.err.splitlines() if " cannot run: " in line}
    assert set(told) >= DOWNLOAD | {"bertscore", "moverscore", "likelihood"}
    assert "fetch it with: evenmatch models get minilm" in told["bertscore"]
    assert "'facebook/bart-large-cnn' is not on this machine" in told["bartscore"]


@pytest.mark.usefixtures("nothing_fetched")
def test_all_in_json_holds_what_ran_and_why_the_rest_did_not(command: Command) -> None:
    said = command("score", "-", "-m", "all", "--json", given='{"candidate":"a","reference":"a"}')
    document = json.loads(said.out)
    assert set(document["metrics"]) >= NO_DOWNLOAD
    assert set(document["absent"]) >= DOWNLOAD
    assert not set(document["metrics"]) & set(document["absent"])


@pytest.mark.usefixtures("nothing_fetched")
def test_what_is_named_beside_all_must_run(command: Command) -> None:
    given = '{"candidate":"a","reference":"a"}'
    said = command("score", "-", "-m", "all", "-m", "bertscore", given=given)
    assert said.code == 1
    assert "evenmatch models get minilm" in said.err


def test_without_all_the_metrics_are_those_named() -> None:
    assert select_metrics(["f_disc", "bleu"], Run()) == (["f_disc", "bleu"], {})


def test_where_nothing_runs_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenmatch.scoring.metric.names", lambda _: ())
    with pytest.raises(em.InputError, match="no metric can run here; `evenmatch models list`"):
        select_metrics(["all"], Run())


@pytest.mark.slow
@pytest.mark.model("minilm", "wordnet", "smollm2")
def test_all_has_every_metric_on_the_embedded_models(command: Command) -> None:
    Path("pairs.jsonl").write_text('{"candidate": "the cat sat", "reference": "a cat sat"}\n')
    found = json.loads(command("score", "pairs.jsonl", "-m", "all", "--json").out)["metrics"]
    embedded = {"bertscore", "f_disc", "f_cont", "moverscore", "eot", "meteor", "likelihood"}
    assert set(found) >= NO_DOWNLOAD | embedded
