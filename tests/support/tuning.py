"""A task that a tiny generator learns in seconds, and its settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.models.loading import quiet_transformers
from evenmatch.training.generator.tune_settings import T5Shape, TuneSettings

NAMES = "Aarhus Bergen Cork Dover Essen Faro".split()
SMALL = T5Shape(words=300, width=16, layers=1, heads=2, inner=32, dropout=0.1)


def write_examples(path: Path, count: int, seed: int) -> str:
    """Write triples, each with one or two sentences that contain their entities."""
    draw = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(count):
            a, b = (str(name) for name in draw.choice(NAMES, 2))
            refs = [f"{a} is near {b}.", f"{b} is near {a}."][: int(draw.integers(1, 3))]
            file.write(json.dumps({"triples": [[a, "nearTo", b]], "refs": refs}) + "\n")
    return str(path)


def tiny(folder: Path, out: str = "out", **changed: Any) -> TuneSettings:
    """Return the settings of a run of a few steps."""
    folder.mkdir(exist_ok=True)
    settings: dict[str, Any] = {
        "train": write_examples(folder / "train.jsonl", 10, seed=1),
        "valid": write_examples(folder / "valid.jsonl", 4, seed=2),
        "out": str(folder / out),
        "epochs": 2,
        "batch": 4,
        "rate": 0.01,
        "longest_target": 12,
        "seed": 5,
        "shape": SMALL,
    }
    return TuneSettings(**{**settings, **changed})


def save_tiny_llama(folder: Path) -> str:
    """Save a causal model with random weights; its tokenizer adds no special tokens."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    untyped: Any = transformers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [f"<H> {a} <R> near To <T> {b}\n{a} is near {b}." for a in NAMES for b in NAMES]
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = untyped.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")
    config = untyped.LlamaConfig(
        vocab_size=len(fast),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        eos_token_id=fast.eos_token_id,
        initializer_range=0.3,
    )
    with quiet_transformers(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        untyped.LlamaForCausalLM(config).save_pretrained(folder)
        fast.save_pretrained(folder)
    return str(folder)
