from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.evaluation.layer_selection import choose_layer
from tests.cli.conftest import Command

PAIRS = [
    ("a cat was on the mat", "the cat sat on the mat"),
    ("prices went up", "prices rose by three per cent last year"),
    ("the minister stayed", "nobody expected the minister to resign"),
    ("dogs bark", "rain is forecast for the whole north"),
    ("she plays", "she plays the violin in an orchestra"),
    ("the late train", "the train was late again this morning"),
    ("snow", "the sun was shining"),
    ("he is old", "he is a very old man"),
]


@pytest.fixture
def table(command: Command) -> str:
    """Ratings as if people thought what the model does at layer 5."""
    candidates, references = [c for c, _ in PAIRS], [r for _, r in PAIRS]
    scores = em.score(candidates, references, "f_disc(layer=5)").segments
    lines = ["system\tsegment\tcandidate\treference\trating\tsubset"]
    for number, ((candidate, reference), score) in enumerate(zip(PAIRS, scores, strict=True)):
        subset = "ab"[number % 2]
        lines.append(f"it\t{number}\t{candidate}\t{reference}\t{score.value}\t{subset}")
    Path("mine.tsv").write_text("\n".join(lines) + "\n")
    return "mine.tsv"


@pytest.mark.model
def test_json_is_the_choice_of_python(command: Command, table: str) -> None:
    said = command("choose-layer", table, "-m", "f_disc", "--folds", "2", "--no-store", "--json")
    wanted = choose_layer(table, "f_disc", folds=2, store=False)
    assert (said.code, said.err) == (0, "")
    document = json.loads(json.dumps(wanted.document()))
    assert document.items() <= json.loads(said.out).items()
    assert wanted.layer == 5


@pytest.mark.model
@pytest.mark.usefixtures("empty_cache")
def test_text_shows_the_layers_and_what_auto_will_be(command: Command, table: str) -> None:
    said = command("choose-layer", table, "-m", "f_disc", "--by-subset")
    assert "layer 5 of minilm@" in said.out
    assert "mean over 2 subsets of mine (8 outputs); one fold per subset" in said.out
    assert (
        "layer='auto' stays 4 for minilm, as published; to use the chosen layer, give layer=5"
        in said.err
    )


@pytest.mark.model
def test_subsets_can_be_named(command: Command, table: str) -> None:
    given = ["--subset", "a", "--folds", "2", "--no-store", "--json"]
    found = json.loads(command("choose-layer", table, "-m", "f_disc", *given).out)
    assert (found["subsets"], found["outputs"]) == (["a"], 4)


def test_a_mistake_in_the_metric_is_said_before_any_data_is_read(command: Command) -> None:
    said = command("choose-layer", "nowhere.tsv", "-m", "bertscre")
    assert said.code == 1
    assert "did you mean 'bertscore'" in said.err


def test_data_that_is_not_there_is_said(command: Command) -> None:
    said = command("choose-layer", "nowhere.tsv")
    assert said.code == 1
    assert "there is no data set, folder or file 'nowhere.tsv'" in said.err
