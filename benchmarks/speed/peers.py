"""Pairs per second against bert_score and torchmetrics, same model, same layer, two threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import median, ratio, take_turns
from benchmarks.speed import products
from evenmatch.models import checkpoints
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.models.fast_bert import ROW_MULTIPLE
from evenmatch.models.tokenizer import packed_batches
from evenmatch.types import Run

COUNT, FEW, REPEATS, THREADS, LAYER = 2000, 200, 9, 2, 4


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(THREADS)
    candidates, references, source = texts.pairs(COUNT)
    few = candidates[:FEW], references[:FEW]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = evenmatch(candidates, references), bert_score(candidates, references)
        seconds = _turns(
            {"evenmatch": ours, "bert_score": theirs, "products": _bound(candidates, references)}
        )
        # It pads every text to 512 tokens, so a tenth of the pairs has to do.
        slow = {"evenmatch": evenmatch(*few), "torchmetrics": torchmetrics(*few)}
        slow_seconds = _turns(slow)
        single = bert_score(*few, batch_size=1)()
    return {
        "texts": source,
        "pairs": COUNT,
        "threads": THREADS,
        "repeats": REPEATS,
        "padding factor of bert_score": padding_factor([*candidates, *references]),
        "filling factor of evenmatch": _filling([*candidates, *references]),
        "pairs per second": {
            "evenmatch": round(COUNT / median(seconds["evenmatch"]), 1),
            "bert_score": round(COUNT / median(seconds["bert_score"]), 1),
            "torchmetrics": round(FEW / median(slow_seconds["torchmetrics"]), 1),
        },
        "times bert_score": ratio(seconds["bert_score"], seconds["evenmatch"]),
        "times bert_score, round by round": [
            round(b / a, 2)
            for a, b in zip(seconds["evenmatch"], seconds["bert_score"], strict=True)
        ],
        "pairs per second of plain products": round(COUNT / median(seconds["products"]), 1),
        "plain products, times bert_score": ratio(seconds["bert_score"], seconds["products"]),
        "times torchmetrics": ratio(slow_seconds["torchmetrics"], slow_seconds["evenmatch"]),
        "pairs for torchmetrics": FEW,
        "largest difference from bert_score at batch size 1": _largest(ours()[:FEW], single),
        "largest difference from bert_score at batch size 64": _largest(ours(), theirs()),
        "largest difference from torchmetrics": _largest(ours()[:FEW], slow["torchmetrics"]()),
    }


def _turns(rivals: dict[str, Any]) -> dict[str, list[float]]:
    for warm_up in rivals.values():
        warm_up()
    return take_turns(rivals, REPEATS)


def _bound(candidates: list[str], references: list[str]) -> Any:
    """The matrix products that no encoder of these texts gets around, each text once."""
    unique = list(dict.fromkeys([*candidates, *references]))
    tokens = sum(map(len, PretrainedBackbone("minilm").open().token_ids(unique)))
    return lambda: products.multiply(tokens)


def evenmatch(candidates: list[str], references: list[str]) -> Any:
    return lambda: np.array([s.value for s in em.score(candidates, references).segments])


def bert_score(candidates: list[str], references: list[str], batch_size: int = 64) -> Any:
    from bert_score import BERTScorer

    folder = str(checkpoints.find_checkpoint("minilm").folder)
    scorer = BERTScorer(model_type=folder, num_layers=LAYER, batch_size=batch_size, device="cpu")
    return lambda: scorer.score(candidates, references)[2].numpy()


def torchmetrics(candidates: list[str], references: list[str]) -> Any:
    from torchmetrics.functional.text.bert import bert_score as score

    folder = str(checkpoints.find_checkpoint("minilm").folder)

    def run() -> Any:
        # As its documentation has it; it loads the model in each call and runs every layer.
        found = score(
            candidates,
            references,
            model_name_or_path=folder,
            num_layers=LAYER,
            batch_size=64,
            truncation=True,
            device="cpu",
        )
        return np.array(found["f1"])

    return run


def padding_factor(sentences: list[str]) -> float:
    """Tokens computed over tokens there are, as bert_score batches: unique, longest first, 64."""
    unique = sorted(set(sentences), key=lambda s: len(s.split(" ")), reverse=True)
    lengths = [len(cut.token_ids) for cut in PretrainedBackbone("minilm").open().tokenizer(unique)]
    batches = [lengths[i : i + 64] for i in range(0, len(lengths), 64)]
    return round(sum(len(b) * max(b) for b in batches) / sum(lengths), 3)


def _filling(sentences: list[str]) -> float:
    """The same as evenmatch batches them: end to end, rows filled up for the matrix library."""
    lengths = list(
        map(len, PretrainedBackbone("minilm").open().token_ids(list(dict.fromkeys(sentences))))
    )
    batches = packed_batches(lengths, Run().batch_tokens)
    rows = sum(
        -(-sum(lengths[i] for i in batch) // ROW_MULTIPLE) * ROW_MULTIPLE for batch in batches
    )
    return round(rows / sum(lengths), 3)


def _largest(a: Any, b: Any) -> float:
    return float(f"{np.abs(np.asarray(a) - np.asarray(b)).max():.2e}")
