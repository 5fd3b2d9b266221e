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
from evenmatch.vectors.adapter import Adapter, inserted
from evenmatch.vectors.blocks import Blocks, fresh_blocks
from evenmatch.vectors.states import States
from evenmatch.vectors.transformer import Transformer

Sided = tuple[str, str]  # a candidate and its reference


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A text as ids, and which of its pieces are units with which weights."""

    ids: Array
    rows: Array
    keys: Array
    weights: Any
    embedded: Embedded


@dataclass(frozen=True, eq=False)
class Differentiable:
    """An alignment metric over a model of one's own, whose blocks an adapter may stand behind."""

    metric: AlignMetric
    encoder: Transformer
    blocks: Blocks
    depth: int
    texts: dict[str, Prepared] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return int(self.blocks.module.config.hidden_size)

    def scores(self, pairs: Sequence[Sided], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""
        import torch

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        self._prepare([text for text in texts if text not in self.texts])
        sides = dict(zip(texts, self._embedded(texts, adapter), strict=True))
        both = [(sides[c], sides[r]) for c, r in pairs]
        similarities = [self.metric.similarity(x, y) for x, y in both]
        problems = [
            Problem(s.detach().cpu().numpy(), x.mass, y.mass)
            for s, (x, y) in zip(similarities, both, strict=True)
        ]
        solved = self.metric.alignment(problems)
        every = zip(similarities, solved, both, strict=True)
        return torch.stack([_f(s, a, x, y) for s, a, (x, y) in every])

    def _prepare(self, texts: Sequence[str]) -> None:
        tokens = self.encoder.body.tokens()
        for text, cut in zip(texts, tokens(texts), strict=True):
            keys, spans, marks = cut.keys, cut.spans, cut.marks
            if len(keys) > tokens.limit:
                keep = np.r_[
                    0 : tokens.limit - len(tokens.closing),
                    len(keys) - len(tokens.closing) : len(keys),
                ]
                keys, spans, marks = keys[keep], spans[keep], tokens.marks(tokens.limit)
            # Numbered pieces instead of vectors: what comes out says which are units.
            numbered = States(text, keys, spans, marks, {self.depth: np.arange(len(keys))[:, None]})
            units = self.metric.units(text)
            found = self.encoder.look(units, numbered, self.depth)
            rows = np.asarray(found.vectors)[:, 0]
            weights = _tensor(found.weights)
            self.texts[text] = Prepared(keys, rows, keys[rows], weights, found)

    def _embedded(self, texts: Sequence[str], adapter: Adapter | None) -> list[Embedded]:
        import torch

        known = [self.texts[text] for text in texts]
        width = max(len(each.ids) for each in known)
        ids = np.zeros((len(known), width), dtype=np.int64)
        seen = np.zeros((len(known), width), dtype=np.int64)
        for row, each in enumerate(known):
            ids[row, : len(each.ids)], seen[row, : len(each.ids)] = each.ids, 1
        device = self.blocks.device
        with self.blocks.cut_to([self.depth]) as forward, inserted(self.blocks, adapter):
            given = torch.from_numpy(ids).to(device), torch.from_numpy(seen).to(device)
            states = forward(*given)[self.depth]
        return [self._side(each, states[row]) for row, each in enumerate(known)]

    def _side(self, text: Prepared, states: Any) -> Embedded:
        vectors = states[text.rows]
        mass = self.encoder.mass(text.keys, vectors.detach().cpu().numpy())
        return Embedded(text.embedded.units, vectors, text.weights, mass)


def differentiable(metric: Any, run: Run) -> Differentiable:
    """The metric ready to be trained through; refused where no gradient can go through it."""
    if not isinstance(metric, AlignMetric) or not isinstance(metric.vectors, Transformer):
        raise InputError(
            "only alignment metrics over a transformer can be trained through, "
            "such as bertscore, f_disc and f_cont"
        )
    encoder = metric.vectors
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
    blocks = fresh_blocks(encoder.body.checkpoint(), encoder.trust_remote_code, run.device)
    return Differentiable(metric, encoder, blocks, encoder.depth())


def _f(similarity: Any, alignment: Alignment, x: Embedded, y: Embedded) -> Any:
    kept = Alignment(_tensor(alignment.rows), _tensor(alignment.cols))
    if not len(x.weights) or not len(y.weights):
        return similarity.sum() * 0.0
    precision, recall = precision_recall(similarity, kept, x.weights, y.weights)
    return 2 * precision * recall / (precision + recall).clamp(min=1e-6)


def _tensor(array: Array) -> Any:
    import torch

    return torch.as_tensor(np.asarray(array, dtype=np.float32))
