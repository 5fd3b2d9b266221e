from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenmatch as em
from evenmatch.distributed import manifest as manifest_module
from evenmatch.distributed.manifest import Manifest, open_manifest
from evenmatch.distributed.shards import Shard, plan_shards
from evenmatch.files import write_atomic
from tests.distributed.conftest import records, write_jsonl

HEADER: dict[str, Any] = {"layout": 1, "metrics": {"chrf": "chrf · 1"}, "shard_rows": 2}
FOUND = {"form": ".jsonl", "tallies": {}, "flags": {}, "seconds": {}}


@pytest.fixture
def shards(tmp_path: Path) -> list[Shard]:
    return plan_shards(str(write_jsonl(tmp_path / "x.jsonl", records(6))), 2)


@pytest.fixture
def folder(tmp_path: Path, shards: list[Shard]) -> Path:
    """A run of three shards, two of which are done."""
    place = tmp_path / "run"
    with open_manifest(place, HEADER, shards, resume=False) as manifest:
        for shard in shards[:2]:
            manifest.add_shard(shard, b"scores\n", FOUND)
    return place


def done(folder: Path, shards: list[Shard], header: dict[str, Any] = HEADER) -> list[int]:
    with open_manifest(folder, header, shards, resume=True) as manifest:
        return sorted(manifest.done)


def test_what_was_entered_is_there_again(folder: Path, shards: list[Shard]) -> None:
    assert done(folder, shards) == [0, 1]
    assert (folder / "part-000001.jsonl").read_bytes() == b"scores\n"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_cut_short_by_a_kill_is_dropped(folder: Path, shards: list[Shard], cut: int) -> None:
    record = folder / "manifest.jsonl"
    record.write_bytes(record.read_bytes()[:-cut])
    assert done(folder, shards) == [0]
    with open_manifest(folder, HEADER, shards, resume=True) as manifest:
        manifest.add_shard(shards[2], b"more\n", FOUND)
    assert done(folder, shards) == [0, 2]


def test_a_shard_whose_file_is_gone_or_short_is_done_again(
    folder: Path, shards: list[Shard]
) -> None:
    (folder / "part-000000.jsonl").unlink()
    (folder / "part-000001.jsonl").write_bytes(b"sco")
    assert done(folder, shards) == []


def test_a_run_that_is_there_is_not_overwritten(folder: Path, shards: list[Shard]) -> None:
    with (
        pytest.raises(em.InputError, match="already contains a run; continue it with --resume"),
        open_manifest(folder, HEADER, shards, resume=False),
    ):
        pass


def test_two_runs_do_not_write_one_record(folder: Path, shards: list[Shard]) -> None:
    with (
        open_manifest(folder, HEADER, shards, resume=True),
        pytest.raises(em.DataError, match=r"another run is writing to .*; wait for it or stop it"),
        open_manifest(folder, HEADER, shards, resume=True),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shard_rows": 3}, "rows per shard changed from 2 to 3"),
        ({"metrics": {"chrf": "chrf · 2"}}, "metrics changed from chrf · 1 to chrf · 2"),
        ({"metrics": {"bleu": "b"}}, "metrics changed from chrf · 1 to without chrf"),
    ],
)
def test_a_record_of_something_else_is_refused_with_the_reason(
    folder: Path, shards: list[Shard], change: dict[str, Any], words: str
) -> None:
    with pytest.raises(em.InputError, match=f"cannot be resumed: {words}; use the same settings"):
        done(folder, shards, HEADER | change)


def test_a_row_that_changed_after_it_was_scored_is_refused(
    folder: Path, shards: list[Shard], tmp_path: Path
) -> None:
    rows = records(6)
    rows[3]["candidate"] = "other"
    changed = plan_shards(str(write_jsonl(tmp_path / "x.jsonl", rows)), 2)
    with pytest.raises(
        em.InputError, match=r"rows 2 to 3 of .* have changed since they were scored"
    ):
        done(folder, changed)


def test_a_row_that_changed_before_it_was_scored_is_fine(folder: Path, tmp_path: Path) -> None:
    rows = records(6)
    rows[5]["candidate"] = "mended"
    assert done(folder, plan_shards(str(write_jsonl(tmp_path / "x.jsonl", rows)), 2)) == [0, 1]


