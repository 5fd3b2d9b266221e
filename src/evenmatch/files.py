"""Folders, content hashes and safe writes.

- `models_dir` and `cache_dir`: where models and cached results are stored.
- `file_digest`, `folder_digest` and `cached_digest`: SHA-256 of files, cached until one changes.
- `remember_path`, `recall_path` and `recall_unchanged`: find a file again by its content hash.
- `write_atomic` and `try_write_text`: writes that never leave a partial file.
- `hold_lock`: keeps other processes out of a folder.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from evenmatch.errors import DataError

DIGEST_PREFIX = "sha256:"
_SETTLED_SECONDS = 2.0


def models_dir() -> Path:
    """Return the folder of embedded models: EVENMATCH_MODELS, or one in the user's cache."""
    return _resolve_dir("EVENMATCH_MODELS", "models")


def cache_dir() -> Path:
    """Return the folder of cached vectors and tables: EVENMATCH_CACHE, or the user's cache."""
    return _resolve_dir("EVENMATCH_CACHE", "vectors")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, cached until its size or modification time changes."""
    return cached_digest([path], lambda: file_sha256(path))


def folder_digest(folder: Path) -> str:
    """Return one SHA-256 over the files of a folder and their names, without compiled Python."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc")
    return cached_digest(files, lambda: hash_files({str(p.relative_to(folder)): p for p in files}))


def hash_files(files: Mapping[str, Path]) -> str:
    """Compute one SHA-256 over files by name."""
    lines = (f"{name}\0{file_sha256(path)}\n" for name, path in files.items())
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def cached_digest(files: Sequence[Path], compute: Callable[[], str]) -> str:
    """Return `compute()`, cached until the size or a time stamp of one of `files` changes.

    Nothing is cached for files changed in the last seconds: they may change again within the
    resolution of the time stamps.
    """
    found = [path.stat() for path in files]
    state = [
        (str(path.resolve()), each.st_size, each.st_mtime_ns, each.st_ctime_ns)
        for path, each in zip(files, found, strict=True)
    ]
    memo = cache_dir() / "digests" / hashlib.sha256(repr(state).encode()).hexdigest()
    with suppress(OSError, ValueError):
        digest, check = memo.read_text("ascii").split()
        if check == _check_digits(memo.name, digest):
            return digest
    digest = compute()
    if time.time() - max((each.st_ctime for each in found), default=0.0) > _SETTLED_SECONDS:
        try_write_text(memo, f"{digest} {_check_digits(memo.name, digest)}")
    return digest


def _check_digits(name: str, digest: str) -> str:
    return hashlib.sha256(f"{name} {digest}".encode()).hexdigest()[:16]


def file_sha256(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remember_path(kind: str, path: Path, digest: str) -> str:
    """Record where content was found, so that signatures can name it; return that name."""
    name = f"{DIGEST_PREFIX}{digest[:16]}"
    if recall_path(kind, name) != path.resolve():
        try_write_text(_record_path(kind, name), str(path.resolve()))
    return name


def recall_path(kind: str, name: str) -> Path | None:
    """Return where content was last found; the file may have moved or changed since."""
    with suppress(OSError, ValueError):
        return Path(_record_path(kind, name).read_text("utf-8"))
    return None


def recall_unchanged(kind: str, name: str, digest: Callable[[Path], str]) -> Path | None:
    """Return where content was last found; None if it is no longer there."""
    path = recall_path(kind, name)
    unchanged = path and path.exists() and digest(path).startswith(name.removeprefix(DIGEST_PREFIX))
    return path if unchanged else None


def write_atomic(path: Path, data: bytes) -> None:
    """Write to a temporary file in the same folder, sync it, and rename it to `path`."""
    temporary = temporary_path(path)
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
        temporary = temporary_path(path)
        try:
            temporary.write_text(text, "utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a name beside `path` to write to before renaming; remove those of killed processes."""
    prefix = f".{path.name}.{platform.node()}."
    for left in path.parent.glob(f"{escape(prefix)}*"):
        owner = left.name.removeprefix(prefix).partition("-")[0]
        if owner.isdecimal() and not _is_running(int(owner)):
            left.unlink(missing_ok=True)
    return path.with_name(f"{prefix}{os.getpid()}-{threading.get_ident()}")


def set_ordinary_modes(folder: Path) -> None:
    """Give files the mode of any file that the user creates; safetensors writes private ones."""
    probe = temporary_path(folder / "mode")
    probe.touch()
    mode = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for path in folder.iterdir():
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


@contextmanager
def explain_failed_write(path: Path) -> Iterator[None]:
    """Turn the errors of torch and safetensors on a full disk into a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from None
    except Exception as error:
        if not isinstance(error, RuntimeError) and type(error).__name__ != "SafetensorError":
            raise
        why = str(error).strip().splitlines()[0][:200] if str(error).strip() else "no reason given"
        raise DataError(f"cannot write {path} ({why}); is the disk full?") from None


@contextmanager
def hold_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file, which stays; without `wait`, raise BlockingIOError if another holds it."""
    with path.open("ab") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


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


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _record_path(kind: str, name: str) -> Path:
    return cache_dir() / f"known-{kind}" / Path(name.removeprefix(DIGEST_PREFIX)).name
