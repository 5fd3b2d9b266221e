"""A disk that is really full: a small tmpfs, which needs root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_tune_command import CONFIG
from tests.support.model_families import FolderOf
from tests.support.parses import BY, HAVING, write_conllu
from tests.support.tuning import write_examples

pytestmark = pytest.mark.slow

CANDIDATES = [f"the quick brown fox {n} sat on the mat" for n in range(300)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "evenmatch-test", str(disk)]
    if os.getuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def run(folder: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenmatch", *arguments],
        cwd=folder,
        env={**os.environ, "EVENMATCH_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )


def check_one_line(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_the_vector_cache(small_disk: Path, tmp_path: Path, folder_of: FolderOf) -> None:
    (tmp_path / "c.txt").write_text("\n".join(CANDIDATES) + "\n")
    metric = f"bertscore(model={str(folder_of('bert'))!r}, layer=2)"
    arguments = ["score", "-c", "c.txt", "-r", "c.txt", "-m", metric, "--json", "--segments"]
    plain = run(tmp_path, tmp_path / "cache", *arguments, "--exact-cache")
    assert plain.returncode == 0, plain.stderr
    check_one_line(run(tmp_path, small_disk, *arguments, "--exact-cache"))
    assert run(tmp_path, small_disk, "cache", "info").returncode == 0
    assert run(tmp_path, small_disk, "cache", "clear").returncode == 0
    assert "0 entries" in run(tmp_path, small_disk, "cache", "info").stdout


def test_parses_of_structure_metrics(small_disk: Path, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text(f"{BY}\n{HAVING}\n")
    parser = f"parse_file(path={write_conllu(tmp_path)!r})"
    metric = f"align(units=subtrees(parser={parser}), vectors=hashed, alignment=lsa)"
    arguments = ["score", "-c", "c.txt", "-r", "c.txt", "-m", metric, "--json", "--segments"]
    expected = run(tmp_path, tmp_path / "cache", *arguments)
    (small_disk / "rest").write_bytes(bytes(256 << 10))
    found = run(tmp_path, small_disk, *arguments)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == json.loads(expected.stdout)


def test_tuning(small_disk: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    write_examples(tmp_path / "train.jsonl", 10, seed=1)
    write_examples(tmp_path / "valid.jsonl", 4, seed=2)
    config = CONFIG.replace('out = "out"', f"out = {str(small_disk / 'out')!r}")
    (tmp_path / "run.toml").write_text(config)
    (small_disk / "rest").write_bytes(bytes(200 << 10))
    check_one_line(run(tmp_path, tmp_path / "cache", "tune", "run.toml"))
    (small_disk / "rest").unlink()


def test_a_large_run(small_disk: Path, tmp_path: Path) -> None:
    rows = [{"candidate": text, "reference": text} for text in CANDIDATES * 4]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["score", "in.jsonl", "-m", "align(vectors=hashed)", "--on", "processes"]
    arguments += ["--workers", "1", "--shard-rows", "50", "--out", str(small_disk / "o.jsonl")]
    (small_disk / "rest").write_bytes(bytes(150 << 10))
    check_one_line(run(tmp_path, tmp_path / "cache", *arguments))
    (small_disk / "rest").unlink()
    whole = run(tmp_path, tmp_path / "cache", *arguments[:-1], str(tmp_path / "o.jsonl"))
    assert whole.returncode == 0, whole.stderr
