"""The record of a large run: what it is a run of, and which shards are done.

One JSON object a line, added to and never changed. One process writes it, so it needs no database;
a line that a kill cut short is dropped; and it can be read, counted and copied with any tool.

Whether the record of a run fits what is asked now; if not, the reason.
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


@dataclass(frozen=True)
class Manifest:
    """The open record of a run; `done` grows with it, by shard number."""

    folder: Path
    file: IO[bytes]
    done: dict[int, Mapping[str, Any]]

    def add_shard(self, shard: Shard, data: bytes, found: Mapping[str, Any]) -> None:
        """Keep a shard's file, and only then say that it is done."""
        part = self.part_path(shard.number, found["form"])
        write_atomic(part, data)
        place = {"rows": shard.rows, "first": shard.first, "content": shard.chunk.content_hash}
        line = {"shard": shard.number, **place, "part": part.name, "bytes": len(data), **found}
        self._append(line)
        self.done[shard.number] = line

    def part_path(self, number: int, form: str) -> Path:
        """Where a shard's scores lie."""
        return self.folder / f"part-{number:06d}{form}"

    def _append(self, line: Mapping[str, Any]) -> None:
        end = self.file.seek(0, os.SEEK_END)
        try:
            self.file.write(json.dumps(line).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            self.file.truncate(end)  # half a line is worse than none
            raise OSError(error.errno, error.strerror, str(self.folder / MANIFEST_NAME)) from None


@contextmanager
def open_manifest(
    folder: Path, header: Mapping[str, Any], shards: Sequence[Shard], *, resume: bool
) -> Iterator[Manifest]:
    """The record of a run in a folder: a new one, or with `resume` the one that is there.

    A record of something else is refused with the reason, and so is one that is in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MANIFEST_NAME
    if not path.exists():
        write_atomic(path, json.dumps(header).encode() + b"\n")
    elif not resume:
        raise InputError(
            f"{folder} holds a run already; go on with it by --resume, or remove the folder"
        )
    with path.open("r+b", buffering=0) as file:
        _lock_manifest(file, folder)
        lines = _read_lines(file, path)
        check_header(folder, lines[0], header)
        done = {line["shard"]: line for line in lines[1:]}
        check_shards(folder, done.values(), shards)
        yield Manifest(
            folder, file, {n: line for n, line in done.items() if _part_exists(folder, line)}
        )


def _lock_manifest(file: IO[bytes], folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"another run is writing to {folder}; wait for it or stop it") from None


def _read_lines(file: IO[bytes], path: Path) -> list[dict[str, Any]]:
    """The lines of a record; what follows the last line's end was cut short and goes."""
    data = file.read()
    whole = data.rfind(b"\n") + 1
    file.truncate(whole)
    lines = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
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
    """Whether the file a line speaks of is there; a shard that lost its file is done again."""
    part = folder / str(line["part"])
    return part.is_file() and part.stat().st_size == int(line["bytes"])


_SETTING_LABELS = {
    "layout": "layout of the record",
    "metrics": "metrics",
    "form": "form of the scores",
    "shard_rows": "number of rows in a shard",
    "vectors": "form of the vectors (--cache or not)",
}


def check_header(folder: Path, there: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a record whose settings differ, and name what differs."""
    for key, value in asked.items():
        before = there.get(key)
        if before == value:
            continue
        was, now = _differing_values(before, value)
        raise _mismatch_error(folder, f"its {_SETTING_LABELS[key]} was {was} and now is {now}")


def _differing_values(before: Any, now: Any) -> tuple[Any, Any]:
    """What two settings differ in: of metrics only those that do."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return before, now
    names = [n for n in {**before, **now} if before.get(n) != now.get(n)]
    if not names:
        return ", ".join(before), ", ".join(now)
    return before.get(names[0], f"without {names[0]}"), now.get(names[0], f"without {names[0]}")


def check_shards(folder: Path, done: Iterable[Mapping[str, Any]], shards: Sequence[Shard]) -> None:
    """Refuse a record of rows that have changed since they were scored.

    Rows that are not done yet may have changed: a corrupt one is mended and the run goes on.
    """
    for line in done:
        last = line["first"] + line["rows"] - 1
        if line["shard"] >= len(shards):
            raise _mismatch_error(
                folder,
                f"it has scores of row {last} and the input now ends with row "
                f"{shards[-1].first + shards[-1].rows - 1}",
            )
        shard = shards[line["shard"]]
        found = (shard.first, shard.rows, shard.chunk.content_hash)
        if found != (line["first"], line["rows"], line["content"]):
            raise _mismatch_error(
                folder,
                f"rows {line['first']} to {last} were scored from other text than "
                f"{shard.file} holds now",
            )


def _mismatch_error(folder: Path, why: str) -> InputError:
    return InputError(
        f"the run in {folder} does not fit: {why}; ask for the same again, or for another --out"
    )
