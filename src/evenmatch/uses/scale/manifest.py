"""The record of a large run: what it is a run of, and which shards are done.

One JSON object a line, added to and never changed. One process writes it, so it needs no database;
a line that a kill cut short is dropped; and it can be read, counted and copied with any tool.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenmatch.errors import DataError, InputError
from evenmatch.uses.scale.files import write_whole
from evenmatch.uses.scale.fit import check_header, check_shards
from evenmatch.uses.scale.shards import Shard

NAME = "manifest.jsonl"


@dataclass(frozen=True)
class Manifest:
    """The open record of a run; `done` grows with it, by shard number."""

    folder: Path
    file: IO[bytes]
    done: dict[int, Mapping[str, Any]]

    def enter(self, shard: Shard, data: bytes, found: Mapping[str, Any]) -> None:
        """Keep a shard's file, and only then say that it is done."""
        part = self.part(shard.number, found["form"])
        write_whole(part, data)
        place = {"rows": shard.rows, "first": shard.first, "content": shard.cut.content}
        line = {"shard": shard.number, **place, "part": part.name, "bytes": len(data), **found}
        self._add(line)
        self.done[shard.number] = line

    def part(self, number: int, form: str) -> Path:
        """Where a shard's scores lie."""
        return self.folder / f"part-{number:06d}{form}"

    def _add(self, line: Mapping[str, Any]) -> None:
        end = self.file.seek(0, os.SEEK_END)
        try:
            self.file.write(json.dumps(line).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            self.file.truncate(end)  # half a line is worse than none
            raise OSError(error.errno, error.strerror, str(self.folder / NAME)) from None


@contextmanager
def open_manifest(
    folder: Path, header: Mapping[str, Any], shards: Sequence[Shard], *, resume: bool
) -> Iterator[Manifest]:
    """The record of a run in a folder: a new one, or with `resume` the one that is there.

    A record of something else is refused with the reason, and so is one that is in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    if not path.exists():
        write_whole(path, json.dumps(header).encode() + b"\n")
    elif not resume:
        raise InputError(
            f"{folder} holds a run already; go on with it by --resume, or remove the folder"
        )
    with path.open("r+b", buffering=0) as file:
        _lock(file, folder)
        lines = _whole_lines(file, path)
        check_header(folder, lines[0], header)
        done = {line["shard"]: line for line in lines[1:]}
        check_shards(folder, done.values(), shards)
        yield Manifest(folder, file, {n: line for n, line in done.items() if _kept(folder, line)})


def _lock(file: IO[bytes], folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"another run is writing to {folder}; wait for it or stop it") from None


def _whole_lines(file: IO[bytes], path: Path) -> list[dict[str, Any]]:
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


def _kept(folder: Path, line: Mapping[str, Any]) -> bool:
    """Whether the file a line speaks of is there; a shard that lost its file is done again."""
    part = folder / str(line["part"])
    return part.is_file() and part.stat().st_size == int(line["bytes"])
