"""evenmatch score --on: the options of a large run, and what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.distributed.conftest import METRICS, expected, read_jsonl, records, write_jsonl

ROWS = records(20)
ASKED = ["-m", METRICS[0], "-m", METRICS[1], "--shard-rows", "6"]
ON = ["--on", "processes", "--workers", "1"]


def test_a_large_run_prints_what_a_local_one_does(command: Command) -> None:
    write_jsonl(Path("in.jsonl"), ROWS)
    local = command("score", "in.jsonl", *ASKED[:4], "--json")
    large = command("score", "in.jsonl", *ASKED, *ON, "--out", "o.jsonl", "--json")
    assert (large.code, local.code) == (0, 0)
    mine, theirs = (json.loads(said.out)["metrics"] for said in (large, local))
    for name in METRICS:
        assert mine[name] == pytest.approx(theirs[name], abs=1e-12)
    assert read_jsonl(Path("o.jsonl")) == expected(ROWS, METRICS)
    assert large.err == "evenmatch: flagged rows: 2 empty_candidate (of 20)\n"
    again = command("score", "in.jsonl", *ASKED, *ON, "--out", "o.jsonl", "--resume", "--progress")
    assert "20 of 20 pairs scored\n" in again.err
    assert "20 of 20 rows were scored in an earlier run" in again.err
    refused = command("score", "in.jsonl", *ASKED, *ON, "--out", "o.jsonl")
    assert refused.code == 1
    assert refused.err == (
        "evenmatch: o.jsonl.parts already contains a run; continue it with --resume, "
        "or remove the folder\n"
    )


def test_a_corrupt_row_is_one_line_and_the_rest_is_kept(command: Command) -> None:
    write_jsonl(Path("in.jsonl"), ROWS)
    lines = Path("in.jsonl").read_text().splitlines(keepends=True)
    Path("in.jsonl").write_text("".join([*lines[:8], "{broken\n", *lines[9:]]))
    said = command("score", "in.jsonl", *ASKED, *ON, "--out", "o.jsonl")
    assert said.code == 1
    assert said.err.splitlines() == [
        "evenmatch: rows 6 to 11 (in.jsonl lines 7 to 12) failed, at row 8 (in.jsonl line 9): "
        "in.jsonl line 9 is not JSON: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1)",
        "evenmatch: 1 shard failed; the other 14 rows are scored and stored for o.jsonl; "
        "correct the rows listed above and continue with --resume",
    ]
    assert len(list(Path("o.jsonl.parts").glob("part-*"))) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["x.jsonl", "--workers", "2"],
            "--workers, --parts and other worker options need --on",
        ),
        (["x.jsonl", "--on", "ray"], "--on needs --out"),
        (["-c", "a", "-r", "b", "--on", "ray"], "--on needs FILE or a folder, not -c and -r"),
        (["x.jsonl", "--on", "ray", "--segments"], "the scores of every pair are written to --out"),
        (
            ["x.jsonl", "--on", "processes", "--out", "o.jsonl", "--ray-address", "auto"],
            "--ray-address, --ray-working-dir and --ray-models need --on ray",
        ),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    command: Command, options: list[str], words: str
) -> None:
    said = command("score", *options)
    assert said.code == 2
    assert words in " ".join(said.err.split())


def test_without_ray_it_says_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jsonl(Path("in.jsonl"), ROWS)
    monkeypatch.setitem(sys.modules, "ray", None)
    said = command("score", "in.jsonl", *ASKED, "--on", "ray", "--out", "o.jsonl")
    assert said.code == 1
    assert said.err == (
        "evenmatch: --on ray needs Ray; install it with: pip install 'evenmatch[ray]', "
        "or use --on processes\n"
    )
