"""The encoder against the bound: plain matrix products of its own shapes, one thread."""

from __future__ import annotations

from typing import Any

from benchmarks import texts
from benchmarks.clock import ratio, take_turns
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.registry import CallContext
from evenmatch.types import Run

COUNT, REPEATS, LAYER, BATCH = 400, 5, 4, 1024


def run() -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    candidates, references, source = texts.pairs(COUNT)
    unique = list(dict.fromkeys([*candidates, *references]))
    body = PretrainedBackbone("minilm")
    tokens = sum(map(len, body.open().token_ids(unique)))

    def encoder() -> None:
        body.open(CallContext(Run(batch_tokens=BATCH))).encode(unique, [LAYER])

    encoder()
    seconds = take_turns({"encoder": encoder, "products": lambda: multiply(tokens)}, REPEATS)
    return {
        "texts": source,
        "tokens": tokens,
        "threads": 1,
        "share of the products' rate": round(1 / ratio(seconds["encoder"], seconds["products"]), 3),
    }


def multiply(tokens: int) -> None:
    """The linear maps of four MiniLM blocks over that many tokens, and nothing else."""
    import torch
    from torch.nn.functional import linear

    narrow, wide = torch.randn(BATCH, 384), torch.randn(BATCH, 1536)
    square = [torch.randn(384, 384) for _ in range(4)]
    up, down = torch.randn(1536, 384), torch.randn(384, 1536)
    with torch.inference_mode():
        for _ in range(LAYER * tokens // BATCH):
            for weight in (*square, up):
                linear(narrow, weight)
            linear(wide, down)
