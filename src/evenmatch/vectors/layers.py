"""Which layer to read: what is known of models, and the rule for the others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.vectors.checkpoints import Checkpoint, read_config

Layer: TypeAlias = int | Literal["auto", "last"]

# The layer whose scores agree best with people. All but MiniLM's are bert_score's published
# choices on WMT16; MiniLM's was found on WMT15-16 (mean Pearson .661 at 4, .631 at 6).
GOOD_LAYERS: Mapping[str, int] = {
    "minilm": 4,
    "sentence-transformers/all-MiniLM-L6-v2": 4,
    "distilbert-base-uncased": 5,
    "bert-base-uncased": 9,
    "bert-base-cased": 9,
    "bert-base-multilingual-cased": 9,
    "bert-large-uncased": 18,
    "roberta-base": 10,
    "roberta-large": 17,
    "albert-base-v2": 9,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "facebook/bart-base": 6,
    "facebook/bart-large": 10,
    "facebook/bart-large-cnn": 10,
    "t5-small": 6,
    "microsoft/deberta-xlarge-mnli": 40,
    "microsoft/deberta-v2-xxlarge": 21,
    "SpanBERT/spanbert-base-cased": 8,
    "SpanBERT/spanbert-large-cased": 17,
}
_DEPTH_KEYS = ("num_hidden_layers", "encoder_layers", "n_layers", "num_layers", "n_layer")


def depth(checkpoint: Checkpoint) -> int:
    """How many transformer blocks a model's encoder has."""
    config = read_config(checkpoint.folder)
    found = next((config[key] for key in _DEPTH_KEYS if isinstance(config.get(key), int)), None)
    if not isinstance(found, int):
        raise InputError(f"the config of {checkpoint.name} does not say how many layers it has")
    return found


def resolve(layer: Layer, checkpoint: Checkpoint) -> int:
    """The number of the layer meant; 0 is the embeddings before the first block."""
    deepest = depth(checkpoint)
    if layer == "last":
        return deepest
    if layer == "auto":
        known = GOOD_LAYERS.get(checkpoint.name)
        return _rule(checkpoint, deepest) if known is None else known
    if not 0 <= layer <= deepest:
        raise InputError(f"{checkpoint.name} has layers 0 to {deepest}, got layer {layer}")
    return layer


def _rule(checkpoint: Checkpoint, deepest: int) -> int:
    """Three quarters of the depth: 9 of 12 and 18 of 24, where most known models are best."""
    chosen = max(1, 3 * deepest // 4)
    warnings.warn(
        f"no good layer is known for {checkpoint.name}; taking {chosen} of {deepest} "
        f"(three quarters); say layer={chosen} to silence this",
        stacklevel=2,
    )
    return chosen
