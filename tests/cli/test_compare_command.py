from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

import evenmatch as em
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
REFERENCES = ["the cat sat down", "it rains", "the dog barks", "snow fell all night"]
SECOND = ["a cat sat", "rain", "a dog barks", "it snowed"]
BOTH = [list(pair) for pair in zip(REFERENCES, SECOND, strict=True)]
SYSTEMS = {
    "base": ["the cat", "it rains", "the dog barks loudly", "snow"],
    "mine": ["the cat sat down", "it rains", "a dog barks", "snow fell all night"],
    "third": ["dogs", "suns", "cats", "moons"],
}


@pytest.fixture
def files(command: Command) -> list[str]:
    """Line-aligned files in the folder the command runs in, as arguments."""
    for name, lines in {**SYSTEMS, "r1": REFERENCES, "r2": SECOND}.items():
        Path(f"{name}.txt").write_text("".join(line + "\n" for line in lines))
    given = [argument for name in SYSTEMS for argument in ("-c", f"{name}.txt")]
    return [*given, "-r", "r1.txt", "-r", "r2.txt", "--trials", "99", "--resamples", "50"]


def wanted() -> em.Comparison:
    return em.compare(SYSTEMS, BOTH, [LSA, "bleu"], trials=99, resamples=50)


def test_json_holds_the_rows_and_scores_of_python(command: Command, files: list[str]) -> None:
    said = command("compare", *files, "-m", LSA, "-m", "bleu", "--json")
    assert (said.code, said.err) == (0, "")
    found = json.loads(said.out)
    assert found["rows"] == wanted().rows
    assert found["signatures"] == wanted().signatures
    assert [s["system"] for s in found["systems"]] == [*SYSTEMS, *SYSTEMS]
    assert found["testing"] == {"confidence": 0.95, "resamples": 50, "trials": 99, "seed": 0}


def test_text_is_the_comparison_as_it_prints(command: Command, files: list[str]) -> None:
    assert command("compare", *files, "-m", LSA, "-m", "bleu").out == f"{wanted()}\n"


