"""The head of a trained metric: weights over what it sees of two texts, in a file of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from evenmatch.errors import DataError
from evenmatch.types import Array
from evenmatch.vectors.checkpoints import Checkpoint

HEAD = "head.safetensors"
_KIND = "towers"


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A linear head: the layers it looks at, its weights and bias, and which way is good."""

    layers: tuple[int, ...]
    weights: Array
    bias: float
    higher_is_better: bool = True


def save_head(head: Head, folder: Path) -> None:
    """Write a head beside the encoder it belongs to."""
    from safetensors.numpy import save_file

    facts = {"layers": list(head.layers), "higher_is_better": head.higher_is_better}
    tensors = {
        "weights": np.asarray(head.weights, dtype=np.float32),
        "bias": np.array([head.bias], dtype=np.float32),
    }
    save_file(tensors, folder / HEAD, metadata={_KIND: json.dumps(facts)})


@lru_cache(maxsize=8)
def load_head(checkpoint: Checkpoint) -> Head:
    """The head in a model's folder."""
    path = checkpoint.folder / HEAD
    if not path.is_file():
        raise DataError(
            f"{checkpoint.spoken} holds no {HEAD}; give a folder that evenmatch fit or distil wrote"
        )
    try:
        return _read(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"cannot read {path} ({error}); train the metric again") from None


def _read(path: Path) -> Head:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})[_KIND])
            weights = file.get_tensor("weights").astype(np.float64)
            bias = float(file.get_tensor("bias")[0])
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    return Head(tuple(facts["layers"]), weights, bias, bool(facts["higher_is_better"]))
