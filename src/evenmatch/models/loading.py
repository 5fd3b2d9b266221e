"""A model of transformers out of a folder: verified, safe to load, and put where it is to run.

Folders of plain BERT models, read without transformers; None where it has to read them.

transformers, late and without its chatter.

Memory that libraries keep for later, held down in a process that runs for long.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, InputError, MissingExtraError
from evenmatch.models.checkpoints import Checkpoint, loading_error, read_config, verify_checkpoint


def load_auto_model(
    kind: str, checkpoint: Checkpoint, trust_remote_code: bool, *, outputs: int = 0
) -> tuple[Any, Mapping[str, Any]]:
    """A model by one of transformers' Auto classes, and what it says of how loading went.

    Pickled weights are read as weights only: a file that would run code is refused. `outputs` asks
    for a head with so many numbers, new where the folder has none.
    """
    verify_checkpoint(checkpoint)
    with quiet_transformers():
        import torch
        import transformers
        from safetensors import SafetensorError

        try:
            loaded = getattr(transformers, kind).from_pretrained(
                str(checkpoint.folder),
                trust_remote_code=trust_remote_code,
                dtype=torch.float32,
                weights_only=True,
                output_loading_info=True,
                **({"num_labels": outputs} if outputs else {}),
            )
        except pickle.UnpicklingError:
            raise unsafe_pickle_error(str(checkpoint.folder)) from None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise loading_error(checkpoint, error) from None
    model, told = loaded
    return model, told


def unsafe_pickle_error(place: str) -> DataError:
    """What is said of a pickle that holds anything but tensors."""
    return DataError(
        f"the pickle in {place} holds more than weights and is not loaded; "
        "give weights as safetensors, or as a pickle that torch reads with weights_only=True"
    )


def move_to_device(model: Any, device: str) -> Any:
    """The model on that device."""
    limit_kernel_cache()
    try:
        return model.to(device)
    except (AssertionError, RuntimeError) as error:  # what torch raises for a device it lacks
        reason = str(error).strip().splitlines()[0][:160]
        raise InputError(
            f"torch cannot use the device {device!r} ({reason}); use one it has, such as 'cpu'"
        ) from None


_WEIGHTS_FILE, _TOKENIZER_FILE, _TOKENIZER_CONFIG = (
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
)


# A setting that makes a model other than plain, unless it has this value.
_PLAIN_CONFIG = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
}


# What transformers lets a tokenizer's config overrule, and its name in the tokenizer itself.
_NORMALIZER_OVERRIDES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


def load_bert(checkpoint: Checkpoint) -> Any | None:
    """The model of a folder in evaluation mode, verified."""
    path = checkpoint.folder / _WEIGHTS_FILE
    if not (_is_plain_bert(checkpoint) and path.is_file()):
        return None
    verify_checkpoint(checkpoint)
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from evenmatch.models.fast_bert import Bert, BertConfig, BertWeights, matches_config
    except ImportError:
        return None  # transformers' loading says what to install
    try:
        weights = {name.removeprefix("bert."): w for name, w in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise loading_error(checkpoint, error) from None
    config = read_config(checkpoint.folder)
    try:
        sizes: dict[str, Any] = {f.name: config[f.name] for f in dataclasses.fields(BertConfig)}
        shape, own = BertConfig(**sizes), BertWeights(weights)
        return Bert(shape, own).eval() if matches_config(shape, own) else None
    except KeyError:  # a size or a weight goes by another name
        return None


def load_bert_tokenizer(checkpoint: Checkpoint) -> tuple[Any, str, str] | None:
    """The tokenizer of a folder, and what it calls the unknown and the padding token."""
    path = checkpoint.folder / _TOKENIZER_FILE
    if not (_is_plain_bert(checkpoint) and path.is_file()):
        return None
    said = _read_json(checkpoint.folder / _TOKENIZER_CONFIG)
    unknown, padding = said.get("unk_token"), said.get("pad_token")
    if not isinstance(unknown, str) or not isinstance(padding, str) or "auto_map" in said:
        return None
    normalizer = _read_json(path).get("normalizer") or {}
    if any(
        said.get(its, normalizer.get(own)) != normalizer.get(own)
        for its, own in _NORMALIZER_OVERRIDES.items()
    ):
        return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    return Tokenizer.from_file(str(path)), unknown, padding


def _is_plain_bert(checkpoint: Checkpoint) -> bool:
    config = read_config(checkpoint.folder)
    # A folder that brings code of its own is for transformers, which asks whether it is trusted.
    known = "auto_map" not in config and config.get("model_type") == "bert"
    return known and all(config.get(key, value) == value for key, value in _PLAIN_CONFIG.items())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    return found


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Import transformers and hold back its warnings, such as those on weights we do not use."""
    with warnings.catch_warnings():
        # What it and torch mean to do otherwise one day is no concern of who only scores texts.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        with _quiet_logging():
            yield


@contextmanager
def _quiet_logging() -> Iterator[None]:
    try:
        import torch  # noqa: F401
        from transformers.utils import logging as untyped
    except ImportError:
        raise MissingExtraError(
            "pretrained models need torch and transformers; "
            "install them with: pip install 'evenmatch[torch]'"
        ) from None
    logging: Any = untyped  # its functions carry no types
    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


_CACHE_VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


_CACHE_CAPACITY = "64"


def limit_kernel_cache() -> None:
    """Let torch's matrix library keep few of the kernels it made; said before a model runs.

    It makes one for each shape of a batch and keeps 1024, which fill up for minutes: under load a
    server grew from 726 to 871 MB in two and a half minutes, and with this stayed at some 730 MB;
    a run of 16,000 pairs took a quarter more memory than one of 4,000. It costs no measurable
    time. Somebody who has set the variable is left alone.
    """
    os.environ.setdefault(_CACHE_VARIABLE, _CACHE_CAPACITY)


def torch_is_loaded() -> bool:
    """Whether a model may have run in this process; none does without torch."""
    return "torch" in sys.modules


def trim_memory() -> None:
    """Return pages that hold nothing any more; does nothing where the C library has no such call.

    A model's passing arrays are of every size and leave holes that glibc keeps. Over many windows,
    or in a server that runs for days, they add up.
    """
    trim = _find_malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _find_malloc_trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except AttributeError:  # another libc
        return None
    return found
