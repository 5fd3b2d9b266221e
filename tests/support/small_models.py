"""Tiny models with a head and random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenmatch.models.loading import quiet_transformers
from tests.support.model_families import FAMILIES, byte_pairs

PAIRS = [
    ("the quick brown fox jumps", "the lazy dog jumps over the fox"),
    ("a cat sat on the mat", "a cat looked at the mat"),
    ("rain", "rain is expected in the north tomorrow"),
    ("pack my box with five dozen jugs", "pack my box"),
    ("Prices fell, to 12 euros.", "prices fell"),
]


def save(folder: Path, family: str, kind: str, **settings: Any) -> Path:
    """Save a model of that family with the head of a transformers Auto class."""
    made = next(f for f in FAMILIES if f.name == family)
    with quiet_transformers():
        tokenizer = made.tokenizer()
        tokenizer.model_max_length = 512
        _build(kind, made.config(len(tokenizer)), settings).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def save_causal(folder: Path) -> Path:
    """Save a tiny causal model whose tokenizer adds no special tokens."""
    with quiet_transformers():
        from transformers import GPT2Config, GPT2Tokenizer

        tokenizer = GPT2Tokenizer(**byte_pairs())
        config = GPT2Config(
            vocab_size=len(tokenizer), n_positions=96, n_embd=16, n_layer=2, n_head=2,
            initializer_range=0.3,
        )  # fmt: skip
        _build("AutoModelForCausalLM", config, {}).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def _build(kind: str, config: Any, settings: dict[str, Any]) -> Any:
    import torch
    import transformers

    for name, value in settings.items():
        setattr(config, name, value)
    torch.manual_seed(1)
    return getattr(transformers, kind).from_config(config)
