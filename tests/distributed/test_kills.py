"""Kills at random moments, then the run goes on: every row, once, in order, with its value."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.distributed.conftest import METRICS, expected, read_jsonl, records, write_jsonl

ROWS = records(6000)
COMMAND = [sys.executable, "-m", "evenmatch", "score", "in.jsonl", "--out", "out.jsonl"]
OPTIONS = ["--shard-rows", "50", "--workers", "2", "--resume", "--json"]


def started(folder: Path, on: str) -> subprocess.Popen[bytes]:
    asked = [word for metric in METRICS for word in ("-m", metric)]
    command = [*COMMAND, *asked, *OPTIONS, "--on", on]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet, start_new_session=True)


def below(process: int) -> list[int]:
    """All processes that a process has started, and those they have."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            own = [int(n) for n in task.read_text().split()]
        except OSError:  # it ended while we looked
            continue
        found += own
        for child in own:
            found += below(child)
    return found


def named(process: int, words: str) -> list[int]:
    """Those below a process whose command says these words."""
    found = []
    for child in below(process):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if words.encode() in command:
            found.append(child)
    return found


def lines_done(folder: Path) -> int:
    manifest = folder / "out.jsonl.parts" / "manifest.jsonl"
    return manifest.read_bytes().count(b"\n") if manifest.exists() else 0


def killed_at_random(folder: Path, on: str, victims: dict[str, str], count: int) -> Counter[str]:
    """Kill victims, by the words of their command, so often; then let the run come to its end.

    Two kills in three wait for a shard to be done, so that the run goes on between them; the third
    comes at any moment, start-up included.
    """
    rng, killed = random.Random(0), Counter[str]()
    process = started(folder, on)
    while sum(killed.values()) < count:
        if rng.random() < 2 / 3:
            await_more(folder, process)
        time.sleep(rng.uniform(0, 0.5))
        if process.poll() is not None:
            if process.returncode == 0:  # a fast machine is done before the kills are
                check(folder)
                (folder / "out.jsonl").unlink()
                shutil.rmtree(folder / "out.jsonl.parts")
            process = started(folder, on)
            continue
        what = min(victims, key=lambda name: (killed[name], rng.random()))
        found = named(process.pid, victims[what]) if victims[what] else [process.pid]
        with suppress(IndexError, ProcessLookupError):  # there is none, or no longer
            os.kill(rng.choice(found), signal.SIGKILL)
            killed[what] += 1
    while process.wait(timeout=300) != 0:
        process = started(folder, on)
    return killed


def await_more(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until another shard is done, or the run has ended."""
    seen, end = lines_done(folder), time.monotonic() + 200
    while lines_done(folder) <= seen and process.poll() is None:
        assert time.monotonic() < end, "the run does not go on"
        time.sleep(0.02)


def check(folder: Path) -> None:
    wanted = expected(ROWS, METRICS)
    found = read_jsonl(folder / "out.jsonl")
    assert [(r["row"], r["metric"]) for r in found] == [(r["row"], r["metric"]) for r in wanted]
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine["value"] == pytest.approx(theirs["value"], abs=1e-6)
        assert mine["flags"] == theirs["flags"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_by_twenty_kills_of_workers_and_drivers(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in.jsonl", ROWS)
    victims = {"worker": "evenmatch.distributed.processes", "driver": ""}
    assert killed_at_random(tmp_path, "processes", victims, 20) == {"worker": 10, "driver": 10}
    check(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_by_kills_of_actors_raylets_and_drivers(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    write_jsonl(tmp_path / "in.jsonl", ROWS)
    victims = {"actor": "ray::_Actor", "raylet": "raylet/raylet", "driver": ""}
    assert killed_at_random(tmp_path, "ray", victims, 6) == dict.fromkeys(victims, 2)
    check(tmp_path)


@pytest.mark.slow
def test_of_two_runs_started_together_one_is_refused(tmp_path: Path) -> None:
    rows = records(200)
    write_jsonl(tmp_path / "in.jsonl", rows)
    command = [*COMMAND, "-m", METRICS[0], "--shard-rows", "20", "--workers", "1"]
    command += ["--on", "processes"]
    for _ in range(12):
        runs = [
            subprocess.Popen(
                command,
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        said = [run.communicate(timeout=300)[1] for run in runs]
        assert sorted(run.returncode for run in runs) == [0, 1], said
        refused = next(text for run, text in zip(runs, said, strict=True) if run.returncode)
        assert "another run is writing to" in refused or "already contains a run" in refused
        assert read_jsonl(tmp_path / "out.jsonl") == expected(rows, METRICS[:1])
        shutil.rmtree(tmp_path / "out.jsonl.parts")
