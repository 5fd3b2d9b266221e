from __future__ import annotations

import csv
import gzip
import json
import shlex
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenmatch as em
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
GREEDY = "align(vectors=hashed)"
CANDIDATES = ["the cat sat", "", "a dog barks at the moon", "rain"]
FIRST = ["the cat sat down", "something", "the dog barks", "rain rain"]
SECOND = ["a cat was sitting", "", "at the moon a dog barks", "snow"]
BOTH = [list(pair) for pair in zip(FIRST, SECOND, strict=True)]


@pytest.fixture
def texts(command: Command) -> list[str]:
    """Line-aligned files in the folder the command runs in, as arguments."""
    for name, lines in (("c.txt", CANDIDATES), ("r1.txt", FIRST), ("r2.txt", SECOND)):
        Path(name).write_text("".join(line + "\n" for line in lines))
    return ["-c", "c.txt", "-r", "r1.txt", "-r", "r2.txt"]


def expected(metric: str, *, segments: bool) -> dict[str, Any]:
    scores = em.score(CANDIDATES, BOTH, metric, threads=1)
    count = len(scores.segments)
    document: dict[str, Any] = {
        "signature": scores.signature,
        "mean": scores.mean,
        "precision": sum(s.precision or 0.0 for s in scores.segments) / count,
        "recall": sum(s.recall or 0.0 for s in scores.segments) / count,
    }
    if segments:
        document["segments"] = [
            {
                "value": s.value,
                "precision": s.precision,
                "recall": s.recall,
                "flags": sorted(s.flags),
            }
            for s in scores.segments
        ]
    return document


def records() -> list[dict[str, Any]]:
    pairs = zip(CANDIDATES, BOTH, strict=True)
    return [{"candidate": candidate, "references": references} for candidate, references in pairs]


def as_jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def metrics(out: str) -> object:
    """All that a document says but the command, which is another for each way of asking."""
    return json.loads(out)["metrics"]


def test_json_is_the_documented_document_with_the_numbers_of_python(
    command: Command, texts: list[str]
) -> None:
    said = command("score", *texts, "-m", LSA, "-m", GREEDY, "--json")
    assert said.code == 0
    found = json.loads(said.out)
    assert found == {
        "metrics": {metric: expected(metric, segments=False) for metric in (LSA, GREEDY)},
        "command": shlex.join(["evenmatch", "score", *texts, "-m", LSA, "-m", GREEDY, "--json"]),
    }


@pytest.mark.parametrize("flag", [["--json"], ["--format", "json"]])
def test_segments_hold_every_pair_in_order(
    command: Command, texts: list[str], flag: list[str]
) -> None:
    said = command("score", *texts, "-m", LSA, "--segments", *flag)
    assert json.loads(said.out)["metrics"][LSA] == expected(LSA, segments=True)


@pytest.mark.model
def test_the_default_is_bertscore_and_equals_python(command: Command, texts: list[str]) -> None:
    said = command("score", *texts, "--segments", "--json", "--threads", "1")
    assert json.loads(said.out)["metrics"] == {"bertscore": expected("bertscore", segments=True)}


@pytest.mark.model
def test_several_metrics_of_one_model_equal_python(command: Command, texts: list[str]) -> None:
    names = ("bertscore", "f_disc", "f_cont", "bertscore(idf=True)")
    asked = [argument for name in names for argument in ("-m", name)]
    said = command("score", *texts, *asked, "--json", "--threads", "1")
    metrics = json.loads(said.out)["metrics"]
    assert tuple(metrics) == names
    for name, found in metrics.items():
        wanted = expected(name, segments=False)
        assert found.pop("signature") == wanted.pop("signature")
        assert found == pytest.approx(wanted, abs=1e-6)


def test_idf_counted_from_a_file_equals_python(command: Command, texts: list[str]) -> None:
    metric = "align(vectors=hashed(weights=idf))"
    said = command("score", *texts, "-m", metric, "--json")
    assert json.loads(said.out)["metrics"][metric] == expected(metric, segments=False)


def test_every_kind_of_input_gives_the_same_document(command: Command, texts: list[str]) -> None:
    Path("a.jsonl").write_text(as_jsonl(records()))
    other_names = [{"prediction": r["candidate"], "reference": r["references"]} for r in records()]
    Path("b.jsonl.gz").write_bytes(gzip.compress(as_jsonl(other_names).encode()))
    lines = ["\t".join(cells) for cells in zip(CANDIDATES, FIRST, SECOND, strict=True)]
    Path("c.tsv").write_text("\n".join(["candidate\treference\treference2", *lines]) + "\n")
    pq.write_table(pa.Table.from_pylist(records()), "d.parquet")
    wanted = metrics(command("score", *texts, "-m", LSA, "--json", "--segments").out)
    for name in ("a.jsonl", "b.jsonl.gz", "c.tsv", "d.parquet"):
        assert metrics(command("score", name, "-m", LSA, "--json", "--segments").out) == wanted


def test_a_dash_is_standard_input_for_records_and_for_lines(
    command: Command, texts: list[str]
) -> None:
    wanted = metrics(command("score", *texts, "-m", LSA, "--json").out)
    said = command("score", "-", "-m", LSA, "--json", given=as_jsonl(records()))
    assert metrics(said.out) == wanted
    lines = "\n".join(CANDIDATES) + "\n"
    asked = ["-c", "-", *texts[2:], "-m", LSA, "--json"]
    assert metrics(command("score", *asked, given=lines).out) == wanted


