"""The worst pairs with their texts, and reports written by score itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenmatch as em
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
CANDIDATES = ["the cat sat", "rain again", "the dog barks", "", "snow fell"]
REFERENCES = ["the cat sat down", "it rains", "the dog barks", "night", "snow fell"]


@pytest.fixture
def asked(command: Command) -> list[str]:
    Path("c.txt").write_text("".join(line + "\n" for line in CANDIDATES))
    Path("r.txt").write_text("".join(line + "\n" for line in REFERENCES))
    return ["score", "-c", "c.txt", "-r", "r.txt"]


def worst_rows(metric: str, count: int, sign: int = 1) -> list[int]:
    values = em.score(CANDIDATES, REFERENCES, metric).values
    return sorted(range(len(values)), key=lambda row: sign * values[row])[:count]


def test_the_worst_pairs_are_printed_with_their_texts(command: Command, asked: list[str]) -> None:
    said = command(*asked, "-m", LSA, "--worst", "2")
    rows = worst_rows(LSA, 2)
    blocks = said.out.split("\n\n")[2:4]
    for row, block in zip(rows, blocks, strict=True):
        assert block.startswith(f"row {row}, ")
        assert f"candidate: {CANDIDATES[row]}" in block
        assert f"reference: {REFERENCES[row]}" in block


def test_a_long_text_is_printed_in_part(command: Command) -> None:
    Path("c.txt").write_text("a " * 300 + "\n")
    Path("r.txt").write_text("b\n")
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", LSA, "--worst", "1")
    assert f"candidate: {'a ' * 200}… (200 more characters)\n" in said.out
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", LSA, "--worst", "1", "--json")
    assert json.loads(said.out)["worst"][0]["candidate"] == "a " * 300


def test_the_document_has_them_with_every_score(command: Command, asked: list[str]) -> None:
    said = command(*asked, "-m", LSA, "-m", "chrf", "--worst", "2", "--json")
    document = json.loads(said.out)
    assert "segments" not in document["metrics"][LSA]
    found = document["worst"]
    assert [each["row"] for each in found] == worst_rows(LSA, 2)
    both = em.score(CANDIDATES, REFERENCES, [LSA, "chrf"])
    for each in found:
        assert each["references"] == [REFERENCES[each["row"]]]
        for name, scores in both.items():
            assert each[name] == pytest.approx(scores[each["row"]].value, abs=1e-9)


def test_where_lower_is_better_the_highest_are_the_worst(
    command: Command, asked: list[str]
) -> None:
    said = command(*asked, "-m", "ter", "--worst", "3", "--json")
    found = [each["row"] for each in json.loads(said.out)["worst"]]
    assert found == worst_rows("ter", 3, sign=-1)


def test_the_worst_of_all_systems_say_their_system(command: Command, asked: list[str]) -> None:
    Path("b.txt").write_text("x\n" * len(REFERENCES))
    said = command(*asked, "-c", "b.txt", "-m", "chrf", "--worst", "9", "--json", "--scale", "100")
    found = json.loads(said.out)["worst"]
    own = em.score(CANDIDATES, REFERENCES, "chrf")
    shown = {each["row"]: each["chrf"] for each in found if each["system"] == "c"}
    assert shown
    assert {each["system"] for each in found} == {"b", "c"}
    for row, value in shown.items():
        assert value == pytest.approx(100 * own[row].value, abs=1e-7)


def test_more_than_there_are_is_all(command: Command, asked: list[str]) -> None:
    said = command(*asked, "-m", LSA, "--worst", "99", "--json")
    assert len(json.loads(said.out)["worst"]) == len(CANDIDATES)


def test_workers_do_not_keep_texts(command: Command, asked: list[str]) -> None:
    Path("p.jsonl").write_text('{"candidate": "a", "reference": "a"}\n')
    said = command("score", "p.jsonl", "--on", "processes", "--out", "o.jsonl", "--worst", "1")
    assert said.code == 2
    assert "--worst" in said.err


def test_out_may_be_a_report_with_texts(command: Command, asked: list[str]) -> None:
    said = command(*asked, "-m", LSA, "--out", "page.html", "--worst", "1")
    assert said.code == 0
    assert "wrote page.html" in said.err
    page = Path("page.html").read_text()
    worst, best = worst_rows(LSA, 1)[0], worst_rows(LSA, len(CANDIDATES), sign=-1)[0]
    for row in (worst, best):
        assert f'<p class="where">row {row}</p>' in page
    assert page.count('<p class="where">row ') == 2
    assert "<h2>All rows</h2>" in page
    assert "evenmatch score -c c.txt" in page


def test_the_report_of_score_is_the_one_of_its_document(command: Command, asked: list[str]) -> None:
    command(*asked, "-m", LSA, "--out", "own.html")
    command(*asked, "-m", LSA, "--segments", "--out", "data.json")
    command("report", "data.json", "-c", "c.txt", "-r", "r.txt", "-o", "other.html")
    pages = [Path(name).read_text() for name in ("own.html", "other.html")]
    bodies = [page.split("evenmatch score")[0] for page in pages]  # before the command
    assert len(bodies[0]) > 1000
    assert bodies[0] == bodies[1]


def test_a_report_prints_no_rows(command: Command, asked: list[str]) -> None:
    plain = command(*asked, "-m", "chrf")
    assert command(*asked, "-m", "chrf", "--out", "page.html").out == plain.out


def test_a_report_of_systems_shows_the_worst_texts(command: Command, asked: list[str]) -> None:
    Path("b.txt").write_text("<b>x</b>\n" * len(REFERENCES))
    command(*asked, "-c", "b.txt", "-m", "chrf", "--out", "page.html", "--worst", "6")
    page = Path("page.html").read_text()
    assert "<h2>Worst texts</h2>" in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert page.count('<p class="where">row ') == 6


def test_scaled_scores_agree_with_the_alignments_shown(command: Command, asked: list[str]) -> None:
    command(*asked, "-m", LSA, "--out", "page.html", "--scale", "100")
    assert "Scored alone" not in Path("page.html").read_text()


def test_a_missing_folder_for_a_result_is_told_before_scoring(
    command: Command, asked: list[str]
) -> None:
    said = command(*asked, "-m", "chrf", "--out", "nowhere/page.html")
    assert said.code == 1
    assert "there is no folder nowhere" in said.err


def test_texts_read_from_a_pipe_are_in_the_report(command: Command) -> None:
    lines = '{"candidate": "a b", "reference": "a"}\n{"candidate": "c", "reference": "c"}\n'
    said = command("score", "-", "-m", LSA, "--out", "page.html", "--worst", "1", given=lines)
    assert said.code == 0
    assert "<dd>a b</dd>" in Path("page.html").read_text()


def test_idf_weights_and_reports_go_together(command: Command, asked: list[str]) -> None:
    said = command(*asked, "-m", "align(vectors=hashed(weights=idf))", "--out", "page.html")
    assert said.code == 0
    assert "Worst and best texts" in Path("page.html").read_text()


@pytest.mark.parametrize("style", ["tsv", "latex"])
def test_worst_pairs_need_a_format_for_texts(command: Command, style: str) -> None:
    for name in ("c.txt", "r.txt"):
        Path(name).write_text("a\n")
    said = command("score", "-c", "c.txt", "-r", "r.txt", "-m", "chrf", "--worst", "1", "-f", style)
    assert (said.code, said.out) == (2, "")
    assert "use --format text or json" in " ".join(said.err.split())
