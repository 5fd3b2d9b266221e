from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.files import hold_lock
from evenmatch.training.generator.decoding import generate_texts
from evenmatch.training.generator.policy import load_policy
from tests.cli.conftest import Command
from tests.support.tuning import write_examples

pytest.importorskip("tensorboard", reason="tensorboard is not installed")

CONFIG = """
train = "train.jsonl"
valid = "valid.jsonl"
out = "out"
epochs = 1
batch = 4
longest_target = 12
[shape]
words = 300
width = 16
layers = 1
heads = 2
"""


def test_tune_pauses_goes_on_and_says_what_it_made(command: Command, tmp_path: Path) -> None:
    write_examples(tmp_path / "train.jsonl", 10, seed=1)
    write_examples(tmp_path / "valid.jsonl", 4, seed=2)
    (tmp_path / "run.toml").write_text(CONFIG)
    paused = command("tune", "run.toml", "--minutes", "0.000001")
    assert (paused.code, paused.out) == (0, "no evaluation yet\n")
    assert "paused at step 1 of " in paused.err
    assert "; run the same command again to continue" in paused.err
    done = command("tune", "run.toml", "--json", "--progress")
    assert done.code == 0
    assert json.loads(done.out)["ended"]
    given = json.loads(done.out)["settings"]
    assert given["reward"] == em.TuneSettings("", "", "").reward
    assert given["shape"]["width"] == 16
    assert "rate" not in given or f"rate = {given['rate']:g}" in CONFIG
    assert "reward" in done.err
    assert "wrote out/model; to write texts with it: evenmatch generate out/model" in done.err
    steps = json.loads(done.out)["steps"]
    assert f"evenmatch: finished {steps} steps; best: step {steps}\n" in done.err
    again = command("tune", "run.toml")
    assert "  best" in again.out
    assert again.err == (
        f"evenmatch: run is already finished ({steps} steps); nothing to do; "
        "the best model is out/model\n"
    )


def test_tune_says_that_patience_ended_the_run(command: Command, tmp_path: Path) -> None:
    write_examples(tmp_path / "train.jsonl", 10, seed=1)
    write_examples(tmp_path / "valid.jsonl", 4, seed=2)
    unchanged = "rate = 1e-12\nrl_weight = 0.0\nlook_every = 1\npatience = 2\nkeep_every = 9\n"
    (tmp_path / "run.toml").write_text(unchanged + CONFIG.replace("epochs = 1", "epochs = 100"))
    done = command("tune", "run.toml")
    assert re.search(
        r"stopped at step 3 of \d00: BLEU has not improved for 2 evaluations \(patience\); "
        r"best: step 1\n",
        done.err,
    )
    assert re.match(r"step 1  BLEU 0\.\d{4}  cross-entropy ", done.out)


def test_tune_logs_each_evaluation_where_there_is_no_terminal(
    command: Command, tmp_path: Path
) -> None:
    write_examples(tmp_path / "train.jsonl", 8, seed=1)
    write_examples(tmp_path / "valid.jsonl", 2, seed=2)
    (tmp_path / "run.toml").write_text("look_every = 2\n" + CONFIG)
    said = command("tune", "run.toml", "--json")
    steps = [row["step"] for row in json.loads(said.out)["looks"]]
    logged = re.findall(r"step (\d+) of \d+: cross-entropy", said.err)
    assert [int(step) for step in logged] == steps
    assert "cross-entropy" not in command("tune", "run.toml", "--no-progress").err


def test_two_runs_do_not_write_to_one_folder(command: Command, tmp_path: Path) -> None:
    write_examples(tmp_path / "train.jsonl", 4, seed=1)
    write_examples(tmp_path / "valid.jsonl", 2, seed=2)
    (tmp_path / "run.toml").write_text(CONFIG)
    (tmp_path / "out").mkdir()
    with hold_lock(tmp_path / "out" / ".lock"):
        said = command("tune", "run.toml")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "another run is writing to out; wait, or name another out" in said.err
    (tmp_path / "file.toml").write_text(CONFIG.replace('"out"', '"train.jsonl"'))
    assert "out is the file train.jsonl; name a folder" in command("tune", "file.toml").err


def test_generate_writes_json_lines_only(command: Command) -> None:
    said = command("generate", "out/model", "valid.jsonl", "-o", "texts.txt")
    assert (said.code, said.out) == (2, "")
    assert "name the file .jsonl, not texts.txt" in " ".join(said.err.split())


def test_generate_writes_texts_that_can_be_scored(command: Command, tmp_path: Path) -> None:
    write_examples(tmp_path / "train.jsonl", 10, seed=1)
    write_examples(tmp_path / "valid.jsonl", 4, seed=2)
    (tmp_path / "run.toml").write_text('prefix = "say: "\n' + CONFIG)
    assert command("tune", "run.toml").code == 0
    done = command("generate", "out/model", "valid.jsonl", "-o", "texts.jsonl")
    assert (done.code, done.out) == (0, "")
    assert "wrote 4 texts to texts.jsonl; to score them: evenmatch score texts.jsonl" in done.err
    graphs = em.read_graphs(tmp_path / "valid.jsonl")
    records = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
    assert [each["references"] for each in records] == [list(g.references) for g in graphs]
    assert [each["source"] for each in records] == [g.graph.line for g in graphs]
    model = tmp_path / "out/model"
    printed = command("generate", "out/model", "valid.jsonl")
    assert (printed.code, printed.out) == (0, Path("texts.jsonl").read_text())
    texts = em.generate(model, [g.graph.line for g in graphs], batch_size=3)
    assert [each["candidate"] for each in records] == texts
    policy = load_policy(str(model))
    for graph, text in zip(graphs, texts, strict=True):
        own = generate_texts(policy, ["say: " + graph.graph.line], longest=(512, 12), batch_size=1)
        assert [text] == own
    assert (
        command("generate", "out/model", "valid.jsonl", "-o", "b.jsonl", "--beams", "3").code == 0
    )
    records = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    searched = em.generate(model, [g.graph.line for g in graphs], beams=3)
    assert [each["candidate"] for each in records] == searched != texts
    scored = command("score", "texts.jsonl", "-m", "chrf", "--json", "--segments")
    assert len(json.loads(scored.out)["metrics"]["chrf"]["segments"]) == 4


def test_generate_needs_no_references(command: Command, tmp_path: Path) -> None:
    write_examples(tmp_path / "train.jsonl", 10, seed=1)
    write_examples(tmp_path / "valid.jsonl", 4, seed=2)
    (tmp_path / "run.toml").write_text(CONFIG)
    command("tune", "run.toml")
    (tmp_path / "new.jsonl").write_text('{"id": "n1", "triples": [["Cork", "nearTo", "Dover"]]}\n')
    done = command("generate", "out/model", "new.jsonl", "-o", "texts.jsonl")
    assert done.err.strip().endswith("wrote 1 texts to texts.jsonl")
    (record,) = map(json.loads, (tmp_path / "texts.jsonl").read_text().splitlines())
    assert list(record) == ["id", "source", "candidate"]


def test_generate_refuses_a_model_that_cannot_write(command: Command, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"source": "a"}\n')
    told = command("generate", "./none", "new.jsonl", "-o", "texts.jsonl")
    assert told.code == 1
    assert "there is no folder ./none" in told.err
    with pytest.raises(em.InputError, match="sources takes a list"):
        em.generate("./none", "a text")


def test_a_config_that_is_not_there_is_one_line(command: Command) -> None:
    told = command("tune", "none.toml")
    assert told.code == 1
    assert "cannot read none.toml: No such file" in told.err
    assert len(told.err.splitlines()) == 1
