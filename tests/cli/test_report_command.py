from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"


@pytest.fixture
def result(command: Command) -> str:
    Path("c.txt").write_text("the the cat\na dog\n")
    Path("r.txt").write_text("the cat\na small dog\n")
    done = command("score", "-c", "c.txt", "-r", "r.txt", "-m", LSA, "--segments", "--json")
    Path("result.json").write_text(done.out)
    return "result.json"


def test_a_result_says_which_command_made_it(command: Command, result: str) -> None:
    said = json.loads(Path(result).read_text())["command"]
    assert said == f"evenmatch score -c c.txt -r r.txt -m '{LSA}' --segments --json"


def test_a_page_is_written_beside_its_result(command: Command, result: str) -> None:
    done = command("report", result)
    assert (done.code, done.out, done.err) == (0, "", "evenmatch: wrote result.html\n")
    assert "evenmatch score -c c.txt" in Path("result.html").read_text("utf-8")


@pytest.mark.parametrize(
    "asked",
    [
        ("score", "-c", "c.txt", "-r", "r.txt", "-m", LSA),
        ("score", "-c", "c.txt", "-c", "r.txt", "-r", "r.txt", "-m", LSA),
        ("compare", "-c", "c.txt", "-c", "r.txt", "-r", "r.txt", "-m", LSA),
        ("audit", "-m", "rouge1", "-a", "age", "--resamples", "9", "--trials", "9"),
        ("meta", "rated.jsonl", "-m", LSA, "--level", "segment", "--resamples", "9"),
        ("keyphrases", "documents.jsonl", "-m", "fg", "--resamples", "9", "--trials", "9"),
    ],
    ids=lambda asked: f"{asked[0]} {len(asked)}",
)
def test_out_is_a_page_of_any_result_and_names_its_command(
    command: Command, result: str, asked: tuple[str, ...]
) -> None:
    rated = [
        {"system": s, "segment": n, "candidate": c, "references": ["the cat sat"], "rating": n + k}
        for k, s in enumerate("ab")
        for n, c in enumerate(["x", "the", "the cat", "the cat sat"])
    ]
    phrases = {"text": "we parse trees", "keyphrases": ["trees"], "pred": {"a": ["trees"]}}
    Path("rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated))
    Path("documents.jsonl").write_text(json.dumps(phrases) + "\n")
    done = command(*asked, "--out", "page.html")
    assert done.code == 0
    assert "evenmatch: wrote page.html\n" in done.err
    page = Path("page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert f"evenmatch {asked[0]} " in page


def test_texts_bring_examples(command: Command, result: str) -> None:
    lines = [
        json.dumps({"candidate": c, "reference": r})
        for c, r in (("the the cat", "the cat"), ("a dog", "a small dog"))
    ]
    Path("pairs.jsonl").write_text("\n".join(lines) + "\n")
    assert command("report", result, "-o", "a.html", "--texts", "pairs.jsonl").code == 0
    assert command("report", result, "-o", "b.html", "-c", "c.txt", "-r", "r.txt").code == 0
    page = Path("a.html").read_text("utf-8")
    assert page == Path("b.html").read_text("utf-8")
    assert page.count("<evenmatch-viewer><script") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--texts", "c.jsonl", "-c", "c.txt"), "give either --texts, or -c and -r, not both"),
        (("-c", "c.txt"), "give both -c and -r"),
    ],
)
def test_texts_given_by_halves_are_wrong_usage(
    command: Command, result: str, arguments: tuple[str, ...], words: str
) -> None:
    done = command("report", result, *arguments)
    assert done.code == 2
    assert words in " ".join(done.err.replace("│", " ").split())


def test_a_file_of_no_known_kind_is_one_line(command: Command) -> None:
    Path("odd.json").write_text('{"rows": []}')
    done = command("report", "odd.json")
    assert done.code == 1
    assert done.err.startswith("evenmatch: not a known kind of result: it contains 'rows'")
    assert len(done.err.splitlines()) == 1


def test_a_page_by_another_name_is_refused_before_anything_is_read(command: Command) -> None:
    done = command("report", "none.json", "-o", "page.txt")
    assert done.code == 1
    assert "the name of a report must end in .html or .htm, got 'page.txt'" in done.err


def test_texts_of_another_system_are_refused(command: Command, result: str) -> None:
    Path("other.txt").write_text("the cat\na hound\n")
    done = command("report", result, "-o", "a.html", "-c", "other.txt", "-r", "r.txt")
    assert done.code == 1
    assert done.err == (
        "evenmatch: the result was computed from other texts; give the file that was scored\n"
    )
    assert not Path("a.html").exists()
