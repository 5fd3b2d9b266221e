"""Scores of a fitted two-tower metric that a gradient goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.scoring.fitted import Fitted
from evenmatch.scoring.towers import seen_in_torch
from evenmatch.scoring.towers_head import Head
from evenmatch.types import Run
from evenmatch.uses.fair.differentiable_texts import Encoding, encoding
from evenmatch.uses.fair.lesson import Texts
from evenmatch.uses.fair.padded import padded
from evenmatch.vectors.adapter import Adapter


@dataclass(frozen=True, eq=False)
class DifferentiableTowers:
    """A fitted metric over a model of one's own; its head stays as it is."""

    texts: Encoding
    head: Head

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return self.texts.dim

    @property
    def blocks(self) -> int:
        """How many blocks an adapter stands behind."""
        return max(self.head.layers)

    @property
    def label(self) -> str:
        """The model by content."""
        return self.texts.label

    def scores(self, pairs: Sequence[Texts], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        states = self.texts.states(texts, self.head.layers, adapter)
        pieces = self._pieces(texts)
        x, y = (
            ({layer: own[at] for layer, own in states.items()}, pieces[at])
            for at in ([texts.index(text) for text in side] for side in zip(*pairs, strict=True))
        )
        seen = seen_in_torch(*x, *y, self.head.layers)
        weights = torch.as_tensor(self.head.weights, dtype=seen.dtype, device=seen.device)
        return seen @ weights + self.head.bias

    def _pieces(self, texts: Sequence[str]) -> Any:
        """Where the pieces of the texts stand, without the marks around them."""
        cuts = [self.texts.cut(text) for text in texts]
        inner = [~np.isin(np.arange(len(cut.keys)), list(cut.marks)) for cut in cuts]
        return padded(inner, self.texts.blocks.device).bool()


def through_towers(metric: Fitted, run: Run) -> DifferentiableTowers:
    """The metric ready to be trained through."""
    return DifferentiableTowers(encoding(metric.encoder().body, run), metric.head())
