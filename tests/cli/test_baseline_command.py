from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.evaluation.baseline import measure_baseline
from tests.cli.conftest import Command

TEXTS = ["the cat sat on the mat", "prices rose last year", "rain in the north", "a violin"]


@pytest.mark.model
def test_json_holds_what_python_measures(command: Command) -> None:
    Path("texts.txt").write_text("".join(text + "\n" for text in TEXTS))
    said = command("baseline", "texts.txt", "-m", "f_disc", "--pairs", "6", "--seed", "2", "--json")
    wanted = measure_baseline(TEXTS, "f_disc", pairs=6, seed=2)
    found = json.loads(said.out)
    assert (said.code, said.err) == (0, "")
    assert [row["value"] for row in found["rows"]] == [row.value for row in wanted.rows]
    assert (found["layer"], found["low"], found["pairs"]) == (4, wanted.low, 6)
    assert em.build(found["spec"]) == wanted.rescaled
    assert found["signature"] == wanted.signature


@pytest.mark.model
def test_the_sample_serves_where_no_text_is_given_and_a_table_is_written(command: Command) -> None:
    said = command("baseline", "--pairs", "20", "--out", "b.csv")
    assert said.code == 0
    assert "using the small sample included in evenmatch" in said.err
    assert "wrote b.csv" in said.err
    lines = Path("b.csv").read_text().splitlines()
    assert lines[0] == "LAYER,P,R,F"
    assert [line.split(",")[0] for line in lines[1:]] == list("0123456")
    assert "to rescale: align(units=pieces(marks=True), vectors=transformer(layer=4)" in said.out


def test_a_text_of_one_line_is_refused(command: Command) -> None:
    said = command("baseline", "-", given="only this\n")
    assert (said.code, said.out) == (1, "")
    assert "got 1 distinct lines; give at least two" in said.err