def test_text_shows_means_with_four_decimals_and_the_signature(
    command: Command, texts: list[str]
) -> None:
    said = command("score", *texts, "-m", LSA)
    wanted = expected(LSA, segments=False)
    header, row, _, recipe = said.out.splitlines()
    assert header.split() == ["metric", "mean", "precision", "recall", "pairs"]
    numbers = [f"{wanted[key]:.4f}" for key in ("mean", "precision", "recall")]
    assert row.removeprefix(LSA).split() == [*numbers, "4"]
    assert recipe == f"{LSA}: {wanted['signature']}"


def test_text_with_segments_shows_each_row_before_the_means(
    command: Command, texts: list[str]
) -> None:
    lines = command("score", *texts, "-m", LSA, "--segments").out.splitlines()
    segments = expected(LSA, segments=True)["segments"]
    for index, segment in enumerate(segments):
        assert lines[index + 1].split()[0] == str(index)
        assert f"{segment['value']:.4f}" in lines[index + 1]
        assert ", ".join(segment["flags"]) in lines[index + 1]


def test_tsv_holds_full_precision(command: Command, texts: list[str]) -> None:
    said = command("score", *texts, "-m", LSA, "-m", GREEDY, "--format", "tsv")
    rows = list(csv.DictReader(said.out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    for metric, row in zip((LSA, GREEDY), rows, strict=True):
        wanted = expected(metric, segments=False)
        assert row["metric"] == metric
        assert float(row["mean"]) == wanted["mean"]
        assert row["signature"] == wanted["signature"]


def test_tsv_with_segments_is_one_table_of_rows(command: Command, texts: list[str]) -> None:
    said = command("score", *texts, "-m", LSA, "--format", "tsv", "--segments")
    rows = list(csv.DictReader(said.out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = [s["value"] for s in expected(LSA, segments=True)["segments"]]
    assert [float(row["value"]) for row in rows] == wanted
    assert [row["row"] for row in rows] == ["0", "1", "2", "3"]


def test_latex_is_a_booktabs_tabular_with_special_characters_escaped(
    command: Command, texts: list[str]
) -> None:
    metric = "align(units=words, vectors=hashed, similarity=same_label)"
    lines = command("score", *texts, "-m", metric, "--format", "latex").out.splitlines()
    assert lines[0].startswith(f"% {metric}: ")
    assert lines[1:3] == [r"\begin{tabular}{lrrrr}", r"\toprule"]
    assert lines[5].startswith(r"align(units=words, vectors=hashed, similarity=same\_label) & 0.")
    assert lines[5].endswith(r" & 4 \\")
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_a_metric_named_twice_counts_once(command: Command, texts: list[str]) -> None:
    said = command("score", *texts, "-m", LSA, "-m", LSA, "--json")
    assert list(json.loads(said.out)["metrics"]) == [LSA]


def test_flagged_rows_are_counted_on_standard_error(command: Command, texts: list[str]) -> None:
    said = command("score", *texts, "-m", LSA, "-m", GREEDY, "--json")
    wanted = "flagged rows: 1 empty_candidate, 1 empty_reference (of 4)"
    assert said.err == f"evenmatch: {wanted}\n"


@pytest.mark.model
def test_texts_beyond_the_limit_are_counted_at_the_end(command: Command) -> None:
    Path("c.txt").write_text("word " * 600 + "\nshort\n")
    Path("r.txt").write_text("word\nshort\n")
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", "f_disc")
    assert said.err.splitlines() == [
        "evenmatch: flagged rows: 1 truncated (of 2)",
        "evenmatch: long='windows' reads texts to their end, as in f_disc(long='windows')",
    ]


def test_progress_is_silent_unless_asked_for(command: Command, texts: list[str]) -> None:
    clean = [*texts[:2], "-r", "r1.txt", "-m", LSA]
    assert "scored" not in command("score", *clean).err
    assert "4 of 4 pairs scored" in command("score", *clean, "--progress").err


def test_run_settings_change_no_number(command: Command, texts: list[str]) -> None:
    plain = metrics(command("score", *texts, "-m", LSA, "--json").out)
    settings = ["--device", "cpu", "--threads", "1", "--batch-tokens", "64", "--no-cache"]
    assert metrics(command("score", *texts, "-m", LSA, "--json", *settings).out) == plain


def test_sources_come_line_by_line_too(command: Command, texts: list[str]) -> None:
    Path("s.txt").write_text("one\ntwo\nthree\n")
    said = command("score", *texts, "--sources", "s.txt", "-m", LSA)
    assert said.code == 1
    assert "c.txt has 4 lines but s.txt has 3" in said.err


@pytest.mark.model
def test_a_warning_is_one_line_on_standard_error(command: Command) -> None:
    russian = "Не всё то золото, что блестит, и не всё вода, что течёт"
    Path("c.txt").write_text(russian + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        said = command("score", "-c", "c.txt", "-r", "c.txt", "-m", "bertscore(layer=1)", "--json")
    assert json.loads(said.out)["metrics"]
    assert said.err.startswith("evenmatch: warning: the references look like a non-Latin script")
    assert said.err.count("\n") == 1
