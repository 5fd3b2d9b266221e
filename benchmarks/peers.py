"""Pairs per second against bert_score and torchmetrics, same model, same layer, two threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from evenmatch.vectors import checkpoints
from evenmatch.vectors.pretrained import Pretrained

COUNT, REPEATS, THREADS, LAYER = 2000, 3, 2, 4


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    candidates, references, source = texts.pairs(COUNT)
    ours, theirs, torchmetrics = (make(candidates, references) for make in _MAKERS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for warm_up in (ours, theirs, torchmetrics):
            warm_up()
        seconds = take_turns(
            {"evenmatch": ours, "bert_score": theirs, "torchmetrics": torchmetrics}, REPEATS
        )
        alone = min(100, COUNT)
        single = bert_score(candidates[:alone], references[:alone], batch_size=1)()
    return {
        "texts": source,
        "pairs": COUNT,
        "threads": THREADS,
        "repeats": REPEATS,
        "padding factor of bert_score": _padding([*candidates, *references]),
        "pairs per second": {k: round(COUNT / median(v), 1) for k, v in seconds.items()},
        "times bert_score": ratio(seconds["bert_score"], seconds["evenmatch"]),
        "times torchmetrics": ratio(seconds["torchmetrics"], seconds["evenmatch"]),
        "largest difference from bert_score at batch size 1": _largest(ours()[:alone], single),
        "largest difference from bert_score at batch size 64": _largest(ours(), theirs()),
        "largest difference from torchmetrics": _largest(ours(), torchmetrics()),
    }


def evenmatch(candidates: list[str], references: list[str]) -> Any:
    return lambda: np.array([s.value for s in em.score(candidates, references).segments])


def bert_score(candidates: list[str], references: list[str], batch_size: int = 64) -> Any:
    from bert_score import BERTScorer

    folder = str(checkpoints.find("minilm").folder)
    scorer = BERTScorer(model_type=folder, num_layers=LAYER, batch_size=batch_size, device="cpu")
    return lambda: scorer.score(candidates, references)[2].numpy()


def torchmetrics(candidates: list[str], references: list[str]) -> Any:
    from torchmetrics.functional.text.bert import bert_score as score
    from transformers import AutoModel, AutoTokenizer

    folder = str(checkpoints.find("minilm").folder)
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    # Layers above the fourth are dropped for it, which it would not do by itself.
    model.encoder.layer = model.encoder.layer[:LAYER]

    def run() -> Any:
        found = score(
            candidates,
            references,
            model=model,
            user_tokenizer=_Padded(tokenizer),
            user_forward_fn=lambda m, b: m(b["input_ids"], b["attention_mask"])[0],
            batch_size=64,
            device="cpu",
        )
        return np.array(found["f1"])

    return run


class _Padded:
    """A tokenizer as torchmetrics calls one."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, sentences: Any, max_length: int = 512) -> dict[str, Any]:
        found = self._tokenizer(
            list(sentences),
            padding=True,
            truncation=True,
            max_length=max_length,
            return_tensors="pt",
        )
        return {k: found[k] for k in ("input_ids", "attention_mask")}


_MAKERS = (evenmatch, bert_score, torchmetrics)


def _padding(sentences: list[str]) -> float:
    """Tokens computed over tokens there are, as bert_score batches: unique, longest first, 64."""
    unique = sorted(set(sentences), key=lambda s: len(s.split(" ")), reverse=True)
    lengths = [len(cut.keys) for cut in Pretrained("minilm").tokens()(unique)]
    batches = [lengths[i : i + 64] for i in range(0, len(lengths), 64)]
    return round(sum(len(b) * max(b) for b in batches) / sum(lengths), 3)


def _largest(a: Any, b: Any) -> float:
    return float(f"{np.abs(np.asarray(a) - np.asarray(b)).max():.2e}")
