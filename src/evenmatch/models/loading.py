"""Load models and tokenizers from a checkpoint folder, verified and without running its code.

`load_auto_model` uses transformers. `load_bert` and `load_bert_tokenizer` read plain BERT
checkpoints without transformers, and return None for all others. The rest keeps transformers quiet
(`quiet_transformers`) and limits the memory of a long-running process (`limit_kernel_cache`,
`trim_memory`).
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

_WEIGHTS_FILE = "model.safetensors"
_TOKENIZER_FILE = "tokenizer.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"

# Settings that a plain BERT has with exactly these values, or not at all.
_PLAIN_CONFIG = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
}

# Settings of tokenizer_config.json that override the normalizer in tokenizer.json in transformers,
# and their names in the normalizer.
_NORMALIZER_OVERRIDES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}

_CACHE_VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_CACHE_CAPACITY = "64"


def load_auto_model(
    kind: str, checkpoint: Checkpoint, trust_remote_code: bool, *, outputs: int = 0
) -> tuple[Any, Mapping[str, Any]]:
    """Load a model with one of transformers' Auto classes; return it with its loading info.

    Pickles are loaded with `weights_only`: a file that would run code is refused. `outputs` is the
    number of outputs of a head, which is new if the checkpoint has none.
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
    model, loading_info = loaded
    return model, loading_info


def unsafe_pickle_error(place: str) -> DataError:
    """Return the error for a pickle that contains anything but tensors."""
    return DataError(
        f"the pickle in {place} contains more than weights and is not loaded; "
        "give weights as safetensors, or as a pickle that torch reads with weights_only=True"
    )


def move_to_device(model: Any, device: str) -> Any:
    """Move a model to a device."""
    limit_kernel_cache()
    try:
        return model.to(device)
    except (AssertionError, RuntimeError) as error:  # torch raises these for an unknown device
        reason = str(error).strip().splitlines()[0][:160]
        raise InputError(
            f"torch cannot use the device {device!r} ({reason}); use one it has, such as 'cpu'"
        ) from None


def load_bert(checkpoint: Checkpoint) -> Any | None:
    """Load a plain BERT, verified and in evaluation mode; None if it needs transformers."""
    path = checkpoint.folder / _WEIGHTS_FILE
    if not (_is_plain_bert(checkpoint) and path.is_file()):
        return None
    verify_checkpoint(checkpoint)
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from evenmatch.models.fast_bert import Bert, BertConfig, BertWeights, matches_config
    except ImportError:
        return None  # `load_auto_model` then says what to install
    try:
        weights = {name.removeprefix("bert."): w for name, w in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise loading_error(checkpoint, error) from None
    config = read_config(checkpoint.folder)
    try:
        settings: dict[str, Any] = {f.name: config[f.name] for f in dataclasses.fields(BertConfig)}
        bert_config, bert_weights = BertConfig(**settings), BertWeights(weights)
        if not matches_config(bert_config, bert_weights):
            return None
        return Bert(bert_config, bert_weights).eval()
    except KeyError:  # a setting or a weight has another name
        return None


def load_bert_tokenizer(checkpoint: Checkpoint) -> tuple[Any, str, str] | None:
    """Load the tokenizer of a plain BERT, with the names of its unknown and padding tokens.

    None if it needs transformers.
    """
    path = checkpoint.folder / _TOKENIZER_FILE
    if not (_is_plain_bert(checkpoint) and path.is_file()):
        return None
    config = _read_json(checkpoint.folder / _TOKENIZER_CONFIG)
    unknown, padding = config.get("unk_token"), config.get("pad_token")
    if not isinstance(unknown, str) or not isinstance(padding, str) or "auto_map" in config:
        return None
    normalizer = _read_json(path).get("normalizer") or {}
    if any(
        config.get(setting, normalizer.get(name)) != normalizer.get(name)
        for setting, name in _NORMALIZER_OVERRIDES.items()
    ):
        return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    return Tokenizer.from_file(str(path)), unknown, padding


def _is_plain_bert(checkpoint: Checkpoint) -> bool:
    config = read_config(checkpoint.folder)
    # A checkpoint with custom code is left to transformers, which checks trust_remote_code.
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
    """Import transformers and silence its warnings, such as those about unused weights."""
    with warnings.catch_warnings():
        # Future changes of transformers and torch do not concern users who only score texts.
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
    logging: Any = untyped  # its functions have no type annotations
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


def limit_kernel_cache() -> None:
    """Limit how many compiled kernels oneDNN keeps; must be called before a model runs.

    oneDNN compiles a kernel for each batch shape and keeps 1024 of them, so memory grows for
    minutes. Under load a server grew from 726 to 871 MB in two and a half minutes; with this limit
    it stayed at about 730 MB. Without it, a run of 16,000 pairs took a quarter more memory than one
    of 4,000. The limit costs no measurable time. A value set by the user is kept.
    """
    os.environ.setdefault(_CACHE_VARIABLE, _CACHE_CAPACITY)


def torch_is_loaded() -> bool:
    """Whether torch is imported, and so a model may have run in this process."""
    return "torch" in sys.modules


def trim_memory() -> None:
    """Return freed memory to the system (glibc's malloc_trim); does nothing elsewhere.

    A model's temporary arrays have many sizes and leave holes that glibc keeps. Over many chunks,
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
