"""The manifest of a distributed run: its settings, and the shards that are done.

The manifest is a file with one JSON object per line. Lines are appended and never changed, by one
process; an incomplete last line (the process was killed) is dropped. The first line holds the
settings of the run. A run is resumed only if they and the scored rows are unchanged.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenmatch.distributed.shards import Shard
from evenmatch.errors import DataError, InputError
from evenmatch.files import write_atomic

MANIFEST_NAME = "manifest.jsonl"

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
        line = {"shard": shard.number, **rows, "part": part.name, "bytes": len(data), **entry}
        end = self.file.seek(0, os.SEEK_END)
        try:
            self.file.write(json.dumps(line).encode() + b"\n")
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
    if not path.exists():
        write_atomic(path, json.dumps(header).encode() + b"\n")
    elif not resume:
        raise InputError(
            f"{folder} already contains a run; continue it with --resume, or remove the folder"
        )
    with path.open("r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"another run is writing to {folder}; wait for it or stop it") from None
        stored, *lines = _read_lines(file, path)
        done = {line["shard"]: line for line in lines}
        _refuse_resume(folder, _find_change(stored, header))
        if shards is not None:
            _refuse_resume(folder, _find_changed_rows(done.values(), shards))
        yield Manifest(
            folder, file, {n: line for n, line in done.items() if _part_exists(folder, line)}
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
    """Read the lines of a manifest; remove an incomplete last line from the file."""
    data = file.read()
    complete = data.rfind(b"\n") + 1
    file.truncate(complete)
    lines = []
    for number, line in enumerate(data[:complete].splitlines(), 1):
        try:
            lines.append(dict(json.loads(line)))
        except (ValueError, TypeError):
            raise DataError(
                f"{path} line {number} is damaged; remove the folder {path.parent} and start again"
            ) from None
    if not lines:
        raise DataError(f"{path} is empty; remove the folder {path.parent} and start again")
    return lines


def _part_exists(folder: Path, line: Mapping[str, Any]) -> bool:
    """Whether a shard's file exists in full; otherwise the shard is scored again."""
    part = folder / str(line["part"])
    return part.is_file() and part.stat().st_size == int(line["bytes"])
