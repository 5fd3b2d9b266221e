from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    assert "stopped; run the same command again to continue" in paused.err
    done = command("tune", "run.toml", "--json", "--progress")
    assert done.code == 0
    assert json.loads(done.out)["ended"]
    assert "reward" in done.err
    assert "wrote out/model; to train further" in done.err
    assert "  best" in command("tune", "run.toml").out


def test_a_config_that_is_not_there_is_one_line(command: Command) -> None:
    told = command("tune", "none.toml")
    assert told.code == 1
    assert "cannot read none.toml: No such file" in told.err
    assert len(told.err.splitlines()) == 1
