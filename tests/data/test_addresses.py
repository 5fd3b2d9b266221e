from __future__ import annotations

import sys
from pathlib import Path

import pytest

import evenmatch as em
from evenmatch.data.files import list_files, local_path, open_location


@pytest.fixture
def memory() -> object:
    """A store in memory, empty before and after."""
    from fsspec.implementations.memory import MemoryFileSystem

    store = MemoryFileSystem()
    store.store.clear()
    yield store
    store.store.clear()


def test_a_file_is_read_by_path_and_by_address(tmp_path: Path, memory: object) -> None:
    place = tmp_path / "a b.txt"
    place.write_bytes(b"here")
    memory.pipe("/x/y.txt", b"there")  # type: ignore[attr-defined]
    for name, wanted in (
        (str(place), b"here"),
        (place.as_uri(), b"here"),
        ("memory://x/y.txt", b"there"),
    ):
        with open_location(name) as file:
            assert file.read() == wanted


def test_a_folder_gives_its_files_in_name_order(memory: object) -> None:
    for name in ("b", "a", "c/d"):
        memory.pipe(f"/in/{name}.jsonl", b"")  # type: ignore[attr-defined]
    assert list_files("memory://in") == [f"memory:///in/{name}.jsonl" for name in ("a", "b", "c/d")]


def test_a_path_stays_a_path() -> None:
    assert local_path("a://b") == "a://b"
    assert local_path("a b") == "a b"


def test_without_fsspec_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with (
        pytest.raises(em.MissingExtraError, match=r"needs fsspec; .* 'evenmatch\[remote\]'"),
        open_location("s3://b/x.jsonl"),
    ):
        pass


def test_without_the_package_for_a_store_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with (
        pytest.raises(em.MissingExtraError, match="cannot reach gs://b/x: Please install gcsfs"),
        open_location("gs://b/x"),
    ):
        pass


def test_an_unknown_kind_of_address_is_refused() -> None:
    with (
        pytest.raises(em.InputError, match="cannot reach nowhere://x: Protocol not known"),
        open_location("nowhere://x"),
    ):
        pass
