"""Several systems in one table, layouts of score files, scaled scores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

import evenmatch as em
from evenmatch.data.files import read_records
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
IDF = "align(vectors=hashed(weights=idf))"
REFERENCES = ["the cat sat down", "it rains", "the dog barks", "snow fell all night long"]
SYSTEMS = {
    "base": ["the cat", "", "the dog barks loudly", "snow"],
    "mine": ["the cat sat down", "it rains", "a dog barks", "snow fell all night"],
}
METRICS = [LSA, IDF, "bleu", "ter", "nist"]


@pytest.fixture
def asked(command: Command) -> list[str]:
    for name, lines in {**SYSTEMS, "r": REFERENCES}.items():
        Path(f"{name}.txt").write_text("".join(line + "\n" for line in lines))
    metrics = [argument for metric in METRICS for argument in ("-m", metric)]
    return ["score", "-c", "base.txt", "-c", "ours=mine.txt", "-r", "r.txt", *metrics]


def wanted(system: str) -> dict[str, em.Scores]:
    return em.score(SYSTEMS[system], REFERENCES, METRICS)


def test_json_has_the_scores_of_every_system_as_in_python(
    command: Command, asked: list[str]
) -> None:
    said = command(*asked, "--json", "--segments")
    assert said.code == 0
    found = json.loads(said.out)["systems"]
    assert list(found) == ["base", "ours"]
    for name, system in (("base", "base"), ("ours", "mine")):
        for metric, scores in wanted(system).items():
            own = found[name]["metrics"][metric]
            assert own["mean"] == pytest.approx(scores.mean, abs=1e-9)
            assert own["signature"] == scores.signature
            assert own.get("corpus") == pytest.approx(scores.corpus, abs=1e-9)
            assert [s["value"] for s in own["segments"]] == pytest.approx(scores.values, abs=1e-9)


def test_text_is_one_table_of_systems_and_metrics(command: Command, asked: list[str]) -> None:
    said = command(*asked)
    table, notes = said.out.split("\n\n")
    header, *rows = table.splitlines()
    assert header.split() == ["system", *LSA.split(), IDF, "bleu", "ter", "↓", "nist"]
    for row, (name, system) in zip(rows, (("base", "base"), ("ours", "mine")), strict=True):
        shown = [s.mean if s.corpus is None else s.corpus for s in wanted(system).values()]
        assert row.split() == [name, *(f"{number:.4f}" for number in shown)]
    assert "corpus scores: bleu, ter, nist; others: mean over pairs" in notes
    assert "↓ lower is better: ter" in notes
    assert said.err == "evenmatch: flagged rows of base: 1 empty_candidate (of 4)\n"


def test_latex_has_the_best_score_of_each_metric_in_bold(
    command: Command, asked: list[str]
) -> None:
    lines = command(*asked, "--format", "latex").out.splitlines()
    [ours] = [line for line in lines if line.startswith("ours & ")]
    assert ours.count(r"\textbf{") == len(METRICS)
    assert r"\toprule" in lines


def test_tsv_has_a_row_per_system_and_metric(command: Command, asked: list[str]) -> None:
    said = command(*asked, "--format", "tsv")
    rows = list(csv.DictReader(io.StringIO(said.out), delimiter="\t", quoting=csv.QUOTE_NONE))
    names = [(row["system"], row["metric"]) for row in rows]
    assert names == [(system, metric) for system in ("base", "ours") for metric in METRICS]
    assert float(rows[0]["mean"]) == pytest.approx(wanted("base")[LSA].mean)


def test_rows_of_systems_have_the_field_system(command: Command, asked: list[str]) -> None:
    assert command(*asked, "--out", "o.csv", "--layout", "wide").code == 0
    rows = list(csv.DictReader(Path("o.csv").read_text().splitlines()))
    assert [(row["system"], row["row"]) for row in rows] == [
        (system, str(n)) for system in ("base", "ours") for n in range(4)
    ]
    assert [float(row["ter"]) for row in rows[4:]] == wanted("mine")["ter"].values.tolist()


def test_scores_of_systems_are_those_of_compare(command: Command, asked: list[str]) -> None:
    systems = {"base": SYSTEMS["base"], "ours": SYSTEMS["mine"]}
    found = em.compare(systems, REFERENCES, ["bleu", LSA], resamples=5, trials=5)
    document = json.loads(command(*asked, "--json").out)["systems"]
    for score in found.scores:
        own = document[score.system]["metrics"][score.metric]
        assert own.get("corpus", own["mean"]) == score.score


def test_the_document_of_systems_has_a_page(command: Command, asked: list[str]) -> None:
    assert command(*asked, "--out", "o.json").code == 0
    assert command("report", "o.json", "-o", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "<h1>Scores of systems: base, ours</h1>" in page
    assert f'<td class="number">{wanted("base")["bleu"].corpus:.4f}</td>' in page
    assert "ter ↓" in page
    assert "<li>↓ lower is better: ter</li>" in page


RECORDS = [
    {"id": 7, "candidate": "the cat, sat", "references": ["a cat sat down"], "tags": ["x", "y"]},
    {"id": 8, "candidate": "rain", "references": ["it rained"], "tags": []},
]


@pytest.fixture
def records(command: Command) -> str:
    Path("in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return "in.jsonl"


@pytest.mark.parametrize("suffix", ["jsonl", "tsv", "csv", "parquet"])
def test_rows_carry_the_fields_of_their_records(
    command: Command, records: str, suffix: str
) -> None:
    out = f"o.{suffix}"
    assert command("score", records, "-m", "chrf", "-m", "ter", "--out", out).code == 0
    rows = [dict(record) for _, record in read_records(out)]
    assert [int(row["id"]) for row in rows] == [7, 7, 8, 8]
    assert [row["metric"] for row in rows] == ["chrf", "ter"] * 2
    assert command("score", records, "-m", "chrf", "--out", out, "--layout", "wide").code == 0
    scores = em.score(["the cat, sat", "rain"], ["a cat sat down", "it rained"], "chrf")
    rows = [dict(record) for _, record in read_records(out)]
    assert [float(row["chrf"]) for row in rows] == scores.values.tolist()


def test_workers_write_the_same_rows(command: Command, records: str) -> None:
    for suffix in ("csv", "parquet"):
        asked = ["score", records, "-m", "chrf", "-m", "ter", "--layout", "wide", "--scale", "100"]
        alone = command(*asked, "--out", f"a.{suffix}")
        more = ["--on", "processes", "--workers", "1", "--shard-rows", "1"]
        shared = command(*asked, "--out", f"b.{suffix}", *more)
        assert (alone.code, shared.code, shared.err) == (0, 0, "")
        assert shared.out == alone.out
        rows = [[record for _, record in read_records(f"{name}.{suffix}")] for name in "ab"]
        assert rows[0] == rows[1]


def test_csv_is_read_with_quoted_cells(command: Command) -> None:
    texts = ['the cat, "sat"', "two\nlines"], ["a cat sat", "two lines"]
    frame = pl.DataFrame({"id": [1, 2], "candidate": texts[0], "reference": texts[1]})
    frame.write_csv("in.csv")
    said = command("score", "in.csv", "-m", "chrf", "--json", "--segments")
    found = json.loads(said.out)["metrics"]["chrf"]
    assert [s["value"] for s in found["segments"]] == em.score(*texts, "chrf").values.tolist()


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_several_references_in_a_table_are_columns_or_a_json_list(
    command: Command, suffix: str
) -> None:
    texts = ["a b", "[1] c"], [["x", "a b"], ["[1] c", "d"]]
    wanted = em.score(*texts, "rouge1").values.tolist()
    columns = pl.DataFrame(
        {"candidate": texts[0], "reference": ["x", "[1] c"], "reference2": ["a b", "d"]}
    )
    lists = pl.DataFrame({"candidate": texts[0], "references": list(map(json.dumps, texts[1]))})
    for frame in (columns, lists):
        if suffix == "tsv":
            frame.write_csv("in.tsv", separator="\t", quote_style="never")
        else:
            frame.write_csv("in.csv")
        said = command("score", f"in.{suffix}", "-m", "rouge1", "--json", "--segments")
        found = json.loads(said.out)["metrics"]["rouge1"]["segments"]
        assert [s["value"] for s in found] == wanted
    Path("in.csv").write_text("candidate,references\na,\"['a', 'b']\"\n")
    said = command("score", "in.csv", "-m", "rouge1")
    assert "in.csv line 2 has references that look like a list but are not JSON" in said.err


def test_utf_16_is_named(command: Command) -> None:
    Path("c.txt").write_text("a\nb\n")
    Path("r.txt").write_text("a\nb\n", "utf-16")
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", "chrf")
    assert (said.code, said.err) == (
        1,
        "evenmatch: r.txt is UTF-16 text; save the file as UTF-8\n",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('candidate,reference\na,"b\n', "in.csv line 2 is not CSV: unexpected end of data"),
        ("candidate,reference\na,b,c\n", "in.csv line 2 has 3 columns and the header 2; quote"),
        ("candidate,reference\n", "nothing to score"),
        ("", "nothing to score"),
    ],
)
def test_bad_csv_is_refused_in_one_line(command: Command, text: str, message: str) -> None:
    Path("in.csv").write_text(text)
    said = command("score", "in.csv", "-m", "chrf")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert message in said.err


def test_scaled_scores_are_those_of_python(command: Command, records: str) -> None:
    asked = ["score", records, "-m", "bleu", "-m", LSA, "--scale", "100"]
    texts = ["the cat, sat", "rain"], ["a cat sat down", "it rained"]
    scores = {name: s.scaled(100) for name, s in em.score(*texts, ["bleu", LSA]).items()}
    document = json.loads(command(*asked, "--json", "--segments").out)["metrics"]
    for name, own in scores.items():
        assert document[name]["mean"] == pytest.approx(own.mean, abs=1e-9)
        assert document[name]["signature"] == own.signature
        assert [s["value"] for s in document[name]["segments"]] == own.values.tolist()
    assert document["bleu"]["corpus"] == scores["bleu"].corpus
    shown = command(*asked).out.splitlines()[1].split()
    assert shown[:2] == ["bleu", f"{scores['bleu'].mean:.2f}"]


@pytest.mark.parametrize("scale", ["0", "-1", "nan"])
def test_a_scale_is_above_zero(command: Command, records: str, scale: str) -> None:
    said = command("score", records, "-m", "bleu", "--scale", scale)
    assert (said.code, said.out) == (2, "")
    assert "--scale must be a number above 0" in " ".join(said.err.split())


def test_a_metric_of_which_lower_is_better_has_an_arrow(command: Command, records: str) -> None:
    said = command("score", records, "-m", "ter", "-m", "chrf")
    assert [line.split("  ")[0] for line in said.out.splitlines()[1:3]] == ["ter ↓", "chrf"]
    assert "ter $\\downarrow$ &" in command("score", records, "-m", "ter", "-f", "latex").out
    assert command("score", records, "-m", "ter", "-m", "chrf", "--out", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "<li>↓ lower is better: ter</li>" in page
    assert "ter ↓" in page
    assert "chrf ↓" not in page
