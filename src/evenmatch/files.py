"""Where models and stored results lie on this machine.

Files by their content: hashes that are not computed twice, and where a content was last seen.

Files that are there whole or not at all, even after a power cut.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path


def _resolve_dir(variable: str, name: str) -> Path:
    given = os.environ.get(variable)
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "evenmatch" / name


def models_dir() -> Path:
    """The embedded models' folder: EVENMATCH_MODELS, or one in the user's cache."""
    return _resolve_dir("EVENMATCH_MODELS", "models")


def cache_dir() -> Path:
    """The folder of stored vectors and tables: EVENMATCH_CACHE, or one in the user's cache."""
    return _resolve_dir("EVENMATCH_CACHE", "vectors")


DIGEST_PREFIX = "sha256:"


def cached_digest(files: Sequence[Path], work: Callable[[], str]) -> str:
    """What `work` gives for these files, remembered while their sizes and times stay the same."""
    state = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    memo = cache_dir() / "digests" / hashlib.sha256(repr(state).encode()).hexdigest()
    with suppress(OSError):
        return memo.read_text("ascii")
    found = work()
    try_write_text(memo, found)
    return found


def file_digest(path: Path) -> str:
    """The hash of one file's content."""
    return cached_digest([path], lambda: file_sha256(path))


def remember_path(kind: str, name: str, path: Path) -> None:
    """Note where a content lies, so that a signature that names it can be rebuilt."""
    note = _record_path(kind, name)
    if not note.is_file() or note.read_text("utf-8") != str(path.resolve()):
        try_write_text(note, str(path.resolve()))


def recall_path(kind: str, name: str) -> Path | None:
    """Where a content was last seen; it may have moved or changed since."""
    note = _record_path(kind, name)
    return Path(note.read_text("utf-8")) if note.is_file() else None


def _record_path(kind: str, name: str) -> Path:
    return cache_dir() / f"known-{kind}" / Path(name.removeprefix(DIGEST_PREFIX)).name


def try_write_text(path: Path, text: str) -> None:
    """Write what others may read at any moment; a read-only disk only costs the note."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file beside its place, sync it, and move it there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        # A write names no file; the reader of the message needs one.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as lasting as the files they name."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def file_sha256(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
