"""Load models and tokenizers from a checkpoint folder, verified and without running its code.

`load_auto_model` uses transformers. `load_packed_model`, `read_input_embeddings` and
`load_bert_tokenizer` read plain checkpoints without transformers, and return None for all others.
The rest keeps transformers quiet
(`quiet_transformers`) and limits the memory of a long-running process (`limit_kernel_cache`,
`trim_memory`) or its time (`keep_freed_memory`).
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

from evenmatch.errors import DataError, InputError, needs_extra
from evenmatch.models.checkpoints import Checkpoint, loading_error, read_config, verify_checkpoint
from evenmatch.types import Array

# Settings that a plain BERT has with exactly these values, or not at all.
_PLAIN_CONFIG = {
    **dict.fromkeys(("hidden_act", "hidden_activation", "activation"), "gelu"),
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


def load_packed_model(checkpoint: Checkpoint) -> Any | None:
    """Load a model of `fast_bert`, verified and in evaluation mode; None if it needs transformers.

    That module takes texts of several lengths without padding.
    """
    config, path = read_config(checkpoint.folder), checkpoint.folder / _WEIGHTS_FILE
    family = _find_plain_family(checkpoint, config)
    if family is None:
        return None
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from evenmatch.models import fast_bert
    except ImportError:
        return None  # `load_auto_model` then says what to install
    try:
        weights = {family.rename(name): w.float() for name, w in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise loading_error(checkpoint, error) from None
    try:
        return fast_bert.build_model(family.settings(config), weights)
    except KeyError:  # a setting or a weight has another name
        return None


def read_input_embeddings(checkpoint: Checkpoint) -> Array | None:
    """Read the input embedding matrix of a plain checkpoint alone, without torch.

    None if the checkpoint needs transformers, or has weights of a type that numpy lacks.
    """
    family = _find_plain_family(checkpoint, read_config(checkpoint.folder))
    if family is None:
        return None
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        return None  # `load_auto_model` then says what to install
    try:
        with safe_open(checkpoint.folder / _WEIGHTS_FILE, framework="np") as file:
            names = [n for n in file.keys() if family.rename(n) == _INPUT_EMBEDDINGS]  # noqa: SIM118
            return file.get_tensor(names[0]).astype(np.float32) if names else None
    except TypeError:  # bfloat16
        return None
    except (OSError, SafetensorError) as error:
        raise loading_error(checkpoint, error) from None


def _find_plain_family(checkpoint: Checkpoint, config: Mapping[str, Any]) -> _Family | None:
    """Return the family of a checkpoint that can be read without transformers, and verify it."""
    family = _FAMILIES.get(str(config.get("model_type")))
    if family is None or not _is_plain(config) or not (checkpoint.folder / _WEIGHTS_FILE).is_file():
        return None
    verify_checkpoint(checkpoint)
    return family


@dataclasses.dataclass(frozen=True, slots=True)
class _Family:
    """How a family of models differs from BERT in the names of its weights and settings."""

    prefix: str
    weights: Mapping[str, str] = dataclasses.field(default_factory=dict)
    config: Mapping[str, str] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def rename(self, name: str) -> str:
        """Return BERT's name of a weight."""
        name = name.removeprefix(self.prefix)
        for own, berts in self.weights.items():
            name = name.replace(own, berts)
        return name

    def settings(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings under BERT's names."""
        renamed = {self.config.get(key, key): value for key, value in config.items()}
        return {**self.defaults, **renamed}


_WEIGHTS_FILE = "model.safetensors"
_INPUT_EMBEDDINGS = "embeddings.word_embeddings.weight"
_ROBERTA = _Family("roberta.", defaults={"positions": "after_padding"})
_FAMILIES: Mapping[str, _Family] = {
    "bert": _Family("bert."),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "electra": _Family("electra."),
    "distilbert": _Family(
        "distilbert.",
        {
            "transformer.layer": "encoder.layer",
            "attention.q_lin": "attention.self.query",
            "attention.k_lin": "attention.self.key",
            "attention.v_lin": "attention.self.value",
            "attention.out_lin": "attention.output.dense",
            "sa_layer_norm": "attention.output.LayerNorm",
            "ffn.lin1": "intermediate.dense",
            "ffn.lin2": "output.dense",
            "output_layer_norm": "output.LayerNorm",
        },
        {"dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads"},
        {"layer_norm_eps": 1e-12},
    ),
    "mpnet": _Family(
        "mpnet.",
        {
            "attention.attn.q.": "attention.self.query.",
            "attention.attn.k.": "attention.self.key.",
            "attention.attn.v.": "attention.self.value.",
            "attention.attn.o.": "attention.output.dense.",
            "attention.LayerNorm": "attention.output.LayerNorm",
        },
        defaults={"positions": "after_padding"},
    ),
    "modernbert": _Family("model.", config={"norm_eps": "layer_norm_eps"}),
}


def load_bert_tokenizer(checkpoint: Checkpoint) -> tuple[Any, str, str] | None:
    """Load the tokenizer of a plain BERT, with the names of its unknown and padding tokens.

    None if it needs transformers.
    """
    folder, settings = checkpoint.folder, read_config(checkpoint.folder)
    names = ("tokenizer.json", "tokenizer_config.json")
    if settings.get("model_type") != "bert" or not _is_plain(settings):
        return None
    if not all((folder / name).is_file() for name in names):
        return None
    config = read_config(folder, "tokenizer_config.json")
    unknown, padding = config.get("unk_token"), config.get("pad_token")
    if not isinstance(unknown, str) or not isinstance(padding, str) or "auto_map" in config:
        return None
    normalizer = read_config(folder, "tokenizer.json").get("normalizer") or {}
    if any(
        config.get(setting, normalizer.get(name)) != normalizer.get(name)
        for setting, name in _NORMALIZER_OVERRIDES.items()
    ):
        return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    return Tokenizer.from_file(str(folder / "tokenizer.json")), unknown, padding


def _is_plain(config: Mapping[str, Any]) -> bool:
    # A checkpoint with custom code is left to transformers, which checks trust_remote_code.
    return "auto_map" not in config and all(
        config.get(key, value) == value for key, value in _PLAIN_CONFIG.items()
    )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Import transformers and silence its warnings, such as those about unused weights."""
    with warnings.catch_warnings():
        # Future changes of transformers and torch do not concern users who only score texts.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        with needs_extra(
            "pretrained models need torch and transformers; "
            "install them with: pip install 'evenmatch[torch]'"
        ):
            import torch  # noqa: F401
            from transformers.utils import logging as untyped
        logging: Any = untyped  # its functions have no type annotations
        before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
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
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


def torch_is_loaded() -> bool:
    """Whether torch is imported, and so a model may have run in this process."""
    return "torch" in sys.modules


@cache
def keep_freed_memory() -> None:
    """Have glibc reuse up to 64 MB of freed memory instead of returning it to the system.

    Otherwise the arrays of a small chunk are returned with the chunk, and the pages of the next one
    are new: that takes a tenth of the time of a warm run. Freeing a block raises glibc's threshold
    for returning memory to twice the size of the block, which counts if it is below 32 MB.
    """
    np.empty((32 << 20) - (1 << 16), np.uint8)


def trim_memory() -> None:
    """Return freed memory to the system (glibc's malloc_trim); does nothing elsewhere.

    A model's temporary arrays have many sizes and leave holes that glibc keeps. Over many chunks,
    or in a server that runs for days, they add up.
    """
    if sys.platform.startswith("linux"):
        import ctypes

        with suppress(AttributeError):  # another libc
            ctypes.CDLL(None).malloc_trim(0)
