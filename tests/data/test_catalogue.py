from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from evenmatch.data.catalogue import catalogue
from evenmatch.data.catalogue.catalogue import DataSet, data_dir, data_set, data_sets, find_data_set
from evenmatch.errors import DataError, UnknownNameError

EVERY = pytest.mark.parametrize("each", data_sets(), ids=lambda each: each.name)


@EVERY
def test_a_set_says_what_it_is_and_whose(each: DataSet) -> None:
    said = (each.about, each.licence, each.citation, each.layout)
    assert all(text and text == text.strip() and "\n" not in text for text in said)
    assert re.search(r"\((19|20)\d\d\), ", each.citation)


@EVERY
def test_a_set_names_its_sources_to_the_commit(each: DataSet) -> None:
    for source in each.upstream:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", source.repository)
        assert re.fullmatch(r"[0-9a-f]{40}", source.commit)
        assert len(set(source.paths)) == len(source.paths) > 0
        assert set(source.sha256) <= set(source.paths)


@EVERY
def test_a_set_has_a_checksum_for_each_of_its_files(each: DataSet) -> None:
    assert each.files
    assert all(re.fullmatch(r"[0-9a-f]{64}", known) for known in each.files.values())


@EVERY
def test_the_files_here_have_the_checksums_of_the_catalogue(each: DataSet, data: Path) -> None:
    if not each.present:
        pytest.skip(f"{each.name} is not in {data}")
    for name, known in each.files.items():
        raw = (data / each.name / name).read_bytes()
        content = gzip.decompress(raw) if name.endswith(".gz") else raw
        assert hashlib.sha256(content).hexdigest() == known


def test_every_folder_of_the_data_directory_is_a_set(data: Path) -> None:
    folders = {path.name for path in data.iterdir() if path.is_dir() and path.name[0] != "."}
    assert folders <= {each.name for each in data_sets()}


def test_the_data_directory_is_the_one_given_or_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path))
    assert data_dir() == tmp_path
    monkeypatch.delenv("EVENMATCH_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert data_dir() == tmp_path / "share" / "evenmatch"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert data_dir() == Path.home() / ".local" / "share" / "evenmatch"


def test_an_unknown_name_is_an_error_that_helps() -> None:
    with pytest.raises(
        UnknownNameError, match=r"^no data set is called 'wmt19'; did you mean wmt1"
    ):
        data_set("wmt19")
    with pytest.raises(UnknownNameError, match=r"'zzz'; see: evenmatch data list$"):
        data_set("zzz")


def test_an_absent_set_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path))
    with pytest.raises(
        DataError, match=r"'sick' is not in .*; fetch it with: evenmatch data get s"
    ):
        find_data_set("sick")
    with pytest.raises(
        DataError, match=r"set EVENMATCH_DATA to a folder that has it, or create it by"
    ):
        find_data_set("winobias")


def test_a_set_lacking_one_file_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVENMATCH_DATA", str(tmp_path))
    wanted = catalogue.data_set("sick")
    wanted.folder.mkdir()
    first, *others = wanted.files
    for name in others:
        (wanted.folder / name).write_bytes(b"")
    assert not wanted.present
    (wanted.folder / first).write_bytes(b"")
    assert wanted.present
