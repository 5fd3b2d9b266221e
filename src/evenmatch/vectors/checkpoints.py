"""Models by name, folder or content: where each lies, and what exactly it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import DataError, InputError, MissingExtraError, UnknownNameError
from evenmatch.storage import contents
from evenmatch.storage.contents import BY_CONTENT
from evenmatch.storage.folders import models_dir
from evenmatch.storage.packages import EMBEDDED, Package, file_sha256, unpack
from evenmatch.vectors.quantized import convert

# What a model is: its weights, its shape, its tokenizer, and code of its own where it has some
# (which runs for who trusts it). Read-mes and the like are not.
_ESSENTIAL = ("*.safetensors", "*.bin", "*.json", "*.model", "*.py", "vocab.*", "merges.txt")


_may_fetch: ContextVar[bool] = ContextVar("may_fetch", default=True)


@contextmanager
def without_downloads() -> Iterator[None]:
    """Within this block a model that is not on this machine is not looked for elsewhere."""
    before = _may_fetch.set(False)
    try:
        yield
    finally:
        _may_fetch.reset(before)


_found: ContextVar[dict[str, Checkpoint] | None] = ContextVar("found", default=None)


@contextmanager
def each_found_once() -> Iterator[None]:
    """Within this block a model is looked up once: to know what it is takes a dozen files' facts.

    A job then speaks of one content from its first batch to its signature.
    """
    before = _found.set({})
    try:
        yield
    finally:
        _found.reset(before)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on this disk: the name people use, its folder, and a hash of its content."""

    name: str
    folder: Path
    digest: str

    @property
    def spoken(self) -> str:
        """What to call it when speaking to its user: a folder's path, not its hash."""
        return str(self.folder) if self.name.startswith(BY_CONTENT) else self.name

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash, as signatures show it."""
        return f"{self.name.removeprefix(BY_CONTENT)}@{self.digest[:12]}"


def find(model: str) -> Checkpoint:
    """The model of that name, folder or content hash, wherever it lies on this machine."""
    known = _found.get()
    if known is None:
        return _find(model)
    if model not in known:
        known[model] = _find(model)
    return known[model]


def _find(model: str) -> Checkpoint:
    if not model:
        raise InputError("a model must be named; the embedded one is 'minilm'")
    if model.startswith(BY_CONTENT):
        return _by_content(model)
    if model in EMBEDDED:
        if EMBEDDED[model].kind != "model":
            raise InputError(
                f"{model!r} is of kind {EMBEDDED[model].kind}, not a model; "
                "the embedded model is 'minilm'"
            )
        folder = find_embedded(model)
        return Checkpoint(model, folder, _digest(folder))
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise DataError(f"{model} holds no config.json; give the folder of a saved model")
        digest = _digest(folder)
        found = Checkpoint(f"{BY_CONTENT}{digest[:16]}", folder, digest)
        contents.remember("models", found.name, folder)
        return found
    if folder.is_absolute() or model.startswith(("./", "../", "~")):
        raise DataError(f"there is no folder {model}; give the folder of a saved model")
    folder = _from_hub(model)
    return Checkpoint(model, folder, _digest(folder))


def find_embedded(name: str) -> Path:
    """The folder of an embedded model, or of data that came the same way."""
    folder = models_dir() / name
    if not EMBEDDED[name].present(folder):
        raise DataError(
            f"the {EMBEDDED[name].kind} {name!r} is not in {models_dir()}; "
            f"fetch it with: evenmatch models get {name}"
        )
    return folder


def read_config(folder: Path) -> dict[str, object]:
    """A model's config.json."""
    try:
        config: dict[str, object] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {folder / 'config.json'}: {error}") from None
    return config


def verify(checkpoint: Checkpoint) -> None:
    """Refuse an embedded model whose weights are not the published ones."""
    if checkpoint.name in EMBEDDED:
        verify_embedded(checkpoint.name, checkpoint.folder)


