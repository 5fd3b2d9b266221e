"""Scores of an alignment metric that a gradient goes through, to train an adapter by.

The alignment is a constant to the gradient, as everywhere (see `scoring.reduce`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reduce import Prf, precision_recall
from evenmatch.types import Alignment, Array, Embedded, Problem, Run
from evenmatch.uses.fair.differentiable_texts import Encoding, encoding
from evenmatch.uses.fair.lesson import Texts
from evenmatch.vectors.adapter import Adapter
from evenmatch.vectors.states import States
from evenmatch.vectors.transformer import Transformer


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Which of a text's pieces are units, with which weights."""

    rows: Array
    keys: Array
    weights: Any
    embedded: Embedded


@dataclass(frozen=True, eq=False)
class DifferentiableAlignment:
    """An alignment metric over a model of one's own, whose blocks an adapter may stand behind."""

    metric: AlignMetric
    encoder: Transformer
    texts: Encoding
    blocks: int
    prepared: dict[str, Prepared] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return self.texts.dim

    @property
    def label(self) -> str:
        """The model by content."""
        return self.texts.label

    def scores(self, pairs: Sequence[Texts], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        states = self.texts.states(texts, [self.blocks], adapter)[self.blocks]
        sides = {text: self._side(text, states[row]) for row, text in enumerate(texts)}
        both = [(sides[c], sides[r]) for c, r in pairs]
        similarities = [self.metric.similarity(x, y) for x, y in both]
        problems = [
            Problem(s.detach().cpu().numpy(), x.mass, y.mass)
            for s, (x, y) in zip(similarities, both, strict=True)
        ]
        solved = self.metric.alignment(problems)
        every = zip(similarities, solved, both, strict=True)
        return torch.stack([_f(s, a, x, y) for s, a, (x, y) in every])

    def _side(self, text: str, states: Any) -> Embedded:
        if text not in self.prepared:
            self.prepared[text] = self._prepare(text)
        own = self.prepared[text]
        vectors = states[own.rows]
        mass = self.encoder.mass(own.keys, vectors.detach().cpu().numpy())
        return Embedded(own.embedded.units, vectors, own.weights, mass)

    def _prepare(self, text: str) -> Prepared:
        cut = self.texts.cut(text)
        # Numbered pieces instead of vectors: what comes out says which are units.
        numbers = {self.blocks: np.arange(len(cut.keys))[:, None]}
        found = self.encoder.look(
            self.metric.units(text), States(text, cut.keys, cut.spans, cut.marks, numbers),
            self.blocks,
        )  # fmt: skip
        rows = np.asarray(found.vectors)[:, 0]
        return Prepared(rows, cut.keys[rows], _tensor(found.weights), found)


def through_alignment(metric: AlignMetric, run: Run) -> DifferentiableAlignment:
    """The metric ready to be trained through; refused where no gradient can go through it."""
    encoder = metric.vectors
    if not isinstance(encoder, Transformer):
        raise InputError(
            "no gradient goes through an alignment metric that is not over a transformer; "
            "train through bertscore, f_disc or f_cont"
        )
    if not metric.units("a").by_model or not isinstance(metric.scoring, Prf) or encoder.pad_to:
        raise InputError(
            "a metric to train through has pieces as units, prf as scoring and no padding; "
            "train bertscore, f_disc or f_cont and use the adapter in any metric of that model"
        )
    if encoder.uncounted or encoder.adapter:
        raise InputError(
            "a metric to train through has neither an adapter nor an idf that is still to be "
            "counted; leave out adapter= and idf="
        )
    texts = encoding(encoder.body, run)
    return DifferentiableAlignment(metric, encoder, texts, encoder.depth())


def _f(similarity: Any, alignment: Alignment, x: Embedded, y: Embedded) -> Any:
    kept = Alignment(_tensor(alignment.rows), _tensor(alignment.cols))
    if not len(x.weights) or not len(y.weights):
        return similarity.sum() * 0.0
    precision, recall = precision_recall(similarity, kept, x.weights, y.weights)
    return 2 * precision * recall / (precision + recall).clamp(min=1e-6)


def _tensor(array: Array) -> Any:
    import torch

    return torch.as_tensor(np.asarray(array, dtype=np.float32))
