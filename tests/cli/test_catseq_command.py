from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

pytest.importorskip("torch", reason="torch is not installed")

PLAN = """
train = "documents.jsonl"
valid = "documents.jsonl"
words = 30

[shape]
embedding = 8
hidden = 8
attention = 8

[likelihood]
epochs = 2
batch = 4
rate = 0.01
look_every = 2

[[stages]]
reward = "f1"
epochs = 1
batch = 4
look_every = 2
"""


@pytest.fixture
def plan(command: Command) -> str:
    rows = [
        {"text": f"we study {kind} nets .", "keyphrases": [f"{kind} nets"]} for kind in "abcdef"
    ]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("plan.toml").write_text(PLAN)
    return "plan.toml"


def test_a_generator_is_trained_and_predicts_into_a_file_that_can_be_scored(
    command: Command, plan: str
) -> None:
    said = command("catseq", "train", plan, "-o", "made")
    assert said.code == 0, said.err
    assert "training: 6 of 6 documents used" in said.err
    logged = [line.split(", validation ")[0] for line in said.err.splitlines() if "step" in line]
    assert logged[:2] == [
        "evenmatch: likelihood: step 2 of 4",
        "evenmatch: likelihood: step 4 of 4",
    ]
    assert logged[-1].startswith("evenmatch: stage-1: step 2 of ")
    assert [line.split()[0] for line in said.out.splitlines()] == [
        "run",
        "likelihood",
        "stage-1",
    ]
    said = command("catseq", "predict", "made/stage-1", "documents.jsonl", "-o", "predicted.jsonl")
    assert said.code == 0, said.err
    assert "wrote 6 documents to predicted.jsonl" in said.err
    outside = command("catseq", "predict", "made", "documents.jsonl", "-o", "predicted.jsonl").err
    assert "name one inside it: made/likelihood, made/stage-1" in outside
    rows = [json.loads(line) for line in Path("predicted.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == [f"we study {kind} nets ." for kind in "abcdef"]
    assert command("keyphrases", "predicted.jsonl", "-m", "fg").code == 0
    printed = command("catseq", "predict", "made/stage-1", "documents.jsonl")
    assert (printed.code, printed.out) == (0, Path("predicted.jsonl").read_text())
    rows = [{"text": "we study a nets .", "keyphrases": [["a nets", "nets of a"]]}, {"text": "b"}]
    Path("other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("none.jsonl").write_text('{"text": "we study b nets ."}\n')
    for name, gold in (("other.jsonl", [[["a nets", "nets of a"]], []]), ("none.jsonl", [[]])):
        assert command("catseq", "predict", "made/stage-1", name, "-o", "predicted.jsonl").code == 0
        found = [json.loads(line) for line in Path("predicted.jsonl").read_text().splitlines()]
        assert [row["keyphrases"] for row in found] == gold


def test_a_wrong_reward_is_told_before_any_training(command: Command, plan: str) -> None:
    Path(plan).write_text(PLAN.replace('"f1"', '"fgg"'))
    said = command("catseq", "train", plan, "-o", "made")
    assert (said.code, said.out) == (1, "")
    assert "unknown metric 'fgg'; did you mean 'fg'" in said.err
    assert not Path("made").exists()


def test_a_folder_without_a_generator_is_one_line(command: Command, plan: str) -> None:
    said = command("catseq", "predict", ".", "documents.jsonl", "-o", "predicted.jsonl")
    assert said.code == 1
    assert "holds no keyphrase generator" in said.err


def test_an_arm_that_is_not_there_is_one_line(command: Command) -> None:
    said = command("study", "keyphrases", "--arm", "3RL")
    assert said.code == 1
    assert "the experiment has no arm '3RL'" in said.err
