from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

PAIRS = [
    ("the cat sat on the mat", "a cat was sitting on the mat", "die Katze sass auf der Matte"),
    ("prices rose last year", "last year prices went up", "die Preise stiegen"),
    ("rain fell in the north", "it rained up north", "es regnete im Norden"),
    ("she plays the violin", "she is a violin player", "sie spielt Geige"),
    ("the train was late", "the train came late", "der Zug kam zu spät"),
    ("he lost his keys", "his keys are lost", "er verlor die Schlüssel"),
]
SMALL = ("--length", "0", "--length", "32", "--algorithm", "greedy", "--algorithm", "lsa")


@pytest.fixture
def pairs(command: Command) -> str:
    rows = [dict(zip(("candidate", "reference", "source"), p, strict=True)) for p in PAIRS]
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "pairs.jsonl"


@pytest.mark.model
def test_lisa_prints_a_table_and_writes_a_folder(
    command: Command, pairs: str, empty_cache: Path
) -> None:
    said = command("study", "lisa", pairs, *SMALL, "--out", "found")
    assert said.code == 0, said.err
    assert "6 pairs of pairs.jsonl" in said.err
    assert "wrote found/index.html" in said.err
    assert "minilm layer 4: one-to-one alignment lowers the mean by" in said.out
    # per layer the baseline, and by length and algorithm, with and without padding counted
    assert len(list(Path("found/cells").iterdir())) == 2 * (1 + 2 * 2 * 2)
    again = command("study", "lisa", pairs, *SMALL, "--out", "found", "--json")
    assert {row["algorithm"] for row in json.loads(again.out)["rows"]} == {"eot", "greedy", "lsa"}


@pytest.mark.model
def test_lisa_takes_sources_where_a_model_is_named(
    command: Command, pairs: str, empty_cache: Path
) -> None:
    few = ("--length", "0", "--algorithm", "greedy", "--json")
    across = command("study", "lisa", pairs, *few, "--sources", "--model", "minilm", "--out", "a")
    within = command("study", "lisa", pairs, *few, "--model", "minilm", "--out", "b")
    means = [json.loads(said.out)["rows"][1]["aligned"] for said in (across, within)]
    assert means[0] < means[1]


def test_lisa_refuses_sources_for_the_english_model(command: Command, pairs: str) -> None:
    said = command("study", "lisa", pairs, "--sources")
    assert said.code == 2
    assert "give a multilingual --model" in said.err


@pytest.mark.model
def test_lisa_gradient_learns_from_the_sample_where_nothing_else_is(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path))
    few = ("--steps", "2", "--batch", "2", "--method", "held_lsa")
    said = command("study", "lisa-gradient", *few, "--json")
    assert said.code == 0, said.err
    assert "12 pairs of the sample" in said.err
    assert len(json.loads(said.out)["curves"][0]["losses"]) == 2
    assert Path("lisa-gradient/losses.svg").exists()


@pytest.mark.model
def test_alignment_prints_a_table_per_test_set(command: Command) -> None:
    row = {"source": ["the", "cat"], "target": ["a", "cat"], "sure": [[0, 0], [1, 1]]}
    for name in ("dev", "own"):
        Path(f"{name}.jsonl").write_text(2 * (json.dumps(row) + "\n"))
    given = ("--dev", "dev.jsonl", "--test", "own.jsonl", "--solver", "greedy", "--solver", "lsa")
    said = command("study", "alignment", *given, "--out", "found", "--json")
    assert said.code == 0, said.err
    rows = json.loads(said.out)["rows"]
    assert {row["solver"] for row in rows} == {"greedy", "lsa"}
    assert all(row["f1"]["value"] == 1 for row in rows)
    assert "people" in Path("found/links.svg").read_text()


def test_repetition_prints_the_resistance_of_each_metric(command: Command, pairs: str) -> None:
    metric = "align(units=words, vectors=hashed)"
    said = command("study", "repetition", pairs, "--metric", metric, "--out", "found")
    assert said.code == 0, said.err
    assert f"reference, {metric}: 16 repeated words cost 0.000" in said.out
    assert Path("found/reference-repeat.svg").exists()
