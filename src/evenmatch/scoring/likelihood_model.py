"""What a language model answers: the log-probability of the pieces it is to predict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenmatch.scoring.likelihood_asking import Question
from evenmatch.types import Array, Run
from evenmatch.vectors.heads import Head
from evenmatch.vectors.packing import equal_size_batches
from evenmatch.vectors.side_by_side import side_by_side

_AT_A_TIME = 128


def log_probabilities(
    model: Any, head: Head, questions: Sequence[Question], run: Run
) -> list[float]:
    """The mean log-probability of each question's counted pieces, in natural logarithms."""
    blind = -math.log(model.config.vocab_size)
    answers = [blind] * len(questions)
    asked = [i for i, question in enumerate(questions) if question.counted.any()]
    sizes = [(len(questions[i].source), len(questions[i].target)) for i in asked]
    ask = _seq2seq if head == "seq2seq" else _causal

    def one(batch: list[int]) -> None:
        import torch

        own = [asked[i] for i in batch]
        with torch.inference_mode():
            for index, answer in zip(own, ask(model, [questions[i] for i in own]), strict=True):
                answers[index] = answer

    # Never padded: beside a longer text, SmolLM2's answers moved by up to 1e-5.
    side_by_side(one, list(equal_size_batches(sizes, run.batch_tokens)), run)
    return answers


def _seq2seq(model: Any, batch: Sequence[Question]) -> list[float]:
    read = _table([question.source for question in batch], model.device)
    # Labels, so that each kind of model shifts them its own way into what its decoder reads.
    labels = _table([question.target for question in batch], model.device)
    logits = model(input_ids=read, labels=labels, use_cache=False).logits
    return [_mean(logits[row], q.target, q.counted) for row, q in enumerate(batch)]


def _causal(model: Any, batch: Sequence[Question]) -> list[float]:
    read = _table([question.target for question in batch], model.device)
    logits = model(input_ids=read, use_cache=False).logits
    return [_mean(logits[row], q.target[1:], q.counted[1:]) for row, q in enumerate(batch)]


def _table(rows: Sequence[Array], device: Any) -> Any:
    import torch

    return torch.from_numpy(np.stack(rows)).to(device)


def _mean(logits: Any, target: Array, counted: Array) -> float:
    """Row t of the logits predicts piece t."""
    import torch

    at: Any = torch.from_numpy(np.flatnonzero(counted)).to(logits.device)
    wanted: Any = torch.from_numpy(target[counted]).to(logits.device)
    total = 0.0
    # In double precision, since a sum over 50,000 pieces in single is off by 2e-5; and some
    # positions at a time, since a vocabulary is wide.
    for rows, pieces in zip(at.split(_AT_A_TIME), wanted.split(_AT_A_TIME), strict=True):
        logs = torch.log_softmax(logits[rows].double(), -1)
        total += float(logs.gather(1, pieces[:, None]).sum())
    return total / len(at)
