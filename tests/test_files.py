from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from evenmatch.data.scores import atomic_write
from evenmatch.files import (
    file_digest,
    folder_digest,
    recall_path,
    remember_path,
    set_ordinary_modes,
    temporary_path,
    try_write_text,
    write_atomic,
)


def settled(path: Path, content: bytes) -> Path:
    """A file that was written long ago."""
    path.write_bytes(content)
    return path


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenmatch.files._SETTLED_SECONDS", -1.0)


@pytest.mark.usefixtures("long_ago")
@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"0" * 64, b"a b c"])
def test_a_damaged_digest_is_computed_again(
    tmp_path: Path, empty_cache: Path, damage: bytes
) -> None:
    file = settled(tmp_path / "x", b"content")
    digest = file_digest(file)
    (memo,) = (empty_cache / "digests").iterdir()
    whole = memo.read_bytes()
    memo.write_bytes(damage)
    assert file_digest(file) == digest
    memo.write_bytes(whole.replace(whole[:1], b"0" if whole[:1] != b"0" else b"1", 1))
    assert file_digest(file) == digest
    assert memo.read_bytes() == whole


def test_a_file_that_was_just_written_is_hashed_each_time(
    tmp_path: Path, empty_cache: Path
) -> None:
    file = tmp_path / "x"
    digests = []
    for content in (b"one", b"two"):
        file.write_bytes(content)
        os.utime(file, (1, 1))
        digests.append(file_digest(file))
    assert digests[0] != digests[1]


def test_the_hash_of_a_folder_covers_every_file_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "weights").write_bytes(b"1")
    found = {folder_digest(tmp_path)}
    (tmp_path / "a" / "b" / "weights").write_bytes(b"2")
    found.add(folder_digest(tmp_path))
    (tmp_path / "a" / "b" / "weights").rename(tmp_path / "a" / "weights")
    found.add(folder_digest(tmp_path))
    (tmp_path / "new").write_bytes(b"")
    found.add(folder_digest(tmp_path))
    assert len(found) == 4


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"a\0b", b""])
def test_a_damaged_record_of_a_path_is_replaced(
    tmp_path: Path, empty_cache: Path, damage: bytes
) -> None:
    name = remember_path("things", tmp_path, "12" * 32)
    (record,) = (empty_cache / "known-things").iterdir()
    record.write_bytes(damage)
    found = recall_path("things", name)
    assert found is None or not found.is_file()
    remember_path("things", tmp_path, "12" * 32)
    assert recall_path("things", name) == tmp_path.resolve()


def test_written_files_have_the_user_s_ordinary_mode(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    ordinary = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    try_write_text(tmp_path / "text", "x")
    write_atomic(tmp_path / "bytes", b"x")
    with atomic_write(str(tmp_path / "private")) as place:
        Path(place).unlink()
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
    os.close(os.open(tmp_path / "weights", os.O_CREAT | os.O_WRONLY, 0o600))
    set_ordinary_modes(tmp_path)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == ordinary, path.name
    assert len(list(tmp_path.iterdir())) == 5


def test_what_a_killed_process_left_is_removed_and_what_others_write_is_not(
    tmp_path: Path,
) -> None:
    target = tmp_path / "scores.jsonl"
    own = temporary_path(target)
    dead = own.with_name(own.name.replace(f".{os.getpid()}-", ".999999999-"))
    alive = own.with_name(own.name.replace(f".{os.getpid()}-", f".{os.getppid()}-"))
    for path in (dead, alive):
        path.touch()
    write_atomic(target, b"x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, target.name])
