"""A disk that fills up: one line, and what is done stays done."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from tests.distributed.conftest import METRICS, expected, read_jsonl, records, write_jsonl

ROWS = records(40)
LIMIT = 3500  # bytes a file may have: a part fits, the manifest of all parts does not


def run(folder: Path, *options: str, limit: int = resource.RLIM_INFINITY) -> tuple[int, str]:
    command = [sys.executable, "-m", "evenmatch", "score", "in.jsonl", "--out", "o.jsonl"]
    asked = ["-m", METRICS[0], "--shard-rows", "4", "--on", "processes", "--workers", "1"]
    done = subprocess.run(
        [*command, *asked, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    return done.returncode, done.stderr


def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in.jsonl", ROWS)
    code, said = run(tmp_path, limit=LIMIT)
    assert code == 1
    assert said.count("\n") == 1
    assert "o.jsonl.parts/manifest.jsonl: file too large; " in said
    assert "of 10 shards are scored and stored; free disk space and continue with --resume" in said
    kept = len(list((tmp_path / "o.jsonl.parts").glob("part-*")))
    assert kept > 2
    code, said = run(tmp_path, "--resume")
    assert code == 0
    assert "rows were scored in an earlier run" in said
    assert read_jsonl(tmp_path / "o.jsonl") == expected(ROWS, METRICS[:1])
