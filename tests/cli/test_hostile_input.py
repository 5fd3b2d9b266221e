"""Broken and hostile input: one line of at most 500 characters, and no traceback."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.data.graphs import _check_brackets
from evenmatch.training.settings import read_toml
from tests.cli.conftest import Command, Outcome

EVENMATCH = [sys.executable, "-m", "evenmatch"]
HASHED = "align(vectors=hashed)"
DEEP = "[" * 100_000


def check_one_line(done: Outcome) -> str:
    assert done.code in (1, 2), done.err[:500]
    lines = done.err.splitlines()
    assert "Traceback" not in done.err
    assert len(lines[-1]) <= 500
    if done.code == 1:
        assert len(lines) == 1
    return lines[-1]


@pytest.mark.parametrize(
    "rating", ["1" + "0" * 400, "1e400", "-1e300", "1" * 5000, DEEP + "]" * 100_000]
)
def test_huge_and_deep_ratings(command: Command, rating: str) -> None:
    row = '{"system": "a", "segment": 1, "candidate": "x", "references": ["y"], "rating": %s}\n'
    Path("rated.jsonl").write_text(row % rating)
    check_one_line(command("meta", "rated.jsonl", "-m", "chrf"))


@pytest.mark.parametrize(
    "content", [f"a = {DEEP}", "steps = " + "9" * 5000, "steps = 1" + "0" * 40]
)
def test_huge_and_deep_settings(command: Command, content: str) -> None:
    Path("tune.toml").write_text(content + "\n")
    check_one_line(command("tune", "tune.toml", "-o", "out"))


def test_deep_toml_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(f"a = {DEEP}")
    with pytest.raises(em.InputError, match="is not valid TOML: nested too deeply"):
        read_toml(tmp_path / "x.toml")


@pytest.mark.parametrize("content", [DEEP, '{"a":' * 100_000, '{"candidate": ' + DEEP])
def test_deep_json(command: Command, content: str) -> None:
    Path("x.jsonl").write_text(content + "\n")
    Path("x.json").write_text(content)
    check_one_line(command("score", "x.jsonl", "-m", HASHED))
    check_one_line(command("report", "x.json", "-o", "page.html"))
    Path("mine").mkdir()
    Path("mine/metric.json").write_text(content)
    check_one_line(command("score", "x.jsonl", "-m", "./mine"))


def test_deep_graphs_and_deep_trees(command: Command) -> None:
    pytest.importorskip("penman")
    Path("deep.amr").write_text("(a / b :x " * 5000 + ")" * 5000 + "\n")
    from evenmatch.data.graphs import _parse_penman

    with pytest.raises(em.InputError, match="is nested more than 200 deep"):
        _parse_penman(Path("deep.amr").read_text(), "deep.amr", 1)
    Path("deep.ptb").write_text("(S " * 5000 + "(NN x)" + ")" * 5000)
    Path("c.txt").write_text("x\n")
    metric = "struct_con(parser=parse_file(path='deep.ptb'), vectors=hashed)"
    check_one_line(command("score", "-c", "c.txt", "-r", "c.txt", "-m", metric))


def test_the_bracket_check_takes_linear_time() -> None:
    def seconds(count: int) -> float:
        text = "(a / b\n" + ":x c\n" * count + ")"
        start = time.process_time()
        _check_brackets(text, "x", 1)
        return time.process_time() - start

    few = min(seconds(4000) for _ in range(3))
    assert min(seconds(40_000) for _ in range(3)) < 40 * few


def test_invalid_text_in_parquet(command: Command) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    raw = pyarrow.array([b"\xff\xfe bad"], pyarrow.binary())
    text = pyarrow.Array.from_buffers(pyarrow.string(), 1, raw.buffers())
    table = pyarrow.table({"candidate": text, "reference": ["good"]})
    parquet.write_table(table, "x.parquet")
    assert "Parquet" in check_one_line(command("score", "x.parquet", "-m", HASHED))
    said = command("score", "x.parquet", "-m", HASHED, "--on", "processes", "--out", "o.jsonl")
    assert said.code == 1
    assert "Traceback" not in said.err


@pytest.mark.parametrize("closed", ["0<&- 2>&-", "1>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams(closed: str, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("a\n")
    for arguments in ("score - -m chrf", "score -c c.txt -r c.txt -m chrf --progress"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *EVENMATCH, *arguments.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode in (0, 1), done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    "spec",
    [
        "align(vectors=hashed(dim=100000000000000000000))",
        "align(vectors=hashed(dim=10000000000))",
        f"align(vectors=hashed, alignment=recursive(iterations={10**30}))",
        f"align(vectors=hashed, alignment=sinkhorn(iterations={10**30}))",
        f"align(vectors=hashed, alignment=auction(iterations={10**12}))",
        f"bleu(order={10**9})",
        f"chrf(char_order={10**30})",
        f"moverscore(version=1, n_gram={10**12})",
    ],
)
def test_sizes_have_bounds(command: Command, spec: str) -> None:
    Path("c.txt").write_text("a cat\n")
    said = check_one_line(command("score", "-c", "c.txt", "-r", "c.txt", "-m", spec))
    assert "must be at most" in said or "must be between" in said


def test_messages_have_at_most_500_characters(command: Command) -> None:
    Path("x.jsonl").write_text(json.dumps({"k" * 3000: 1}) + "\n")
    said = check_one_line(command("score", "x.jsonl", "-m", HASHED))
    assert len(said) == 500
    assert said.endswith("…")


def test_gzip_input_is_refused_past_a_limit_that_can_be_raised(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = json.dumps({"candidate": "a " * 500, "reference": "a"}) + "\n"
    Path("x.jsonl.gz").write_bytes(gzip.compress(row.encode() * 3000))
    monkeypatch.setenv("EVENMATCH_MAX_GZIP_BYTES", "2000000")
    said = check_one_line(command("score", "x.jsonl.gz", "-m", "reference_length"))
    assert "has more than 2000000 bytes when decompressed; set EVENMATCH_MAX_GZIP_BYTES" in said
    monkeypatch.setenv("EVENMATCH_MAX_GZIP_BYTES", "4000000")
    assert command("score", "x.jsonl.gz", "-m", "reference_length").code == 0
    monkeypatch.setenv("EVENMATCH_MAX_GZIP_BYTES", "lots")
    assert "must be a number of bytes" in check_one_line(
        command("score", "x.jsonl.gz", "-m", "reference_length")
    )
