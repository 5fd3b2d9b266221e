from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.cli import demo
from evenmatch.data.pairs import open_pair_file, read_everyday_sample
from tests.cli.conftest import Command

pytestmark = pytest.mark.model

SYSTEMS = tuple(read_everyday_sample())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def said(folder: Path) -> str:
    """What the tour prints, run once in a folder of its own."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        demo.main()
    return printed.getvalue()


@pytest.fixture(scope="module")
def table(said: str) -> dict[str, dict[str, float]]:
    rows = [line.split() for line in said.splitlines() if line.startswith(SYSTEMS)]
    return {row[0]: dict(zip(demo.METRICS, map(float, row[1:]), strict=True)) for row in rows}


def test_the_good_system_wins_under_every_metric(table: dict[str, dict[str, float]]) -> None:
    for metric in demo.METRICS:
        assert max(table, key=lambda system: table[system][metric]) == "good"


def test_repetition_pays_under_greedy_and_not_under_the_others(
    table: dict[str, dict[str, float]],
) -> None:
    lost = {m: table["good"][m] - table["repetitive"][m] for m in demo.METRICS}
    assert lost["bertscore"] < 0.1
    assert min(lost["f_disc"], lost["f_cont"]) > 1.5 * lost["bertscore"]


def test_the_tour_shows_the_stutter_under_every_metric(said: str) -> None:
    for metric in demo.METRICS:
        shown = f"{metric}: 'the the the cat' against 'the cat'\n"
        assert shown + str(em.align("the the the cat", "the cat", metric)) in said


def test_the_tour_writes_what_it_says(said: str, folder: Path) -> None:
    for metric in demo.METRICS:
        assert f"demo-out/{metric}.svg" in said
        assert (folder / "demo-out" / f"{metric}.svg").read_text().startswith("<?xml")
    for system, pairs in read_everyday_sample().items():
        assert f"demo-out/{system}.jsonl" in said
        assert list(open_pair_file(str(folder / "demo-out" / f"{system}.jsonl"))) == pairs


def test_the_tour_ends_with_commands_that_work(
    said: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    lines = said.split("Next steps")[1].split("\n")
    for line in filter(None, lines):
        name, *arguments = shlex.split(line)
        assert name == "evenmatch"
        assert command(*arguments).code == 0
