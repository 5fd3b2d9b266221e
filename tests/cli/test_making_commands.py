"""fit and distil from the command line, on a model of four small blocks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import evenmatch as em
from evenmatch.training.metrics.examples import split_train_test
from tests.cli.conftest import Command
from tests.support.small_training import save_tiny, write_table


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="transformers is not installed")
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_table(tmp_path_factory.mktemp("ratings"))


@pytest.mark.parametrize("kind", ["towers", "cross"])
def test_what_fit_writes_can_be_named_as_a_metric(
    command: Command, tiny: str, table: str, kind: str
) -> None:
    given = ["--kind", kind, "--model", tiny, "--frozen", "3", "--hold-out", "0.3"]
    said = command("fit", table, *given, "-o", "mine")
    assert said.code == 0, said.err
    assert "Agreement on held-out ratings: rated" in said.out
    assert "wrote mine; use it as a metric: -m ./mine" in said.err
    Path("a.txt").write_text("rain is expected\n")
    scored = command("score", "-c", "a.txt", "-r", "a.txt", "-m", "./mine", "--format", "json")
    assert scored.code == 0, scored.err


def test_fit_prints_for_programs_what_python_gives(command: Command, tiny: str, table: str) -> None:
    given = ["--model", tiny, "--frozen", "3", "--subset", "a", "--seed", "3", "--test", table]
    said = command("fit", table, *given, "-o", "mine", "--json")
    found = json.loads(said.out)
    wanted = em.fit(
        em.read_ratings(table, subsets=["a"]),
        "again",
        test=table,
        model=tiny,
        frozen=3,
        settings=em.FitSettings(seed=3),
    ).document
    assert found["mean"] == pytest.approx(dict(wanted["mean"]))
    assert found["signature"] == wanted["signature"]
    assert [row["subset"] for row in found["rows"]] == ["a", "b"]


def test_training_says_what_it_counts(command: Command, tiny: str, table: str) -> None:
    given = ["--model", tiny, "--frozen", "3", "--test", table]
    said = command("fit", table, *given, "-o", "mine", "--progress").err
    assert "59 of 59 pairs processed" in said
    assert "scored" not in said


def test_keyphrases_and_ratings_do_not_go_together(command: Command, table: str) -> None:
    said = command("fit", table, "--keyphrases", "--test", table, "-o", "mine")
    assert said.code == 2
    assert "--keyphrases takes neither --test nor --subset" in said.err


def test_fit_does_not_write_over_a_folder(command: Command, table: str) -> None:
    Path("mine").mkdir()
    Path("mine/kept.txt").write_text("kept")
    said = command("fit", table, "-o", "mine")
    assert said.code == 1
    assert "mine already exists; name a new folder for the metric" in said.err


def test_distil_says_how_closely_the_student_follows(
    command: Command, tiny: str, table: str
) -> None:
    teacher = f"f_disc(model={tiny!r}, layer=4)"
    said = command(
        "distil", table, "-m", teacher, "--test", table, "--epochs", "1", "-o", "mine", "--json"
    )
    found = json.loads(said.out)
    assert found["teacher"] == teacher
    assert (found["mean"]["n"], found["rows"][0]["data"]) == (59, table)
    pairs = split_train_test(table, [table])[0]
    texts = [pair.candidate for pair in pairs], [pair.references for pair in pairs]
    scores = em.score(*texts, [teacher, "./mine"])
    values = [[score.value for score in each.segments] for each in scores.values()]
    assert found["mean"]["value"] == pytest.approx(float(np.corrcoef(np.array(values)).min()))
    assert scores["./mine"].signature == found["signature"]


def test_distil_tells_a_mistake_in_the_teacher_before_reading_texts(command: Command) -> None:
    said = command("distil", "nowhere.jsonl", "-m", "f_dics", "-o", "mine")
    assert said.code == 1
    assert "did you mean 'f_disc'" in said.err
