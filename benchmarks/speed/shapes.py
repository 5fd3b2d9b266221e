"""Pairs per second against bert_score on other models, with random weights of their shapes.

Speed does not depend on the values of the weights, so no download is needed. The texts are split by
the embedded model's tokenizer. `python -m benchmarks peers --shape NAME` measures one shape and
keeps the results of the others.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from benchmarks.results import load
from benchmarks.speed.peers import padding_factor
from evenmatch.models.checkpoints import find_checkpoint

THREADS = 2
_LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
# transformers writes the default rate of the unused head as null, and refuses to read it again.
_ROBERTA = {"max_position_embeddings": 514, "classifier_dropout": 0.1}
# Architecture, settings, the layer that bert_score recommends, numbers of pairs and of rounds.
SHAPES: dict[str, tuple[str, dict[str, Any], int, int, int]] = {
    "distilbert": ("DistilBert", {}, 5, 300, 9),
    "roberta-base": ("Roberta", _ROBERTA, 10, 300, 5),
    "roberta-large": ("Roberta", _ROBERTA | _LARGE, 17, 150, 3),
    "deberta": ("Deberta", {}, 9, 150, 5),  # runs by transformers in both programs
}


def run(names: Collection[str] = SHAPES) -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    found = dict((load("shapes") or {}).get("by shape", {}))
    for name in names:
        architecture, settings, layer, count, rounds = SHAPES[name]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _save_random(architecture, settings, Path(folder))
            found[name] = _measure(folder, layer, count, rounds)
    ordered = {name: found[name] for name in SHAPES if name in found}
    return {"threads": THREADS, "by shape": ordered}


def _save_random(architecture: str, settings: dict[str, Any], folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{architecture}Config")(
        vocab_size=30522, pad_token_id=0, **settings
    )
    getattr(transformers, f"{architecture}Model")(config).save_pretrained(folder)
    for path in find_checkpoint("minilm").folder.glob("*token*"):
        shutil.copy(path, folder)


def _measure(folder: str, layer: int, count: int, rounds: int) -> dict[str, Any]:
    from bert_score import BERTScorer

    candidates, references, source = texts.pairs(count)
    metric = em.build(f"bertscore(model={folder!r}, layer={layer})")
    scorers = {
        size: BERTScorer(model_type=folder, num_layers=layer, batch_size=size, device="cpu")
        for size in (64, 1)
    }

    def ours() -> Any:
        return np.array([s.value for s in em.score(candidates, references, metric).segments])

    rivals: dict[str, Any] = {
        "evenmatch": ours,
        "bert_score": lambda: scorers[64].score(candidates, references),
    }
    for warm_up in rivals.values():
        warm_up()
    seconds = take_turns(rivals, rounds)
    single = scorers[1].score(candidates[:20], references[:20])[2].numpy()
    return {
        "texts": source,
        "pairs": count,
        "repeats": rounds,
        "layer": layer,
        "padding factor of bert_score": padding_factor([*candidates, *references]),
        "pairs per second": {n: round(count / median(s), 1) for n, s in seconds.items()},
        "times bert_score": ratio(seconds["bert_score"], seconds["evenmatch"]),
        "times bert_score, round by round": [
            round(theirs / own, 2)
            for own, theirs in zip(seconds["evenmatch"], seconds["bert_score"], strict=True)
        ],
        "largest difference at batch size 1": float(f"{np.abs(ours()[:20] - single).max():.1e}"),
    }
