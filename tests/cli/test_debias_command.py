from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.model_families import FolderOf, folder_of  # noqa: F401  # a fixture

LINES = [
    {"candidate": "He sat on the mat.", "reference": "A man sat on the mat."},
    {"candidate": "Rain is expected.", "reference": "It will rain."},
]


@pytest.mark.usefixtures("registry")
def test_an_adapter_is_trained_and_can_be_named_as_a_metric(
    command: Command,
    folder_of: FolderOf,  # noqa: F811
) -> None:
    Path("pairs.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    metric = f"bertscore(model='{folder_of('bert')}', layer=1)"
    settings = ("--steps", "2", "--batch", "2", "--factor", "4")
    done = command("debias", "-m", metric, "-s", "pairs.jsonl", "-o", "even", *settings, "--json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    measures = ["bias", "raw difference", "stereotype", "share that prefers the stereotype"]
    measures += ["cost of a wrong group", "group offset"]
    shown = [f"cost of a wrong gender, shown by a {kind}" for kind in ("noun", "name")]
    assert [row["what"] for row in rows] == [*measures, *measures, *shown]
    assert {row["attribute"] for row in rows} == {"gender"}
    assert "use it as a metric: -m ./even" in done.err
    again = command("score", "pairs.jsonl", "-m", "./even", "--json")
    assert "adapter" in again.out


def test_a_metric_that_cannot_be_trained_is_one_line_of_trouble(command: Command) -> None:
    Path("pairs.jsonl").write_text(json.dumps(LINES[0]))
    done = command("debias", "-m", "chrf", "-s", "pairs.jsonl", "-o", "even")
    assert done.code == 1
    assert "only metrics with a transformer are differentiable" in done.err


@pytest.mark.usefixtures("registry")
def test_several_attributes_are_debiased_at_once(
    command: Command,
    folder_of: FolderOf,  # noqa: F811
) -> None:
    Path("pairs.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    metric = f"bertscore(model='{folder_of('bert')}', layer=1)"
    settings = ("--steps", "1", "--batch", "1", "--factor", "4", "-a", "race", "-a", "status")
    done = command("debias", "-m", metric, "-s", "pairs.jsonl", "-o", "even", *settings, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert {row["attribute"] for row in document["rows"]} == {"race", "socioeconomic"}
    assert document["attributes"] == "race, socioeconomic"


def test_an_unknown_attribute_is_one_line_of_trouble(command: Command) -> None:
    Path("pairs.jsonl").write_text(json.dumps(LINES[0]))
    done = command("debias", "-s", "pairs.jsonl", "-o", "even", "-a", "height")
    assert done.code == 1
    assert "there is no attribute 'height' to debias; known: age, gender" in done.err
