"""Folders of plain BERT models, read without transformers; None where it has to read them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from evenmatch.errors import DataError
from evenmatch.vectors.checkpoints import Checkpoint, read_config, unreadable, verify

_WEIGHTS, _TOKENIZER, _SAID = "model.safetensors", "tokenizer.json", "tokenizer_config.json"
# A setting that makes a model other than plain, unless it has this value.
_PLAIN = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
}
# What transformers lets a tokenizer's config overrule, and its name in the tokenizer itself.
_OVERRULED = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


def load_bert(checkpoint: Checkpoint) -> Any | None:
    """The model of a folder in evaluation mode, verified."""
    path = checkpoint.folder / _WEIGHTS
    if not (_is_plain(checkpoint) and path.is_file()):
        return None
    verify(checkpoint)
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from evenmatch.vectors import bert
    except ImportError:
        return None  # transformers' loading says what to install
    try:
        weights = {name.removeprefix("bert."): w for name, w in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise unreadable(checkpoint, error) from None
    config = read_config(checkpoint.folder)
    try:
        sizes: dict[str, Any] = {f.name: config[f.name] for f in dataclasses.fields(bert.Shape)}
        shape, own = bert.Shape(**sizes), bert.Weights(weights)
        return bert.Bert(shape, own).eval() if bert.fits(shape, own) else None
    except KeyError:  # a size or a weight goes by another name
        return None


def load_bert_tokenizer(checkpoint: Checkpoint) -> tuple[Any, str, str] | None:
    """The tokenizer of a folder, and what it calls the unknown and the padding token."""
    path = checkpoint.folder / _TOKENIZER
    if not (_is_plain(checkpoint) and path.is_file()):
        return None
    said = _read(checkpoint.folder / _SAID)
    unknown, padding = said.get("unk_token"), said.get("pad_token")
    if not isinstance(unknown, str) or not isinstance(padding, str) or "auto_map" in said:
        return None
    normalizer = _read(path).get("normalizer") or {}
    if any(
        said.get(its, normalizer.get(own)) != normalizer.get(own) for its, own in _OVERRULED.items()
    ):
        return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    return Tokenizer.from_file(str(path)), unknown, padding


def _is_plain(checkpoint: Checkpoint) -> bool:
    config = read_config(checkpoint.folder)
    # A folder that brings code of its own is for transformers, which asks whether it is trusted.
    known = "auto_map" not in config and config.get("model_type") == "bert"
    return known and all(config.get(key, value) == value for key, value in _PLAIN.items())


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    return found