def verify_embedded(name: str, folder: Path) -> None:
    """Refuse a folder whose files are not those published under that name."""
    package = EMBEDDED[name]
    if not package.sound(folder):
        what = "weights" if package.kind == "model" else "files"
        raise DataError(
            f"the {what} in {folder} are not the published ones; "
            f"fetch them again with: evenmatch models get {name} --again"
        )


def unreadable(checkpoint: Checkpoint, error: Exception) -> Exception:
    """The one-line form of whatever was said when a model was loaded."""
    first = str(error).strip().splitlines()[0][:200] if str(error).strip() else repr(error)
    if "trust_remote_code" in str(error):
        return InputError(
            f"{checkpoint.spoken} wants to run code of its own; "
            "if you trust its makers, say trust_remote_code=True"
        )
    return DataError(f"cannot load the model in {checkpoint.folder}: {first}")


def get(name: str, *, again: bool = False) -> Path:
    """Fetch an embedded model or data by package name, verify and unpack it; returns its folder."""
    if name not in EMBEDDED:
        raise UnknownNameError(
            f"no embedded model is called {name!r}; known: {', '.join(EMBEDDED)}"
        )
    target = models_dir() / name
    if not again and EMBEDDED[name].present(target):
        verify_embedded(name, target)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        unpacked = unpack(EMBEDDED[name], Path(temporary))
        verify_embedded(name, unpacked)
        if EMBEDDED[name].unpacked:
            convert(unpacked / EMBEDDED[name].files[0])
        # The finished folder appears at once or not at all.
        shutil.rmtree(target, ignore_errors=True)
        try:
            os.replace(unpacked, target)
        except OSError:
            verify_embedded(name, target)  # another process was first
    return target


def _from_hub(model: str) -> Path:
    """The folder of a Hugging Face model, downloaded where the hub may be reached."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ImportError:
        raise MissingExtraError(
            "models by name need transformers; install them with: pip install 'evenmatch[torch]'"
        ) from None
    patterns = [p for p in _ESSENTIAL if p != "*.bin"]
    for local in (True, False) if _may_fetch.get() else (True,):
        try:
            folder = Path(snapshot_download(model, allow_patterns=patterns, local_files_only=local))
            if not any(folder.glob("*.safetensors")):
                more = [*patterns, "pytorch_model*.bin"]
                folder = Path(snapshot_download(model, allow_patterns=more, local_files_only=local))
            return folder
        except HFValidationError:
            raise UnknownNameError(
                f"{model!r} is neither a folder here nor a Hugging Face name; "
                f"embedded models: {', '.join(EMBEDDED)}"
            ) from None
        except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
            reason = str(error).strip().splitlines()[0][:160]
    if not _may_fetch.get():
        raise DataError(f"the model {model!r} is not on this machine, and was not to be fetched")
    raise DataError(
        f"the model {model!r} is not on this machine and cannot be fetched ({reason}); "
        "give a folder that holds it, or use the embedded 'minilm'"
    )


def _digest(folder: Path) -> str:
    """One hash over the files that make the model what it is."""
    files = sorted({path for pattern in _ESSENTIAL for path in folder.glob(pattern)})
    return contents.digest(
        files,
        lambda: hashlib.sha256(
            "".join(f"{path.name}\0{file_sha256(path)}\n" for path in files).encode()
        ).hexdigest(),
    )


def _by_content(model: str) -> Checkpoint:
    folder = contents.recall("models", model)
    if folder is not None and folder.is_dir():
        digest = _digest(folder)
        if digest.startswith(model.removeprefix(BY_CONTENT)):
            return Checkpoint(model, folder, digest)
    raise DataError(
        f"no model with the content {model} has been used on this machine; "
        "give the folder that holds it instead"
    )


def installed() -> Iterator[tuple[str, Package, bool]]:
    """Each embedded model, and the data, with whether it is here."""
    for name, package in EMBEDDED.items():
        yield name, package, package.present(models_dir() / name)
