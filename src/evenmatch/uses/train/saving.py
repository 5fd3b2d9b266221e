"""A trained encoder in a folder of its own, as any model's folder is."""

from __future__ import annotations

import shutil
from pathlib import Path

from evenmatch.uses.train.upper import Upper
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.quiet import quiet_transformers

_TOKENIZER = ("tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json", "*.model")


def save_encoder(upper: Upper, source: Checkpoint, folder: Path) -> None:
    """Write the encoder up to its height, in safetensors, and the tokenizer of its source."""
    folder.mkdir(parents=True, exist_ok=True)
    module, stack = upper.blocks.module, upper.blocks.stack
    setattr(upper.blocks.owner, upper.blocks.attribute, stack[: upper.height])
    config, before = module.config, module.config.num_hidden_layers
    config.num_hidden_layers = upper.height
    try:
        with quiet_transformers():
            module.save_pretrained(folder)
    finally:
        config.num_hidden_layers = before
        setattr(upper.blocks.owner, upper.blocks.attribute, stack)
    for pattern in _TOKENIZER:
        for path in source.folder.glob(pattern):
            shutil.copy(path, folder / path.name)
