from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import evenmatch as em
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
GREEDY = "align(vectors=hashed)"
CANDIDATES, REFERENCES = ["a b", "", "c d e"], ["a b c", "x", "e d"]


@pytest.fixture
def asked(command: Command) -> list[str]:
    Path("c.txt").write_text("\n".join(CANDIDATES) + "\n")
    Path("r.txt").write_text("\n".join(REFERENCES) + "\n")
    return ["score", "-c", "c.txt", "-r", "r.txt", "-m", LSA, "-m", GREEDY]


def wanted() -> list[dict[str, Any]]:
    scores = em.score(CANDIDATES, REFERENCES, [LSA, GREEDY])
    return [
        {
            "row": row,
            "metric": metric,
            "value": scores[metric].segments[row].value,
            "precision": scores[metric].segments[row].precision,
            "recall": scores[metric].segments[row].recall,
            "flags": sorted(scores[metric].segments[row].flags),
        }
        for row in range(3)
        for metric in (LSA, GREEDY)
    ]


def from_tsv(text: str) -> list[dict[str, Any]]:
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [
        {
            "row": int(row["row"]),
            "metric": row["metric"],
            **{key: float(row[key]) for key in ("value", "precision", "recall")},
            "flags": row["flags"].split(",") if row["flags"] else [],
        }
        for row in rows
    ]


def from_jsonl(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "out.jsonl": lambda path: from_jsonl(path.read_text()),
    "out.jsonl.gz": lambda path: from_jsonl(gzip.decompress(path.read_bytes()).decode()),
    "out.tsv": lambda path: from_tsv(path.read_text()),
    "out.tsv.gz": lambda path: from_tsv(gzip.decompress(path.read_bytes()).decode()),
    "out.parquet": lambda path: pq.read_table(path).to_pylist(),
}


@pytest.mark.parametrize("name", READERS)
def test_every_score_is_written_as_the_suffix_says(
    command: Command, asked: list[str], name: str
) -> None:
    assert command(*asked, "--out", name).code == 0
    assert READERS[name](Path(name)) == wanted()


def test_a_result_file_holds_what_is_printed(command: Command, asked: list[str]) -> None:
    for name, style in (("o.json", "json"), ("o.tex", "latex"), ("o.txt", "text")):
        said = command(*asked, "--format", style, "--out", name, "--segments")
        assert Path(name).read_text() == said.out


def test_rows_go_to_the_file_and_the_document_to_standard_output(
    command: Command, asked: list[str]
) -> None:
    said = command(*asked, "--out", "out.jsonl", "--json")
    assert set(json.loads(said.out)["metrics"][LSA]) == {"signature", "mean", "precision", "recall"}


def test_a_file_that_was_there_stays_whole_when_scoring_fails(
    command: Command, asked: list[str]
) -> None:
    Path("out.tsv").write_text("precious")
    Path("bad.jsonl").write_text('{"candidate": "a", "reference": "a"}\n{"candidate"\n')
    said = command("score", "bad.jsonl", "-m", LSA, "--out", "out.tsv")
    assert said.code == 1
    assert Path("out.tsv").read_text() == "precious"
    assert sorted(p.name for p in Path().iterdir()) == ["bad.jsonl", "c.txt", "out.tsv", "r.txt"]


def test_a_file_that_was_there_is_replaced(command: Command, asked: list[str]) -> None:
    Path("out.jsonl").write_text("old")
    command(*asked, "--out", "out.jsonl")
    assert READERS["out.jsonl"](Path("out.jsonl")) == wanted()


def test_a_device_is_written_to_and_not_replaced(command: Command, asked: list[str]) -> None:
    Path("null.jsonl").symlink_to("/dev/null")
    assert command(*asked, "--out", "null.jsonl").code == 0
    assert Path("null.jsonl").is_char_device()


def test_a_missing_folder_is_said_before_any_scoring(command: Command, asked: list[str]) -> None:
    said = command(*asked, "--out", "nowhere/out.jsonl")
    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "evenmatch: there is no folder nowhere to write out.jsonl in; create it first\n"
    )


def test_an_unknown_suffix_is_wrong_usage(command: Command, asked: list[str]) -> None:
    said = command(*asked, "--out", "out.xlsx")
    assert said.code == 2
    assert "unknown file type of out.xlsx; the suffix must be one of .jsonl, .tsv" in said.err
