"""Files by their content: hashes that are not computed twice, and where a content was last seen."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from evenmatch.storage.folders import cache_dir
from evenmatch.storage.packages import file_sha256

BY_CONTENT = "sha256:"


def digest(files: Sequence[Path], work: Callable[[], str]) -> str:
    """What `work` gives for these files, remembered while their sizes and times stay the same."""
    state = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    memo = cache_dir() / "digests" / hashlib.sha256(repr(state).encode()).hexdigest()
    with suppress(OSError):
        return memo.read_text("ascii")
    found = work()
    write_note(memo, found)
    return found


def file_digest(path: Path) -> str:
    """The hash of one file's content."""
    return digest([path], lambda: file_sha256(path))


def remember(kind: str, name: str, path: Path) -> None:
    """Note where a content lies, so that a signature that names it can be rebuilt."""
    note = _note(kind, name)
    if not note.is_file() or note.read_text("utf-8") != str(path.resolve()):
        write_note(note, str(path.resolve()))


def recall(kind: str, name: str) -> Path | None:
    """Where a content was last seen; it may have moved or changed since."""
    note = _note(kind, name)
    return Path(note.read_text("utf-8")) if note.is_file() else None


def _note(kind: str, name: str) -> Path:
    return cache_dir() / f"known-{kind}" / Path(name.removeprefix(BY_CONTENT)).name


def write_note(path: Path, text: str) -> None:
    """Write what others may read at any moment; a read-only disk only costs the note."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)
