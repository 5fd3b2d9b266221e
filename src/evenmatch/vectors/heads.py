"""Whole models, with the head they were trained with: to predict text, or to give a number."""

from __future__ import annotations

import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenmatch.errors import DataError, InputError
from evenmatch.storage.contents import BY_CONTENT, file_digest, recall, remember
from evenmatch.vectors.checkpoints import Checkpoint, read_config
from evenmatch.vectors.loading import load_auto, placed, unsafe

Head: TypeAlias = Literal["seq2seq", "causal", "regression"]
_AUTO = {
    "seq2seq": "AutoModelForSeq2SeqLM",
    "causal": "AutoModelForCausalLM",
    "regression": "AutoModelForSequenceClassification",
}


def language_head(checkpoint: Checkpoint) -> Head:
    """Whether a model reads with an encoder and writes with a decoder, or does both in one."""
    return "seq2seq" if read_config(checkpoint.folder).get("is_encoder_decoder") else "causal"


@lru_cache(maxsize=2)
def load_headed(
    checkpoint: Checkpoint, head: Head, trust_remote_code: bool, device: str, weights: str = ""
) -> Any:
    """A model with its head, in evaluation mode; `weights` is a file to load over its own."""
    model, told = load_auto(_AUTO[head], checkpoint, trust_remote_code)
    if absent := sorted(told["missing_keys"]):
        what = "predict text" if head != "regression" else "give a number"
        raise DataError(
            f"{checkpoint.spoken} was not trained to {what}: it lacks {absent[0]}; "
            "name a model with that head"
        )
    if head == "regression" and model.config.num_labels != 1:
        raise InputError(
            f"{checkpoint.spoken} gives {model.config.num_labels} numbers for a pair; "
            "name a model that gives one"
        )
    if weights:
        _load_over(model, find_weights(weights))
    return placed(model.eval().requires_grad_(False), device)


def name_weights(weights: str) -> str:
    """A file of weights by its content, remembered so that a signature can be rebuilt."""
    if not weights or weights.startswith(BY_CONTENT):
        return weights
    path = find_weights(weights)
    name = f"{BY_CONTENT}{file_digest(path)[:16]}"
    remember("weights", name, path)
    return name


def find_weights(weights: str) -> Path:
    """Where a file of weights lies, by path or by content."""
    by_content = weights.startswith(BY_CONTENT)
    path = recall("weights", weights) if by_content else Path(weights).expanduser()
    if path is None or not path.is_file():
        raise DataError(f"there is no file of weights {weights}; give a .safetensors or .pth file")
    if by_content and not file_digest(path).startswith(weights.removeprefix(BY_CONTENT)):
        raise DataError(f"{path} no longer holds the weights {weights}; give the file that does")
    return path


def _load_over(model: Any, path: Path) -> None:
    try:
        # Strictly: a weight that finds no place would leave a model that is neither of the two.
        model.load_state_dict(_tensors(path))
    except (RuntimeError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise DataError(f"the weights in {path} do not fit the model: {reason}") from None


def _tensors(path: Path) -> Any:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise unsafe(str(path)) from None
    except (OSError, SafetensorError, EOFError) as error:
        raise DataError(f"cannot read the weights in {path}: {error}") from None