def test_tsv_is_one_row_per_pair_in_full_precision(command: Command, files: list[str]) -> None:
    said = command("compare", *files, "-m", LSA, "-m", "bleu", "--format", "tsv")
    rows = list(csv.DictReader(said.out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    for row, expected in zip(rows, wanted().rows, strict=True):
        assert row.pop("signature") == wanted().signatures[row["metric"]]
        assert {key: value or None for key, value in row.items()} == {
            key: None if value is None else str(value) for key, value in expected.items()
        }


def test_latex_is_a_table_of_systems_and_one_of_their_differences(
    command: Command, files: list[str]
) -> None:
    said = command("compare", *files, "-m", LSA, "-m", "bleu", "--format", "latex")
    notes = "".join(f"% {note}\n" for note in wanted().notes())
    assert said.out == f"{notes}{wanted().to_latex()}\n"
    assert said.out.count(r"\begin{tabular}") == 2
    assert "bleu & third & mine & $-$" in said.out


def test_scaled_output_is_that_of_python(command: Command, files: list[str]) -> None:
    said = command("compare", *files, "-m", LSA, "-m", "bleu", "--scale", "100")
    assert said.out == f"{wanted().scaled(100)}\n"
    said = command("compare", *files, "-m", LSA, "-m", "bleu", "--scale", "100", "--json")
    assert json.loads(said.out)["rows"] == wanted().scaled(100).rows


@pytest.mark.parametrize(
    ("name", "style"), [("o.json", "json"), ("o.tsv", "tsv"), ("o.tex", "latex"), ("o.txt", "text")]
)
def test_out_holds_the_result_in_the_format_of_its_suffix(
    command: Command, files: list[str], name: str, style: str
) -> None:
    said = command("compare", *files, "-m", LSA, "--format", style, "--out", name)
    assert (said.code, said.err) == (0, f"evenmatch: wrote {name}\n")
    assert Path(name).read_text() == said.out


def test_out_may_be_a_report(command: Command, files: list[str]) -> None:
    assert command("compare", *files, "-m", LSA, "--out", "page.html").code == 0
    assert "<h1>Comparison of systems: base, mine, third</h1>" in Path("page.html").read_text()


def test_an_unknown_suffix_of_out_is_wrong_usage(command: Command, files: list[str]) -> None:
    said = command("compare", *files, "-m", LSA, "--out", "o.docx")
    assert said.code == 2
    assert "the suffix must be one of .html, .json, .tsv, .tex, .txt" in " ".join(said.err.split())


def test_a_system_may_be_given_a_name(command: Command, files: list[str]) -> None:
    files[files.index("mine.txt")] = "ours=mine.txt"
    said = command("compare", *files, "-m", LSA, "--json")
    assert [s["system"] for s in json.loads(said.out)["systems"]] == ["base", "ours", "third"]


def test_systems_are_called_as_their_files_are(command: Command, files: list[str]) -> None:
    Path("v1.2.txt.gz").write_bytes(gzip.compress(b"a\nb\nc\nd\n"))
    said = command("compare", "-c", "v1.2.txt.gz", *files, "-m", LSA, "--json")
    assert [s["system"] for s in json.loads(said.out)["systems"]] == ["v1.2", *SYSTEMS]


def test_files_of_one_name_are_told_apart_by_their_folders(
    command: Command, files: list[str]
) -> None:
    Path("other").mkdir()
    Path("other/base.txt").write_text("a\nb\nc\nd\n")
    said = command("compare", "-c", "other/base.txt", *files, "-m", LSA, "--json")
    names = [s["system"] for s in json.loads(said.out)["systems"]]
    assert names[:2] == ["other/base.txt", "base.txt"]


def test_a_dash_is_standard_input(command: Command, files: list[str]) -> None:
    plain = json.loads(command("compare", *files, "-m", LSA, "--json").out)
    files[files.index("third.txt")] = "-"
    given = "".join(line + "\n" for line in SYSTEMS["third"])
    found = json.loads(command("compare", *files, "-m", LSA, "--json", given=given).out)
    assert [r["difference"] for r in found["rows"]] == [r["difference"] for r in plain["rows"]]


def test_settings_reach_the_tests(command: Command, files: list[str]) -> None:
    given = ["--confidence", "0.8", "--seed", "7", "-m", LSA, "--json"]
    found = json.loads(command("compare", *files, *given).out)
    same = em.compare(SYSTEMS, BOTH, LSA, trials=99, resamples=50, confidence=0.8, seed=7)
    assert found["rows"] == same.rows


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-c", "base.txt", "-r", "r1.txt"], 2, "give -c at least twice"),
        (["-c", "base.txt", "-c", "base.txt", "-r", "r1.txt"], 2, "is given twice"),
        (["-c", "base.txt", "-c", "mine.txt"], 2, "Missing option"),
        (["-c", "base.txt", "-c", "no.txt", "-r", "r1.txt"], 1, "no.txt: No such file"),
        (
            ["-c", "base.txt", "-c", "short.txt", "-r", "r1.txt"],
            1,
            "base.txt has 4 lines but short.txt has 1; give one line per segment in every file",
        ),
        (
            ["-c", "-", "-c", "mine.txt", "-r", "-"],
            1,
            "standard input (-) can be used for one file",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    command: Command, files: list[str], arguments: list[str], code: int, message: str
) -> None:
    Path("short.txt").write_text("one\n")
    said = command("compare", *arguments, "-m", LSA)
    assert said.code == code
    assert message in " ".join(said.err.split())
    assert not said.out


def test_progress_is_told_on_standard_error(command: Command, files: list[str]) -> None:
    said = command("compare", *files, "-m", LSA, "--progress")
    assert "12 of 12 pairs scored" in said.err
