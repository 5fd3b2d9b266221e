"""Train a projection of an encoder's token vectors, token weights and a linear head over both.

The encoder is not trained: the hidden states of every text are computed once. The loss is the
squared error of the ratings and, for outputs that have the same reference, a loss on their order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.metrics.fitted import (
    BiEncoderHead,
    Projection,
    pair_features_torch,
)
from evenmatch.models.backbone import PretrainedBackbone
from evenmatch.training.checkpoints import CheckpointFile
from evenmatch.training.loop import FitSettings, fit_weights
from evenmatch.training.metrics.bi_encoder import (
    allocate_states,
    fit_initial_head,
    load_partly_frozen,
)
from evenmatch.training.metrics.examples import TrainingExamples
from evenmatch.types import Array, Run

_INIT_STD = 0.02
_CHUNK = 512  # texts that are encoded at once
_MOST_DEVIATIONS = 4.0  # a target further from the mean is clipped
_RANKING_SLOPE = 2.0


def train_projection(
    backbone: PretrainedBackbone,
    examples: TrainingExamples,
    settings: FitSettings,
    run: Run,
    checkpoint: CheckpointFile,
    *,
    layers: Sequence[int],
    ranking: float,
    factor: int = 2,
) -> BiEncoderHead:
    """Train a projection for each of `layers`, and a head.

    Targets are standardised; those beyond 4 deviations are clipped. `ranking` is the weight of
    `ranking_loss`. `factor` is the hidden size divided by the width of the projection.
    """
    import torch

    states = _encode_texts(backbone, examples.texts, layers, run)
    dim = states.by_layer[layers[0]][0].shape[1]
    projections = _new_projections(dim, len(layers), dim // factor, settings.seed)
    targets = (examples.targets - examples.targets.mean()) / examples.targets.std()
    targets = targets.clip(-_MOST_DEVIATIONS, _MOST_DEVIATIONS)

    def features(batch: Array) -> Any:
        x, y = states.pad(examples.candidates[batch]), states.pad(examples.references[batch])
        return pair_features_torch(*x, *y, layers, projections)

    lengths = states.lengths[examples.candidates] + states.lengths[examples.references]
    first = fit_initial_head(features, lengths, targets, settings.seed, pooled=2 * dim)
    weights, bias = (torch.tensor(v, dtype=torch.float32, requires_grad=True) for v in first)
    wanted = torch.tensor(targets, dtype=torch.float32)
    references = torch.from_numpy(examples.references)

    def loss(batch: Array) -> Any:
        predicted = features(batch) @ weights + bias
        squared = ((predicted - wanted[batch]) ** 2).mean()
        return squared + ranking * ranking_loss(predicted, wanted[batch], references[batch])

    vectors = [each.importance for each in projections]
    body = [w for each in projections for w in (each.down, each.down_bias, each.up, each.up_bias)]
    groups = [
        {"params": body, "lr": settings.rate},
        {"params": [weights, bias, *vectors], "lr": settings.head_rate},
    ]
    how: dict[str, Any] = {"checkpoint": checkpoint, "progress": run.progress}
    fit_weights(groups, lengths.tolist(), settings, loss, together=examples.references, **how)
    learned = (
        Projection(**{name: tensor.detach().numpy() for name, tensor in _tensors(each).items()})
        for each in projections
    )
    final = weights.detach().double().numpy()
    return BiEncoderHead(tuple(layers), final, float(bias.detach()), projections=tuple(learned))


def ranking_loss(predicted: Any, targets: Any, references: Any) -> Any:
    """Mean logistic loss over pairs of outputs that have the same reference and unequal targets.

    A pair's loss is log(1 + exp(-2 d)), where d is the predicted difference of the better output
    from the worse one; 0 without a pair.
    """
    import torch

    pairs = (targets[:, None] > targets[None]) & (references[:, None] == references[None])
    if not pairs.any():
        return torch.zeros((), device=predicted.device)
    differences = (predicted[:, None] - predicted[None])[pairs]
    return torch.nn.functional.softplus(-_RANKING_SLOPE * differences).mean()


@dataclass(frozen=True, slots=True, eq=False)
class _TextStates:
    """Hidden states of texts by layer, (tokens, dim) each, without special tokens."""

    by_layer: Mapping[int, Sequence[Array]]
    lengths: Array

    def pad(self, texts: Array) -> tuple[dict[int, Any], Any]:
        """Return the states of these texts, zero-padded, and the mask of their tokens."""
        import torch

        padded = {
            layer: torch.nn.utils.rnn.pad_sequence(
                [torch.from_numpy(states[i]) for i in texts], batch_first=True
            )
            for layer, states in self.by_layer.items()
        }
        lengths = torch.from_numpy(self.lengths[texts])
        return padded, torch.arange(int(lengths.max())) < lengths[:, None]


def _encode_texts(
    backbone: PretrainedBackbone, texts: Sequence[str], layers: Sequence[int], run: Run
) -> _TextStates:
    """Encode every text once; the states lie in memory-mapped files."""
    opened = backbone.open()
    specials = len(opened.tokenizer.opening_tokens) + len(opened.tokenizer.closing_tokens)
    lengths = np.array([len(ids) - specials for ids in opened.token_ids(texts)])
    dim = load_partly_frozen(backbone.checkpoint(), 0, run.device).dim
    by_layer = {layer: allocate_states(lengths, dim) for layer in layers}
    for start in range(0, len(texts), _CHUNK):
        chunk = opened.encode(texts[start : start + _CHUNK], layers)
        for index, each in enumerate(chunk, start):
            inner = ~np.isin(np.arange(len(each.token_ids)), list(each.special_tokens))
            for layer in layers:
                by_layer[layer][index][:] = each.layers[layer][inner]
    return _TextStates(by_layer, lengths)


def _new_projections(dim: int, count: int, width: int, seed: int) -> list[Projection]:
    import torch

    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Any:
        return (torch.randn(shape, generator=generator) * _INIT_STD).requires_grad_(True)

    def zeros(size: int) -> Any:
        return torch.zeros(size, requires_grad=True)

    return [
        Projection(drawn(width, dim), zeros(width), drawn(dim, width), zeros(dim), zeros(dim))
        for _ in range(count)
    ]


def _tensors(projection: Projection) -> dict[str, Any]:
    return {each.name: getattr(projection, each.name) for each in dataclasses.fields(projection)}
