"""Bad input: one line on standard error that says what is wrong, and exit 1."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.cli.main import main
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
IDF = "align(vectors=hashed(weights=idf))"
GOOD = '{"candidate": "a", "references": ["a"]}\n'

FILES: dict[str, tuple[str, bytes, str]] = {
    "no JSON": ("x.jsonl", (GOOD + "{oops\n").encode(), "x.jsonl line 2 is not JSON: Expecting"),
    "no object": ("x.jsonl", b'["a", "b"]\n', "x.jsonl line 1 must be a JSON object, got list"),
    "nested JSON": ("x.jsonl", b"[" * 99_999 + b"\n", "x.jsonl line 1 is not JSON: nested too"),
    "no candidate": (
        "x.jsonl",
        b'{"text": "a", "reference": "b"}\n',
        "x.jsonl line 1 has no field 'candidate' or 'prediction'; rename one of its fields: "
        "'text', 'reference'",
    ),
    "no references": (
        "x.jsonl",
        b'{"candidate": "a"}\n',
        "x.jsonl line 1 has no field 'references' or 'reference'; rename one of its fields: "
        "'candidate'",
    ),
    "empty references": (
        "x.jsonl",
        b'{"candidate": "a", "references": []}\n',
        "x.jsonl line 1 has no reference; give at least one",
    ),
    "null": (
        "x.jsonl",
        b'{"candidate": null, "reference": "b"}\n',
        "the candidate of x.jsonl line 1 must be a string, got None",
    ),
    "number": (
        "x.jsonl",
        b'{"candidate": "a", "references": ["b", 3]}\n',
        "the reference of x.jsonl line 1 must be a string, got 3",
    ),
    "blank line": ("x.jsonl", (GOOD + "\n" + GOOD).encode(), "x.jsonl line 2 is blank; expected"),
    "nothing": ("x.jsonl", b"", "nothing to score: the input contains no pairs"),
    "header only": ("x.tsv", b"candidate\treference\n", "nothing to score"),
    "ragged TSV": (
        "x.tsv",
        b"candidate\treference\na\tb\nc\n",
        "x.tsv line 3 has 1 columns and the header 2; use JSONL for text that contains tabs or "
        "line breaks",
    ),
    "TSV without header": ("x.tsv", b"a\tb\nc\td\n", "x.tsv line 2 has no field 'candidate'"),
    "Latin-1": ("x.jsonl", '{"candidate": "é"}'.encode("latin-1"), "x.jsonl line 1 is not UTF-8"),
    "half a gzip": (
        "x.jsonl.gz",
        gzip.compress(GOOD.encode() * 999)[:60],
        "x.jsonl.gz is not a complete gzip file",
    ),
    "no gzip": ("x.jsonl.gz", GOOD.encode(), "x.jsonl.gz is not a complete gzip file"),
    "no Parquet": ("x.parquet", GOOD.encode(), "cannot read x.parquet as Parquet: "),
    "unknown suffix": ("x.docx", b"", "unknown file type of x.docx; name it .jsonl"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_in_one_line(command: Command, case: str) -> None:
    name, content, words = FILES[case]
    Path(name).write_bytes(content)
    said = command("score", name, "-m", LSA)
    assert (said.code, said.out) == (1, "")
    assert words in said.err
    assert said.err.startswith("evenmatch: ")
    assert said.err.count("\n") == 1


def test_blank_lines_at_the_end_are_no_rows(command: Command) -> None:
    Path("x.jsonl").write_text(GOOD + "\n  \n")
    assert "1\n" in command("score", "x.jsonl", "-m", LSA).out


def test_files_of_different_length_are_refused_with_both_counts(command: Command) -> None:
    Path("c.txt").write_text("a\nb\nc\n")
    Path("r.txt").write_text("a\nb\n")
    words = "c.txt has 3 lines but r.txt has 2 lines; give one line per candidate"
    assert words in command("score", "-c", "c.txt", "-r", "c.txt", "-r", "r.txt", "-m", LSA).err


def test_standard_input_of_another_length_is_refused_with_both_counts(command: Command) -> None:
    Path("r.txt").write_text("a\nb\n")
    said = command("score", "-c", "-", "-r", "r.txt", "-m", LSA, given="a\nb\nc\nd\n")
    assert (said.code, said.out) == (1, "")
    assert "standard input has 4 lines but r.txt has 2" in said.err
    said = command("score", "-c", "-", "-r", "r.txt", "-m", LSA, given="a\n")
    assert "standard input has 1 line but r.txt has 2" in said.err


def test_missing_references_are_named(command: Command) -> None:
    said = command("score", "-c", "c.txt", "-m", LSA)
    assert said.code == 2
    assert "-r REFERENCES is missing" in said.err


def test_standard_input_cannot_be_two_files(command: Command) -> None:
    said = command("score", "-c", "-", "-r", "-", "-m", LSA)
    assert "standard input (-) can be used for one file only" in said.err


def test_idf_cannot_be_counted_from_standard_input(command: Command) -> None:
    said = command("score", "-", "-m", IDF, given=GOOD)
    assert said.code == 1
    assert "this input can be read only once; save it to a file, or name a table" in said.err


def test_a_file_that_is_not_there_is_named(command: Command) -> None:
    said = command("score", "-c", "no.txt", "-r", "no.txt", "-m", LSA)
    assert (said.code, said.err) == (1, "evenmatch: no.txt: No such file or directory\n")
    said = command("score", "no.parquet", "-m", LSA)
    assert (said.code, said.err) == (1, "evenmatch: no.parquet: No such file or directory\n")


def test_a_folder_is_no_file(command: Command) -> None:
    Path("texts").mkdir()
    said = command("score", "-c", "texts", "-r", "texts", "-m", LSA)
    assert (said.code, said.err) == (1, "evenmatch: texts: Is a directory\n")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("f-disc", "unknown metric 'f-disc'; did you mean 'f_disc'?"),
        ("rouge-l(stem=True)", "unknown metric 'rouge-l'; did you mean 'rougeL'?"),
        ("bert-scor", "unknown metric 'bert-scor'; did you mean 'bertscore' or"),
        ("bertscor", "unknown metric 'bertscor'; did you mean 'bertscore' or"),
        (
            "lsa",
            "expected a metric, got the alignment part lsa; `evenmatch list metric` shows",
        ),
        ("align(vectors=hashd)", "did you mean 'hashed'?"),
        ("__import__('os')", "settings of __import__ must be given by name"),
        ("f_disc(", "cannot read the spec 'f_disc('"),
        ("f_disc(model='no/such/model/here')", "'no/such/model/here' is neither a folder here"),
    ],
)
def test_a_metric_that_is_none_is_refused(command: Command, metric: str, words: str) -> None:
    Path("c.txt").write_text("a\n")
    said = command("score", "-c", "c.txt", "-r", "c.txt", "-m", metric)
    assert (said.code, said.out) == (1, "")
    assert words in said.err
    assert said.err.count("\n") == 1


@pytest.mark.model
def test_a_device_that_is_not_there_is_refused(command: Command) -> None:
    Path("c.txt").write_text("a\n")
    for device in ("nonsense", "cuda:99"):
        said = command("score", "-c", "c.txt", "-r", "c.txt", "--device", device)
        assert (said.code, said.out) == (1, "")
        assert f"torch cannot use the device '{device}' (" in said.err
        assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["score"],
        ["score", "-c", "c.txt"],
        ["score", "x.jsonl", "-c", "c.txt", "-r", "c.txt"],
        ["score", "x.jsonl", "--threads", "-1"],
        ["score", "x.jsonl", "--format", "yaml"],
        ["score", "x.jsonl", "--nonsense"],
        ["nonsense"],
        ["align", "one text"],
        ["align", "a", "b", "--plot", "x.gif"],
    ],
)
def test_wrong_usage_is_exit_2_with_nothing_on_standard_output(
    command: Command, arguments: list[str]
) -> None:
    said = command(*arguments)
    assert (said.code, said.out) == (2, "")
    assert "Error: " in said.err


def test_debug_shows_the_traceback_wherever_it_stands(command: Command) -> None:
    for arguments in (["--debug", "explain", "nope"], ["explain", "nope", "--debug"]):
        with pytest.raises(em.UnknownNameError, match="unknown name 'nope'"):
            main(arguments)


def test_after_two_dashes_debug_is_text(command: Command) -> None:
    said = command("align", "-m", LSA, "--", "--debug", "--debug")
    assert said.out.splitlines()[-2] == "score 1.0000  precision 1.0000  recall 1.0000"
