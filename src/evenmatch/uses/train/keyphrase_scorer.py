"""The training of a scorer of phrases: an encoder that reads both, one number, squared error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.types import Array
from evenmatch.uses.train.keyphrase_tuples import Tuples
from evenmatch.uses.train.lesson import Lesson, learn
from evenmatch.vectors import checkpoints
from evenmatch.vectors.checkpoints import Checkpoint
from evenmatch.vectors.quiet import quiet_transformers


def train_scorer(
    tuples: Tuples,
    folder: Path,
    *,
    model: str,
    frozen: int,
    lesson: Lesson,
    progress: Callable[[int, int], None] | None,
) -> list[float]:
    """Train a scorer, save it as a model for sequence classification, and give the losses.

    Paper 004's: [CLS] predicted [SEP] gold [SEP], one score, learnt by squared error. The
    embeddings and first `frozen` blocks stay as they are. Dropout is off, so that a seed settles
    everything.
    """
    import torch

    torch.manual_seed(lesson.seed)  # the new head's first weights
    checkpoint = checkpoints.find(model)
    scorer, tokenizer = _loaded(checkpoint)
    cuts = tokenizer([p for p, _ in tuples.phrases], [q for _, q in tuples.phrases])
    wanted, weights = (torch.tensor(a).float() for a in (tuples.scores, tuples.weights))

    def loss(batch: Array) -> Any:
        own = {name: [values[i] for i in batch] for name, values in cuts.items()}
        inputs = tokenizer.pad(own, return_tensors="pt")
        at = torch.from_numpy(np.asarray(batch))
        found = torch.sigmoid(scorer(**inputs).logits.squeeze(-1))
        return (weights[at] * (found - wanted[at]) ** 2).sum() / weights[at].sum()

    lengths = [len(ids) for ids in cuts["input_ids"]]
    losses = learn(_groups(scorer, frozen, lesson), lengths, lesson, loss, progress)
    folder.mkdir(parents=True, exist_ok=True)
    with quiet_transformers():
        scorer.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return losses


def _loaded(checkpoint: Checkpoint) -> tuple[Any, Any]:
    checkpoints.verify(checkpoint)
    with quiet_transformers():
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        scorer = AutoModelForSequenceClassification.from_pretrained(
            str(checkpoint.folder), num_labels=1, dtype=torch.float32
        )
        tokenizer = AutoTokenizer.from_pretrained(str(checkpoint.folder))
    return scorer.eval(), tokenizer


def _groups(scorer: Any, frozen: int, lesson: Lesson) -> list[dict[str, Any]]:
    """What is trained, at its rate: the upper blocks slowly, what is new fast."""
    scorer.base_model.embeddings.requires_grad_(False)
    for block in scorer.base_model.encoder.layer[:frozen]:
        block.requires_grad_(False)
    head = [p for n, p in scorer.named_parameters() if not n.startswith(scorer.base_model_prefix)]
    body = [p for p in scorer.base_model.parameters() if p.requires_grad]
    return [{"params": body, "lr": lesson.rate}, {"params": head, "lr": lesson.head_rate}]
