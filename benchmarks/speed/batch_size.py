"""Which batch size suits this machine: tokens per second of the encoder by tokens per batch."""

from __future__ import annotations

from typing import Any

from benchmarks import texts
from benchmarks.clock import median, take_turns
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.registry import CallContext
from evenmatch.types import Run

SIZES = (256, 384, 512, 768, 1024, 1536, 2048)


def run() -> dict[str, Any]:
    import torch

    candidates, references, source = texts.pairs(600)
    unique = list(dict.fromkeys([*candidates, *references]))
    body = PretrainedBackbone("minilm")
    tokens = sum(map(len, body.open().token_ids(unique)))
    found: dict[str, Any] = {"texts": source, "tokens": tokens}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        rivals = {
            str(n): lambda n=n: body.open(CallContext(Run(batch_tokens=n))).encode(unique, [4])
            for n in SIZES
        }
        seconds = take_turns(rivals, 4)
        found[f"tokens per second, {threads} threads"] = {
            name: round(tokens / median(s)) for name, s in seconds.items()
        }
    return found