def test_an_input_that_became_shorter_is_refused(folder: Path, tmp_path: Path) -> None:
    fewer = plan_shards(str(write_jsonl(tmp_path / "x.jsonl", records(2))), 2)
    with pytest.raises(
        em.InputError, match="has scores of row 3, but the input now ends with row 1"
    ):
        done(folder, fewer)


@pytest.mark.parametrize(
    "damage", [b"rubbish\n", b"[]\n", b'{"shard": "x"}\n', b"[" * 50_000 + b"\n"]
)
def test_a_shard_with_a_damaged_line_is_done_again(
    folder: Path, shards: list[Shard], damage: bytes
) -> None:
    record = folder / "manifest.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(lines[0] + damage + lines[2])
    assert done(folder, shards) == [1]


def test_a_changed_number_in_a_line_is_noticed(folder: Path, shards: list[Shard]) -> None:
    record = folder / "manifest.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(lines[0] + lines[1].replace(b'"rows": 2', b'"rows": 3') + lines[2])
    assert done(folder, shards) == [1]


def test_a_part_changed_at_equal_size_is_done_again(folder: Path, shards: list[Shard]) -> None:
    (folder / "part-000001.jsonl").write_bytes(b"scorez\n")
    assert done(folder, shards) == [0]


@pytest.mark.parametrize("damage", [b"rubbish\n", b"[]\n", b"{}\n", bytes(50) + b"\n"])
def test_a_damaged_header_is_refused(folder: Path, shards: list[Shard], damage: bytes) -> None:
    record = folder / "manifest.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    record.write_bytes(damage + b"".join(lines[1:]))
    with pytest.raises(em.DataError, match=r"manifest\.jsonl line 1 is damaged; remove"):
        done(folder, shards)


def test_of_runs_started_at_once_only_one_writes(tmp_path: Path, shards: list[Shard]) -> None:
    """The second run opens the folder while the first is about to create the manifest."""
    place = tmp_path / "new"
    entered: list[Path] = []

    def start_another_before_writing(path: Path, data: bytes) -> None:
        if not entered:
            entered.append(path)
            with (
                pytest.raises(em.DataError, match="another run is writing to"),
                open_manifest(place, HEADER, shards, resume=False),
            ):
                pass
        write_atomic(path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_module, "write_atomic", start_another_before_writing)
        with open_manifest(place, HEADER, shards, resume=False):
            pass
    assert entered


def test_what_a_killed_run_was_writing_is_removed_by_the_next(
    folder: Path, shards: list[Shard]
) -> None:
    (folder / ".part-000002.jsonl.host.1234-5").write_bytes(b"ha")
    (folder / ".manifest.jsonl.1234").write_bytes(b"ha")
    (folder / ".upload-x").mkdir()
    assert done(folder, shards) == [0, 1]
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "manifest.jsonl",
        "part-000000.jsonl",
        "part-000001.jsonl",
    }


def test_an_empty_record_is_refused(folder: Path, shards: list[Shard]) -> None:
    (folder / "manifest.jsonl").write_bytes(b"")
    with pytest.raises(em.DataError, match=r"manifest\.jsonl is empty; remove the folder"):
        done(folder, shards)


def test_half_a_line_is_taken_back_when_the_disk_is_full(folder: Path, shards: list[Shard]) -> None:
    with open_manifest(folder, HEADER, shards, resume=True) as manifest:
        full = on_a_full_disk(manifest)
        with pytest.raises(OSError, match="No space left") as error:
            full.add_shard(shards[2], b"more\n", FOUND)
        assert error.value.filename == str(folder / "manifest.jsonl")
    assert done(folder, shards) == [0, 1]


def on_a_full_disk(manifest: Manifest) -> Manifest:
    import errno

    class File:
        def __init__(self) -> None:
            self.file = manifest.file

        def write(self, data: bytes) -> int:
            self.file.write(data[:5])
            raise OSError(errno.ENOSPC, "No space left on device")

        def seek(self, *where: int) -> int:
            return self.file.seek(*where)

        def truncate(self, size: int) -> int:
            return self.file.truncate(size)

    return Manifest(manifest.folder, File(), manifest.done)  # type: ignore[arg-type]  # as much of a file as is used
