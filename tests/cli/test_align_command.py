from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenmatch as em
from tests.cli.conftest import Command

LSA = "align(vectors=hashed, alignment=lsa)"
STUTTER = ("the the the cat", "the cat")


def test_the_table_the_score_and_the_recipe_are_printed(command: Command) -> None:
    aligned = em.align(*STUTTER, LSA)
    said = command("align", *STUTTER, "-m", LSA)
    assert (said.code, said.out) == (0, f"{aligned}\n{aligned.signature}\n")


def test_json_is_the_alignment_of_python(command: Command) -> None:
    aligned = em.align(*STUTTER, LSA)
    found = json.loads(command("align", *STUTTER, "-m", LSA, "--json").out)
    assert found["candidate_units"] == aligned.candidate_units == ["the", "the", "the", "cat"]
    assert found["reference_units"] == aligned.reference_units == ["the", "cat"]
    assert found["similarity"] == aligned.similarity.tolist()
    assert found["pairs"] == [list(pair) for pair in aligned.pairs]
    assert found["score"] == {"value": aligned.score.value} | {
        "precision": aligned.score.precision,
        "recall": aligned.score.recall,
        "flags": [],
    }
    assert found["signature"] == aligned.signature


@pytest.mark.model
def test_the_default_metric_is_f_disc(command: Command) -> None:
    assert command("align", *STUTTER).out == command("align", *STUTTER, "-m", "f_disc").out


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("x.svg", b"<?xml"),
        ("x.png", b"\x89PNG"),
        ("x.pdf", b"%PDF"),
        ("x.html", b"<!doctype"),
    ],
)
def test_a_plot_is_drawn_as_the_suffix_says(command: Command, name: str, beginning: bytes) -> None:
    said = command("align", *STUTTER, "-m", LSA, "--plot", name, "--json")
    assert json.loads(said.out)["signature"]
    assert said.err == f"evenmatch: wrote {name}\n"
    assert Path(name).read_bytes()[: len(beginning)].lower() == beginning.lower()


def test_a_plot_in_a_missing_folder_is_one_line(command: Command) -> None:
    for name in ("nowhere/x.svg", "nowhere/x.html"):
        said = command("align", *STUTTER, "-m", LSA, "--plot", name)
        assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)


def test_empty_texts_align_to_nothing(command: Command) -> None:
    found = json.loads(command("align", "", "", "-m", LSA, "--json").out)
    assert (found["pairs"], found["score"]["value"]) == ([], 1.0)
    assert found["score"]["flags"] == ["empty_candidate", "empty_reference"]


def test_a_text_may_begin_with_a_dash_after_two_dashes(command: Command) -> None:
    said = command("align", "-m", LSA, "--json", "--", "-5 degrees", "-5 degrees")
    assert json.loads(said.out)["score"]["value"] == pytest.approx(1.0)


def test_a_broken_character_is_shown_by_its_code(command: Command) -> None:
    said = command("align", "bad \udcff byte", "byte", "-m", LSA)
    assert said.code == 0
    assert "\\udcff" in said.out


def test_a_metric_that_does_not_align_is_refused(command: Command) -> None:
    said = command("align", *STUTTER, "-m", "chrf")
    assert (said.code, said.out) == (1, "")
    assert "only alignment metrics can align texts, such as" in said.err


@pytest.mark.parametrize("more", [("--also", "chrf"), ("--against", "a cat")])
def test_more_alignments_need_a_page(command: Command, more: tuple[str, str]) -> None:
    said = command("align", "a cat", "a dog", "-m", LSA, "--plot", "a.png", *more)
    assert (said.code, said.out) == (2, "")
    assert "--also and --against need --plot FILE.html" in " ".join(said.err.split())
