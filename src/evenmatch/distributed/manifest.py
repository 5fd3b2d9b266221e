"""The manifest of a distributed run: its settings, and the shards that are done.

The manifest is a file with one JSON object per line. Lines are appended and never changed, by one
process; an incomplete last line (the process was killed) is dropped. The first line holds the
settings of the run. A run is resumed only if they and the scored rows are unchanged. Each line has
a checksum of itself and of the scores of its shard: if one of them is wrong, the shard is scored
again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenmatch.distributed.shards import Shard, hash_content
from evenmatch.errors import DataError, InputError
from evenmatch.files import hold_lock, write_atomic

MANIFEST_NAME = "manifest.jsonl"
_LOCK_NAME = ".lock"

_SETTING_LABELS = {
    "layout": "version of the manifest",
    "metrics": "metrics",
    "form": "output format",
    "shard_rows": "rows per shard",
    "vectors": "precision of the vectors (with or without --cache)",
}


@dataclass(frozen=True)
class Manifest:
    """An open manifest; `done` maps the numbers of finished shards to their lines."""

    folder: Path
    file: IO[bytes]
    done: dict[int, Mapping[str, Any]]

    def add_shard(self, shard: Shard, data: bytes, entry: Mapping[str, Any]) -> None:
        """Write a shard's scores to a file, then append a line for the shard."""
        part = self.part_path(shard.number, entry["form"])
        write_atomic(part, data)
        rows = {"rows": shard.rows, "first": shard.first, "content": shard.content_hash}
        line = {
            "shard": shard.number,
            **rows,
            "part": part.name,
            "hash": hash_content(data),
            **entry,
        }
        end = self.file.seek(0, os.SEEK_END)
        try:
            self.file.write(_format_line(line))
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            self.file.truncate(end)  # leave no incomplete line
            raise OSError(error.errno, error.strerror, str(self.folder / MANIFEST_NAME)) from None
        self.done[shard.number] = line

    def check_shard(self, shard: Shard) -> None:
        """Raise an error if the rows of a shard have changed since they were scored."""
        if line := self.done.get(shard.number):
            _refuse_resume(self.folder, _describe_changed_rows(line, shard))

    def part_path(self, number: int, suffix: str) -> Path:
        """Path of a shard's scores."""
        return self.folder / f"part-{number:06d}{suffix}"


@contextmanager
def open_manifest(
    folder: Path, header: Mapping[str, Any], shards: Sequence[Shard] | None, *, resume: bool
) -> Iterator[Manifest]:
    """Create the manifest of a run in a folder; with `resume`, open an existing one.

    Without `shards`, they become known one by one and are checked with `check_shard`. Raises an
    error if the existing manifest is of a different run, or in use by another process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST_NAME
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(folder / _LOCK_NAME, wait=False))
        except BlockingIOError:
            raise DataError(f"another run is writing to {folder}; wait for it or stop it") from None
        # Look at the folder only now: until the lock was held, another run could have changed it.
        _remove_leftovers(folder)
        if not path.exists():
            write_atomic(path, _format_line(header))
        elif not resume:
            raise InputError(
                f"{folder} already contains a run; continue it with --resume, or remove the folder"
            )
        file = stack.enter_context(path.open("r+b", buffering=0))
        stored, *lines = _read_lines(file, path)
        done = {line["shard"]: line for line in lines}
        _refuse_resume(folder, _find_change(stored, header))
        if shards is not None:
            _refuse_resume(folder, _find_changed_rows(done.values(), shards))
        yield Manifest(
            folder, file, {n: line for n, line in done.items() if _part_is_intact(folder, line)}
        )


def _find_change(stored: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Describe the first setting that differs from a stored run; empty if there is none."""
    for key, now in current.items():
        before = stored.get(key)
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict):  # metrics
            name = next(n for n in {**before, **now} if before.get(n) != now.get(n))
            before, now = (each.get(name, f"without {name}") for each in (before, now))
        return f"{_SETTING_LABELS[key]} changed from {before} to {now}"
    return ""


def _find_changed_rows(done: Iterable[Mapping[str, Any]], shards: Sequence[Shard]) -> str:
    """Describe the first rows that have changed since they were scored; empty if none have.

    Rows that are not scored yet may change, so that a corrupt row can be corrected.
    """
    for line in done:
        last = line["first"] + line["rows"] - 1
        if line["shard"] >= len(shards):
            end = shards[-1].first + shards[-1].rows - 1
            return f"it has scores of row {last}, but the input now ends with row {end}"
        if reason := _describe_changed_rows(line, shards[line["shard"]]):
            return reason
    return ""


def _describe_changed_rows(line: Mapping[str, Any], shard: Shard) -> str:
    first, last = line["first"], line["first"] + line["rows"] - 1
    if (shard.first, shard.rows, shard.content_hash) == (first, line["rows"], line["content"]):
        return ""
    return f"rows {first} to {last} of {shard.file} have changed since they were scored"


def _refuse_resume(folder: Path, reason: str) -> None:
    if reason:
        raise InputError(
            f"the run in {folder} cannot be resumed: {reason}; use the same settings and input or "
            "another --out, or remove the folder to start again"
        )


def _read_lines(file: IO[bytes], path: Path) -> list[dict[str, Any]]:
    """Read header and intact lines of a manifest; remove an incomplete last line from the file."""
    data = file.read()
    complete = data.rfind(b"\n") + 1
    file.truncate(complete)
    found = [_parse_line(line) for line in data[:complete].split(b"\n")[:-1]]
    if not found:
        raise DataError(f"{path} is empty; remove the folder {path.parent} and start again")
    if found[0] is None or "shard" in found[0]:
        raise DataError(
            f"{path} line 1 is damaged; remove the folder {path.parent} and start again"
        )
    return [found[0], *(line for line in found[1:] if line and "shard" in line)]


def _format_line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record)
    return json.dumps({**record, "check": hash_content(text.encode())}).encode() + b"\n"


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """Parse a line; None if its checksum is wrong."""
    with suppress(ValueError, RecursionError):
        record = json.loads(line)
        if isinstance(record, dict):
            check = record.pop("check", None)
            if check == hash_content(json.dumps(record).encode()):
                return record
    return None


def _part_is_intact(folder: Path, line: Mapping[str, Any]) -> bool:
    """Whether a shard's scores are those that were stored; otherwise it is scored again."""
    try:
        return bool(hash_content((folder / line["part"]).read_bytes()) == line["hash"])
    except OSError:
        return False


def _remove_leftovers(folder: Path) -> None:
    """Remove what a process that was killed was about to write."""
    for pattern in (".part-*", f".{MANIFEST_NAME}.*"):
        for path in folder.glob(pattern):
            path.unlink()
    for path in folder.glob(".upload-*"):
        shutil.rmtree(path, ignore_errors=True)
