"""Choose the layer of a model to read.

`resolve_layer` turns a layer setting into a number. For 'auto' it takes the published best layer
(`BEST_LAYERS`); else the layer chosen by human ratings on this machine (`evenmatch choose-layer`
saves it under the content hash of the model); else three quarters of the depth, with a warning.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.files import cache_dir, try_write_text
from evenmatch.models.checkpoints import Checkpoint, read_config

Layer: TypeAlias = int | Literal["auto", "last"]


# The layer whose scores agree best with human ratings. MiniLM's was found on WMT15-16 (mean Pearson
# .661 at 4, .631 at 6), bert-base-cased uses that of bert-base-uncased, and the others are
# bert_score's published choices on WMT16.
BEST_LAYERS: Mapping[str, int] = {
    "minilm": 4,
    "sentence-transformers/all-MiniLM-L6-v2": 4,
    "bert-base-uncased": 9,
    "bert-base-cased": 9,
    "bert-base-cased-finetuned-mrpc": 9,
    "bert-base-chinese": 8,
    "bert-base-multilingual-cased": 9,
    "bert-large-uncased": 18,
    "dbmdz/bert-base-turkish-cased": 10,
    "allenai/scibert_scivocab_cased": 9,
    "allenai/scibert_scivocab_uncased": 8,
    "ProsusAI/finbert": 10,
    "SpanBERT/spanbert-base-cased": 8,
    "SpanBERT/spanbert-large-cased": 17,
    "distilbert-base-uncased": 5,
    "distilbert-base-uncased-distilled-squad": 4,
    "distilbert-base-multilingual-cased": 5,
    "distilroberta-base": 5,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "vinai/bertweet-base": 9,
    "microsoft/mpnet-base": 8,
    "albert-base-v1": 10,
    "albert-large-v1": 17,
    "albert-xlarge-v1": 16,
    "albert-xxlarge-v1": 8,
    "albert-base-v2": 9,
    "albert-large-v2": 14,
    "albert-xlarge-v2": 13,
    "albert-xxlarge-v2": 8,
    "google/electra-small-discriminator": 11,
    "google/electra-base-discriminator": 9,
    "google/electra-large-discriminator": 14,
    "microsoft/deberta-base": 9,
    "microsoft/deberta-base-mnli": 9,
    "microsoft/deberta-large": 16,
    "microsoft/deberta-large-mnli": 18,
    "microsoft/deberta-xlarge": 18,
    "microsoft/deberta-xlarge-mnli": 40,
    "microsoft/deberta-v2-xlarge": 10,
    "microsoft/deberta-v2-xlarge-mnli": 17,
    "microsoft/deberta-v2-xxlarge": 21,
    "microsoft/deberta-v2-xxlarge-mnli": 22,
    "microsoft/deberta-v3-xsmall": 10,
    "microsoft/deberta-v3-small": 4,
    "microsoft/deberta-v3-base": 9,
    "microsoft/deberta-v3-large": 12,
    "microsoft/mdeberta-v3-base": 10,
    "facebook/bart-base": 6,
    "facebook/bart-large": 10,
    "facebook/bart-large-cnn": 10,
    "facebook/bart-large-mnli": 11,
    "facebook/bart-large-xsum": 9,
    "t5-small": 6,
    "t5-base": 11,
    "t5-large": 23,
    "google/mt5-small": 8,
    "google/mt5-base": 11,
    "google/mt5-large": 19,
    "princeton-nlp/unsup-simcse-bert-base-uncased": 10,
    "princeton-nlp/unsup-simcse-roberta-large": 13,
    "princeton-nlp/sup-simcse-bert-base-uncased": 10,
    "princeton-nlp/sup-simcse-roberta-large": 16,
}


_DEPTH_KEYS = ("num_hidden_layers", "encoder_layers", "n_layers", "num_layers", "n_layer")


def count_layers(checkpoint: Checkpoint) -> int:
    """Return the number of transformer blocks in a model's encoder."""
    config = read_config(checkpoint.folder)
    found = next((config[key] for key in _DEPTH_KEYS if isinstance(config.get(key), int)), None)
    if not isinstance(found, int):
        raise InputError(
            f"the config of {checkpoint.display_name} does not say how many layers it has"
        )
    return found


def resolve_layer(layer: Layer, checkpoint: Checkpoint) -> int:
    """Return the number of a layer; 0 is the embeddings before the first block."""
    deepest = count_layers(checkpoint)
    if layer == "last":
        return deepest
    if layer == "auto":
        known = BEST_LAYERS.get(checkpoint.name)
        # Published layers come first, so that 'auto' means the same on every machine if possible.
        known = load_layer_choice(checkpoint, deepest) if known is None else known
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
    record = {"layer": layer, **facts}
    try_write_text(
        layer_choice_path(checkpoint), json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    )


def load_layer_choice(checkpoint: Checkpoint, deepest: int) -> int | None:
    """Return the layer chosen for a model of that content; None if there is no valid choice."""
    # Files that are unreadable, truncated or malformed count as absent.
    with suppress(OSError, ValueError, KeyError, TypeError):
        layer = json.loads(layer_choice_path(checkpoint).read_text("utf-8"))["layer"]
        if type(layer) is int and 0 <= layer <= deepest:
            return layer
    return None
