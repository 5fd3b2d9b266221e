"""A typical job: every system of a test set, every alignment metric.

The baseline runs bert_score once per system and, for one-to-one and transport alignment, a loop
like that of moverscore: padded batches through the model, then one pair at a time.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import evenmatch as em
from benchmarks import texts
from benchmarks.clock import ratio, take_turns
from benchmarks.speed import peers
from evenmatch.models import checkpoints

REFERENCES, REPEATS, LAYER = 16, 3, 4


def run() -> dict[str, Any]:
    found = texts.systems(REFERENCES)
    if found is None:
        return {"skipped": "needs wmt20-da in EVENMATCH_DATA"}
    import torch

    torch.set_num_threads(2)
    outputs, references = found
    rival = _rival(outputs, references)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = take_turns({"evenmatch": _ours(outputs, references), "rival": rival}, REPEATS)
    return {
        "texts": f"WMT20 zh-en, {len(outputs)} systems, {len(references)} references",
        "times faster": ratio(seconds["rival"], seconds["evenmatch"]),
    }


def _ours(outputs: dict[str, list[str]], references: list[str]) -> Any:
    candidates = [text for texts_ in outputs.values() for text in texts_]
    return lambda: em.score(
        candidates, references * len(outputs), ["bertscore", "f_disc", "f_cont"]
    )


def _rival(outputs: dict[str, list[str]], references: list[str]) -> Any:
    greedy = [peers.bert_score(candidates, references) for candidates in outputs.values()]
    embed = _embedder()

    def loop(solver: str) -> None:
        for candidates in outputs.values():
            for x, y in zip(embed(candidates), embed(references), strict=True):
                _solve(x, y, solver)

    def everything() -> None:
        for score in greedy:
            score()
        loop("lsa")
        loop("emd")

    return everything


def _solve(x: Any, y: Any, solver: str) -> float:
    import ot
    from scipy.optimize import linear_sum_assignment

    h, r = (np.linalg.norm(v, axis=1) for v in (x, y))
    similarity = (x / h[:, None]) @ (y / r[:, None]).T
    if solver == "lsa":
        return float(similarity[linear_sum_assignment(similarity, maximize=True)].sum())
    return float((ot.emd(h / h.sum(), r / r.sum(), 1 - similarity) * similarity).sum())


def _embedder() -> Any:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = str(checkpoints.find_checkpoint("minilm").folder)
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    model.encoder.layer = model.encoder.layer[:LAYER]

    def embed(sentences: list[str]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(sentences), 64):
            batch = tokenizer(
                sentences[start : start + 64], padding=True, truncation=True, return_tensors="pt"
            )
            with torch.no_grad():
                states = model(**batch)[0].numpy()
            lengths = batch["attention_mask"].sum(1).tolist()
            found += [states[i, 1 : n - 1].astype(np.float64) for i, n in enumerate(lengths)]
        return found

    return embed
