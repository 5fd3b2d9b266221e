"""The training of a scorer of phrases: an encoder that reads both, one number, squared error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.types import Array
from evenmatch.uses.train.cross import load_cross
from evenmatch.uses.train.keyphrase_tuples import Tuples
from evenmatch.uses.train.lesson import Lesson, learn
from evenmatch.vectors import checkpoints


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
    embeddings and first `frozen` blocks stay as they are.
    """
    import torch

    checkpoint = checkpoints.find(model)
    scorer = load_cross(checkpoint, tuples.phrases, frozen=frozen, seed=lesson.seed)
    wanted, weights = (torch.tensor(a).float() for a in (tuples.scores, tuples.weights))

    def loss(batch: Array) -> Any:
        at = torch.from_numpy(np.asarray(batch))
        found = torch.sigmoid(scorer(batch))
        return (weights[at] * (found - wanted[at]) ** 2).sum() / weights[at].sum()

    losses = learn(scorer.groups(lesson), scorer.sizes, lesson, loss, progress)
    scorer.save(folder)
    return losses
