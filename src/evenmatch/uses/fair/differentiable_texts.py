"""Texts through an encoder of one's own, with gradients: what two-sided metrics train through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenmatch.types import Run
from evenmatch.uses.fair.padded import padded, there
from evenmatch.vectors.adapter import Adapter, inserted
from evenmatch.vectors.blocks import Blocks, fresh_blocks
from evenmatch.vectors.pretrained import Pretrained
from evenmatch.vectors.tokens import Cut, Tokens


@dataclass(frozen=True, eq=False)
class Encoding:
    """An encoder whose blocks an adapter may stand behind, and the texts it has cut so far."""

    body: Pretrained
    blocks: Blocks
    cuts: dict[str, Cut] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.blocks.module.config.hidden_size)

    @property
    def label(self) -> str:
        """The model by content."""
        return self.body.checkpoint().label

    def cut(self, text: str) -> Cut:
        """The text as pieces, as many as the model takes."""
        if text not in self.cuts:
            tokens = self.body.tokens()
            self.cuts[text] = _shortened(tokens([text])[0], tokens)
        return self.cuts[text]

    def states(
        self, texts: Sequence[str], layers: Sequence[int], adapter: Adapter | None
    ) -> dict[int, Any]:
        """By layer the states of all texts, (texts, pieces, dim), filled up on the right."""
        rows = [self.cut(text).keys for text in texts]
        device = self.blocks.device
        with self.blocks.cut_to(layers) as forward, inserted(self.blocks, adapter):
            return forward(padded(rows, device), there(rows, device))


def encoding(body: Pretrained, run: Run) -> Encoding:
    """The encoder of a metric, loaded for oneself."""
    return Encoding(body, fresh_blocks(body.checkpoint(), body.trust_remote_code, run.device))


def _shortened(cut: Cut, tokens: Tokens) -> Cut:
    most, closing = tokens.limit, len(tokens.closing)
    if len(cut.keys) <= most:
        return cut
    keep = np.r_[0 : most - closing, len(cut.keys) - closing : len(cut.keys)]
    return Cut(cut.keys[keep], cut.spans[keep], tokens.marks(most), cut.flags)
