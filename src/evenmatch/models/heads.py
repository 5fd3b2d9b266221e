"""Whole models with the head they were trained with: language models and regression models.

`HeadedModel` loads one, with an adapter if wanted, and checks that the checkpoint has the head.
`find_weights` and `pin_weights` handle a separate file of weights.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenmatch.errors import DataError, InputError
from evenmatch.files import DIGEST_PREFIX, file_digest, recall_path
from evenmatch.models.adapters import insert_adapter, load_adapter
from evenmatch.models.backbone import find_stack
from evenmatch.models.checkpoints import Checkpoint, LocalFile, pin_file, read_config
from evenmatch.models.loading import load_auto_model, move_to_device, unsafe_pickle_error

HeadType: TypeAlias = Literal["seq2seq", "causal", "regression"]

_AUTO_CLASSES = {
    "seq2seq": "AutoModelForSeq2SeqLM",
    "causal": "AutoModelForCausalLM",
    "regression": "AutoModelForSequenceClassification",
}


def language_model_head(checkpoint: Checkpoint) -> HeadType:
    """Whether a language model is an encoder-decoder ('seq2seq') or decoder-only ('causal')."""
    return "seq2seq" if read_config(checkpoint.folder).get("is_encoder_decoder") else "causal"


@dataclass(frozen=True)
class HeadedModel:
    """A model with a head, and how to load it; `weights` is a file to load over its own."""

    checkpoint: Checkpoint
    head: HeadType
    trust_remote_code: bool = False
    device: str = "cpu"
    weights: str = ""

    def copy_blocks(self) -> HeadedBlocks:
        """Return a copy of the model to attach hooks to; it shares only the weights."""
        model = _load_model(self)
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        clone = copy.deepcopy(model, shared)
        return HeadedBlocks(clone, [block for stack in block_lists(clone) for block in stack])

    def with_adapter(self, adapter: LocalFile | None) -> Any:
        """Load the model with an adapter attached; None gives the model itself."""
        return _load_adapted(self, adapter) if adapter else _load_model(self)


@dataclass(frozen=True, eq=False)
class HeadedBlocks:
    """A model with its head, and its blocks: the encoder's first, then the decoder's."""

    module: Any
    stack: list[Any]


@lru_cache(maxsize=2)
def _load_model(headed: HeadedModel) -> Any:
    """Load a model with its head, in evaluation mode; callers share it."""
    name = headed.checkpoint.display_name
    model, loading_info = load_auto_model(
        _AUTO_CLASSES[headed.head], headed.checkpoint, headed.trust_remote_code
    )
    if absent := sorted(loading_info["missing_keys"]):
        what = "predict text" if headed.head != "regression" else "give a number"
        raise DataError(
            f"{name} was not trained to {what}: it lacks {absent[0]}; name a model with that head"
        )
    if headed.head == "regression" and model.config.num_labels != 1:
        raise InputError(
            f"{name} gives {model.config.num_labels} numbers for a pair; "
            "name a model that gives one"
        )
    if headed.weights:
        _load_weights(model, find_weights(headed.weights))
    return move_to_device(model.eval().requires_grad_(False), headed.device)


@lru_cache(maxsize=2)
def _load_adapted(headed: HeadedModel, adapter: LocalFile) -> Any:
    blocks = headed.copy_blocks()
    # The hooks are never removed: the shared model has none.
    insert_adapter(blocks.module, blocks.stack, load_adapter(adapter))
    return blocks.module


def pin_weights(weights: str) -> str:
    """Return the content hash of a weights file; remember its path, so that it is found again."""
    if not weights or weights.startswith(DIGEST_PREFIX):
        return weights
    return pin_file("weights", find_weights(weights)).name


def find_weights(weights: str) -> Path:
    """Find a weights file by path or by content hash."""
    by_content = weights.startswith(DIGEST_PREFIX)
    path = recall_path("weights", weights) if by_content else Path(weights).expanduser()
    if path is None or not path.is_file():
        raise DataError(f"there is no weights file {weights}; give a .safetensors or .pth file")
    if by_content and not file_digest(path).startswith(weights.removeprefix(DIGEST_PREFIX)):
        raise DataError(f"{path} no longer holds the weights {weights}; give the file that does")
    return path


def _load_weights(model: Any, path: Path) -> None:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            tensors = load_file(path)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise unsafe_pickle_error(str(path)) from None
    except (OSError, SafetensorError, EOFError) as error:
        raise DataError(f"cannot read the weights in {path}: {error}") from None
    try:
        # Strict loading: with only some weights replaced the model would be a mixture of two.
        model.load_state_dict(tensors)
    except (RuntimeError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise DataError(f"the weights in {path} do not fit the model: {reason}") from None


def block_lists(model: Any) -> Iterator[Any]:
    """Yield the model's lists of blocks, from the lowest."""
    config = model.config
    parts = [(model.base_model, config.num_hidden_layers)]
    if config.is_encoder_decoder:
        above = getattr(config, "decoder_layers", 0) or config.num_decoder_layers
        parts = [(model.get_encoder(), config.num_hidden_layers), (model.get_decoder(), above)]
    for part, count in parts:
        owner, name = find_stack(part, count)
        if owner is None:
            raise InputError(
                f"models of type {config.model_type!r} do not support adapters: "
                "their blocks share one set of weights"
            )
        yield getattr(owner, name)
