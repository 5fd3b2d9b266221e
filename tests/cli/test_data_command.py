from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenmatch.data.catalogue.catalogue import data_sets
from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "data"


def place(folder: Path, name: str) -> None:
    [wanted] = [each for each in data_sets() if each.name == name]
    (folder / name).mkdir(parents=True)
    for file in wanted.files:
        (folder / name / file).write_bytes(b"")


def test_every_set_is_listed_with_licence_and_whether_it_is_here(
    command: Command, folder: Path
) -> None:
    place(folder, "sick")
    done = command("data", "list")
    rows = {line.split()[0]: line for line in done.out.splitlines()[1:]}
    assert (done.code, done.err) == (0, "")
    assert set(rows) == {each.name for each in data_sets()}
    assert rows["sick"].split()[1:4] == ["yes", "CC", "BY-NC-SA"]
    assert rows["crows-pairs"].split()[1] == "no"
    assert rows["winobias"].split()[1] == "manual"


def test_the_list_as_json_has_sources_and_checksums(command: Command) -> None:
    document = json.loads(command("data", "list", "--json").out)
    [found] = [each for each in document["sets"] if each["name"] == "crows-pairs"]
    assert (found["here"], found["fetchable"]) == (False, True)
    assert found["sources"][0].startswith("https://github.com/nyu-mll/crows-pairs/tree/8aaac11")
    assert len(found["files"]["crows_pairs.jsonl.gz"]) == 64


def test_where_prints_the_folder_and_nothing_else(command: Command, folder: Path) -> None:
    place(folder, "sick")
    done = command("data", "where", "sick")
    assert (done.code, done.out, done.err) == (0, f"{folder / 'sick'}\n", "")


def test_where_of_an_absent_set_is_one_line(command: Command) -> None:
    done = command("data", "where", "sick")
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith("fetch it with: evenmatch data get sick\n")
    assert done.err.count("\n") == 1


def test_get_of_a_set_that_is_here_prints_its_folder(command: Command, folder: Path) -> None:
    place(folder, "sick")
    done = command("data", "get", "sick")
    assert (done.code, done.out) == (0, f"{folder / 'sick'}\n")


def test_get_shows_licence_source_and_citation_before_it_fetches(command: Command) -> None:
    done = command("data", "get", "sick", "--mirror", "http://127.0.0.1:9/")
    *said, error = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert "evenmatch: licence: CC BY-NC-SA 3.0" in said
    assert any(line.startswith("evenmatch: cite: Marelli") for line in said)
    assert any("github.com/brmson/dataset-sts/tree/e1d3375" in line for line in said)
    assert any("no checksums are known for these sources" in line for line in said)
    assert error.startswith("evenmatch: cannot fetch http://127.0.0.1:9/brmson/dataset-sts/e1d33")


def test_get_of_an_unknown_set_is_one_line(command: Command) -> None:
    done = command("data", "get", "sic")
    assert (done.code, done.out) == (1, "")
    assert done.err == "evenmatch: no data set is called 'sic'; did you mean sick?\n"
