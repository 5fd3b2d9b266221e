"""A run that was killed is continued by the same command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from evenmatch.scoring import engine
from evenmatch.types import Pair, Scores
from tests.cli.conftest import Command, Outcome

METRICS = ["-m", "align(vectors=hashed(weights=idf))", "-m", "bleu"]
ROWS = 50


@pytest.fixture
def asked(command: Command) -> list[str]:
    write_rows(ROWS)
    return ["score", "in.jsonl", *METRICS, "--out", "o.csv", "--shard-rows", "10"]


def write_rows(count: int, changed: int = -1) -> None:
    rows = (
        {"id": n, "candidate": f"the cat {n % 7}" + "!" * (n == changed), "reference": f"a cat {n}"}
        for n in range(count)
    )
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


class Interrupted:
    """Counts the pairs that are scored, and stops the run after some of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scored, self.most = 0, 10**9
        score = engine.OpenMetrics.score

        def counted(
            own: engine.OpenMetrics, pairs: Sequence[Pair], *, done: int = 0, total: int = 0
        ) -> list[Scores]:
            if self.scored + len(pairs) > self.most:
                raise OSError("interrupted")
            self.scored += len(pairs)
            return score(own, pairs, done=done, total=total)

        monkeypatch.setattr(engine.OpenMetrics, "score", counted)


@pytest.fixture
def scoring(monkeypatch: pytest.MonkeyPatch) -> Interrupted:
    return Interrupted(monkeypatch)


def interrupt(command: Command, asked: list[str], scoring: Interrupted, after: int) -> Outcome:
    scoring.scored, scoring.most = 0, after
    said = command(*asked)
    assert said.code == 1
    scoring.scored, scoring.most = 0, 10**9
    return said


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_only_the_rest_is_scored_and_the_file_is_the_same(
    command: Command, asked: list[str], scoring: Interrupted, more: list[str]
) -> None:
    whole = command(*asked, "--segments")
    expected = Path("o.csv").read_bytes()
    Path("o.csv").unlink()
    interrupt(command, asked, scoring, 30)
    assert not Path("o.csv").exists()
    said = command(*asked, "--segments", *more)
    assert scoring.scored == ROWS - 30
    assert said.err == "evenmatch: 30 of 50 rows were scored in an earlier run\n"
    assert said.out == whole.out
    assert Path("o.csv").read_bytes() == expected
    assert not Path("o.csv.partial").exists()


def test_a_continued_run_may_write_another_layout(
    command: Command, asked: list[str], scoring: Interrupted
) -> None:
    interrupt(command, asked, scoring, 30)
    assert command(*asked, "--layout", "wide").code == 0
    assert Path("o.csv").read_text().startswith("row,id,")
    assert scoring.scored == ROWS - 30


def test_rows_that_are_not_scored_yet_may_be_corrected(
    command: Command, asked: list[str], scoring: Interrupted
) -> None:
    metric = ["-m", "bleu"]
    asked = ["score", "in.jsonl", *metric, "--out", "o.csv", "--shard-rows", "10"]
    lines = Path("in.jsonl").read_text().splitlines()
    Path("in.jsonl").write_text("\n".join([*lines[:25], "{oops", *lines[26:]]) + "\n")
    said = command(*asked)
    assert "in.jsonl line 26 is not JSON" in said.err
    write_rows(ROWS)
    scoring.scored = 0
    assert command(*asked).code == 0
    assert scoring.scored < ROWS


@pytest.mark.parametrize(
    ("changed", "metrics", "reason"),
    [
        (3, METRICS[2:], "rows 0 to 9 of in.jsonl have changed since they were scored"),
        (-1, ["-m", "chrf"], "metrics changed from bleu"),
    ],
)
def test_another_run_is_not_mixed_with_an_unfinished_one(
    command: Command,
    asked: list[str],
    scoring: Interrupted,
    changed: int,
    metrics: list[str],
    reason: str,
) -> None:
    plain = ["score", "in.jsonl", "--out", "o.csv", "--shard-rows", "10"]
    interrupt(command, [*plain, "-m", "bleu"], scoring, 30)
    write_rows(ROWS, changed)
    said = command(*plain, *metrics)
    assert (said.code, said.out) == (1, "")
    assert f"the run in o.csv.partial cannot be resumed: {reason}" in said.err
    assert "or remove the folder to start again" in said.err


def test_a_small_run_leaves_nothing_when_it_fails(command: Command, scoring: Interrupted) -> None:
    write_rows(5)
    interrupt(command, ["score", "in.jsonl", "-m", "bleu", "--out", "o.csv"], scoring, 0)
    assert [path.name for path in Path().iterdir()] == ["in.jsonl"]


def test_resume_needs_a_file_of_scores(command: Command) -> None:
    write_rows(5)
    said = command("score", "in.jsonl", "-m", "bleu", "--resume")
    assert said.code == 2
    assert "--resume needs --out" in " ".join(said.err.split())


def test_corpus_scores_are_those_of_all_chunks(command: Command, asked: list[str]) -> None:
    by_chunk = json.loads(command(*asked, "--json").out)["metrics"]["bleu"]
    at_once = json.loads(command("score", "in.jsonl", "-m", "bleu", "--json").out)["metrics"]
    assert by_chunk["corpus"] == at_once["bleu"]["corpus"]


def test_a_killed_process_is_continued(tmp_path: Path, command: Command) -> None:
    write_rows(3000)
    asked = ["score", "in.jsonl", "-m", "ter", "-m", "bleu", "--out", "o.tsv", "--shard-rows", "20"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenmatch", *asked],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ,
    )
    manifest = Path("o.tsv.partial/manifest.jsonl")
    while process.poll() is None and not (manifest.exists() and manifest.stat().st_size > 4000):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not Path("o.tsv").exists()
    said = command(*asked)
    assert "of 3000 rows were scored in an earlier run" in said.err
    assert command("score", "in.jsonl", "-m", "ter", "-m", "bleu", "--out", "p.tsv").code == 0
    assert Path("o.tsv").read_bytes() == Path("p.tsv").read_bytes()
