"""evenmatch meta, audit and keyphrases with --on: what they print is what they print without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.test_audit_command import LINES as FAIR
from tests.cli.test_keyphrases_command import LINES as DOCUMENTS
from tests.support.rated_sets import rated_rows, write_rows

LSA = "align(vectors=hashed, alignment=lsa)"
QUICK = ["--resamples", "40"]
ASKED = {
    "meta": ["-m", LSA, "-m", "bleu", *QUICK],
    "audit": ["-m", LSA, "-m", "chrf", *QUICK, "--trials", "100"],
    "keyphrases": [*QUICK, "--trials", "100"],
}


@pytest.fixture
def data() -> dict[str, str]:
    """A file for each command, in the folder the command fixture has moved into."""
    write_rows(Path("meta.jsonl"), rated_rows(("news", "talks")))
    for name, lines in (("audit", FAIR), ("keyphrases", DOCUMENTS)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {name: f"{name}.jsonl" for name in ASKED}


def alike(mine: Any, theirs: Any) -> bool:
    """Whether two documents are equal, numbers to 1e-6."""
    if isinstance(mine, dict):
        return mine.keys() == theirs.keys() and all(alike(mine[k], theirs[k]) for k in mine)
    if isinstance(mine, list):
        return len(mine) == len(theirs) and all(map(alike, mine, theirs))
    if isinstance(mine, float):
        return bool(mine == pytest.approx(theirs, abs=1e-6))
    return bool(mine == theirs)


def check(command: Command, name: str, file: str, *on: str) -> None:
    local = command(name, file, *ASKED[name], "--json")
    shared = command(name, file, *ASKED[name], "--json", "--shard-rows", "3", *on)
    assert (shared.code, shared.err) == (local.code, local.err) == (0, "")
    mine, theirs = json.loads(shared.out), json.loads(local.out)
    assert alike({**mine, "command": ""}, {**theirs, "command": ""})


@pytest.mark.parametrize("name", ASKED)
def test_processes_give_the_numbers_of_one_process(
    command: Command, data: dict[str, str], name: str
) -> None:
    check(command, name, data[name], "--on", "processes", "--workers", "1")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ray_gives_the_numbers_of_one_process(command: Command, data: dict[str, str]) -> None:
    pytest.importorskip("ray")
    for name in ASKED:
        check(command, name, data[name], "--on", "ray", "--workers", "1")


def test_parts_are_kept_where_they_are_asked_for(command: Command, data: dict[str, str]) -> None:
    options = ("--on", "processes", "--workers", "1", "--parts", "kept")
    check(command, "meta", data["meta"], *options)
    assert len(list(Path("kept").glob("*/manifest.jsonl"))) == 2
    check(command, "meta", data["meta"], *options)


def test_a_corpus_score_that_shards_cannot_give_is_refused(
    command: Command, data: dict[str, str]
) -> None:
    said = command("meta", data["meta"], "-m", "nist", "--on", "processes", "--workers", "1")
    assert said.code == 1
    assert said.err == (
        "evenmatch: the corpus score of nist cannot be computed from shards; "
        "score it without --on\n"
    )


@pytest.mark.parametrize("name", ASKED)
def test_parts_without_workers_are_wrong_usage(
    command: Command, data: dict[str, str], name: str
) -> None:
    said = command(name, data[name], "--parts", "kept")
    assert said.code == 2
    assert "--parts and other worker options need --on" in " ".join(said.err.split())
