from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.evaluation.selection import measure_selection
from tests.cli.conftest import Command
from tests.support.rated_sets import rated_rows, write_rows

LSA = "align(vectors=hashed, alignment=lsa)"
KEYS = ["data", "subset", "metric", "level", "method", "value", "n", "low", "high"]


@pytest.fixture
def mine() -> str:
    # the command fixture, asked for first, has moved into a folder of its own
    return str(write_rows(Path("mine.jsonl"), rated_rows(("news", "talks"))))


@pytest.mark.parametrize(
    ("level", "method"), [("system", "pearson"), ("segment", "kendall"), ("per_item", "accuracy")]
)
def test_json_rows_are_what_python_gives(
    command: Command, mine: str, level: str, method: str
) -> None:
    options = ("--level", level, "--method", method, "--resamples", "40", "--seed", "3")
    said = command("meta", mine, "-m", LSA, "-m", "rouge1", *options, "--json")
    found = json.loads(said.out)
    wanted = em.correlate(
        [LSA, "rouge1"],
        em.read_ratings(mine),
        level,  # type: ignore[arg-type]  # a parameter of the test
        method,  # type: ignore[arg-type]
        resamples=40,
        seed=3,
    )
    assert (said.code, said.err) == (0, "")
    assert found["rows"] == wanted.rows
    assert [list(row) for row in found["rows"]] == [KEYS] * 6
    assert found["signatures"] == wanted.signatures


def test_a_number_that_there_is_none_of_is_null(command: Command, mine: str) -> None:
    flat = [{**row, "rating": 1.0} for row in rated_rows(("news",))]
    said = command("meta", str(write_rows(Path(mine), flat)), "-m", LSA, "--json")
    assert [row["value"] for row in json.loads(said.out)["rows"]] == [None]


def test_a_subset_can_be_asked_for(command: Command, mine: str) -> None:
    said = command("meta", mine, "-m", LSA, "--subset", "talks", "--resamples", "10", "--json")
    assert [row["subset"] for row in json.loads(said.out)["rows"]] == ["talks"]


def test_text_shows_values_intervals_and_what_they_rest_on(command: Command, mine: str) -> None:
    said = command("meta", mine, "-m", LSA, "-m", "rouge1", "--resamples", "10")
    header = said.out.splitlines()[0].split()
    assert header == ["data", "subset", "metric", "pearson", "2.5%", "97.5%", "n", "cluster"]
    assert (
        "pearson at level system; excluded: human-written outputs, outlier systems listed"
        in said.out
    )
    assert f"{LSA}: " in said.out


def test_tsv_has_every_digit(command: Command, mine: str) -> None:
    said = command("meta", mine, "-m", LSA, "--resamples", "10", "--format", "tsv")
    rows = list(csv.DictReader(said.out.splitlines(), delimiter="\t"))
    wanted = em.correlate(LSA, em.read_ratings(mine), resamples=10)
    assert [float(row["value"]) for row in rows] == [row["value"] for row in wanted.rows]


def test_latex_has_a_column_per_subset(command: Command, mine: str) -> None:
    said = command("meta", mine, "-m", "rouge1", "--resamples", "10", "--format", "latex")
    assert r"metric & news & talks & average \\" in said.out


def test_latex_has_minus_signs_and_the_best_value_in_bold(command: Command, mine: str) -> None:
    rows = [{**row, "rating": -row["rating"]} for row in rated_rows(("news",))]
    asked = ("meta", str(write_rows(Path(mine), rows)), "-m", LSA, "-m", "chrf")
    said = command(*asked, "--resamples", "10", "-f", "latex").out
    assert said.count("$-$") >= 2
    assert r"$-$\textbf{" in said
    assert r"\toprule" in said


def test_a_page_is_written_beside_the_table(command: Command, mine: str) -> None:
    said = command("meta", mine, "-m", LSA, "--resamples", "10", "--out", "page.html")
    assert said.err == "evenmatch: wrote page.html\n"
    assert Path("page.html").read_text().startswith("<!doctype html>")


def test_a_page_by_another_name_is_refused_before_any_work(command: Command) -> None:
    said = command("meta", "no such data", "--out", "page.pdf")
    assert (said.code, said.out) == (2, "")
    assert "the suffix must be one of .html, .json, .tsv, .tex, .txt" in " ".join(said.err.split())


def test_an_unknown_data_set_is_one_line(command: Command) -> None:
    said = command("meta", "no-such-set", "-m", LSA)
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "there is no data set, folder or file 'no-such-set'" in said.err


def test_an_unknown_level_is_wrong_usage(command: Command, mine: str) -> None:
    assert command("meta", mine, "--level", "document").code == 2


def test_official_scores_need_no_metric_of_ours(command: Command, data: Path) -> None:
    folder = str(data / "wmt20-da")
    said = command(
        "meta", folder, "--published", "--subset", "ja-en", "--resamples", "10", "--json"
    )
    rows = {row["metric"]: row for row in json.loads(said.out)["rows"]}
    assert rows["sentBLEU"]["value"] == pytest.approx(0.851, abs=5e-4)
    assert rows["sentBLEU"]["n"] == 7
    assert "bertscore" not in rows


def test_meta_reports_filters_and_re_rankers(command: Command, mine: str) -> None:
    asked = ("meta", mine, "-m", "rouge1", "--level", "segment", "--resamples", "20")
    document = json.loads(command(*asked, "--good", "0.33", "--json").out)
    wanted = em.correlate("rouge1", mine, "segment", resamples=20)
    assert document["selection"] == [asdict(e) for e in measure_selection(wanted, good=0.33)]
    assert "rerank" in command(*asked, "--good", "0.33").out
    assert "selection" not in json.loads(command(*asked, "--json").out)
