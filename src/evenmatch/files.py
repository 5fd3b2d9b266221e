"""Folders, content hashes and safe writes.

- `models_dir` and `cache_dir`: where models and cached results are stored.
- `file_digest` and `cached_digest`: SHA-256 of files, cached until a file changes.
- `remember_path`, `recall_path` and `recall_unchanged`: find a file again by its content hash.
- `write_atomic` and `try_write_text`: writes that never leave a partial file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

DIGEST_PREFIX = "sha256:"


def models_dir() -> Path:
    """Return the folder of embedded models: EVENMATCH_MODELS, or one in the user's cache."""
    return _resolve_dir("EVENMATCH_MODELS", "models")


def cache_dir() -> Path:
    """Return the folder of cached vectors and tables: EVENMATCH_CACHE, or the user's cache."""
    return _resolve_dir("EVENMATCH_CACHE", "vectors")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, cached until its size or modification time changes."""
    return cached_digest([path], lambda: file_sha256(path))


def cached_digest(files: Sequence[Path], compute: Callable[[], str]) -> str:
    """Return `compute()`, cached until the size or modification time of one of `files` changes."""
    state = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    memo = cache_dir() / "digests" / hashlib.sha256(repr(state).encode()).hexdigest()
    with suppress(OSError):
        return memo.read_text("ascii")
    digest = compute()
    try_write_text(memo, digest)
    return digest


def file_sha256(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remember_path(kind: str, path: Path, digest: str) -> str:
    """Record where content was found, so that signatures can name it; return that name."""
    name = f"{DIGEST_PREFIX}{digest[:16]}"
    record = _record_path(kind, name)
    if not record.is_file() or record.read_text("utf-8") != str(path.resolve()):
        try_write_text(record, str(path.resolve()))
    return name


def recall_path(kind: str, name: str) -> Path | None:
    """Return where content was last found; the file may have moved or changed since."""
    record = _record_path(kind, name)
    return Path(record.read_text("utf-8")) if record.is_file() else None


def recall_unchanged(kind: str, name: str, digest: Callable[[Path], str]) -> Path | None:
    """Return where content was last found; None if it is no longer there."""
    path = recall_path(kind, name)
    unchanged = path and path.exists() and digest(path).startswith(name.removeprefix(DIGEST_PREFIX))
    return path if unchanged else None


def write_atomic(path: Path, data: bytes) -> None:
    """Write to a temporary file in the same folder, sync it, and rename it to `path`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        # The error of a failed write does not name the file.
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def try_write_text(path: Path, text: str) -> None:
    """Replace a file atomically, but without sync; ignore errors such as a read-only disk."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that a renamed file keeps its new name after a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _resolve_dir(variable: str, name: str) -> Path:
    given = os.environ.get(variable)
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "evenmatch" / name


def _record_path(kind: str, name: str) -> Path:
    return cache_dir() / f"known-{kind}" / Path(name.removeprefix(DIGEST_PREFIX)).name
