"""What a two-tower metric sees of two texts: how their summaries differ, how their pieces match.

Both texts go through the encoder on their own, so that a text met again costs nothing. The same
numbers are computed here for scoring, and in torch where such a metric is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenmatch.scoring.reduce import harmonic
from evenmatch.similarity.cosine import norms
from evenmatch.types import Array


def summary(vectors: Array) -> Array:
    """The mean of a text's vectors, as long as a vector of ones would be; zeros for no text."""
    if not len(vectors):
        return np.zeros(vectors.shape[1])
    mean = np.asarray(vectors, dtype=np.float64).mean(0)
    found: Array = mean / norms(mean[None])[0] * len(mean) ** 0.5
    return found


def seen(x: Mapping[int, Array], y: Mapping[int, Array], layers: Sequence[int]) -> Array:
    """Differences and products of the summaries at the last layer, then P, R, F of each layer."""
    u, v = summary(x[layers[-1]]), summary(y[layers[-1]])
    matches = [number for layer in layers for number in matched(x[layer], y[layer])]
    return np.concatenate([abs(u - v), u * v, matches])


def matched(x: Array, y: Array) -> tuple[float, float, float]:
    """Greedy precision, recall and F of two texts' vectors; an empty side 0, two of them 1."""
    if not len(x) or not len(y):
        value = float(len(x) == len(y))
        return value, value, value
    cosines = (x @ y.T) / (norms(x)[:, None] * norms(y)[None, :])
    precision, recall = float(cosines.max(1).mean()), float(cosines.max(0).mean())
    return precision, recall, harmonic(precision, recall)


def seen_in_torch(
    x: Mapping[int, Any], x_there: Any, y: Mapping[int, Any], y_there: Any, layers: Sequence[int]
) -> Any:
    """`seen` for a batch of padded texts, with gradients; no text of it may be empty."""
    import torch

    u, v = (_summaries(t[layers[-1]], there) for t, there in ((x, x_there), (y, y_there)))
    columns = [(u - v).abs(), u * v]
    for layer in layers:
        columns.append(torch.stack(_matches(x[layer], x_there, y[layer], y_there), -1))
    return torch.cat(columns, -1)


def _summaries(vectors: Any, there: Any) -> Any:
    import torch

    total = (vectors * there[..., None]).sum(1)
    return torch.nn.functional.normalize(total, dim=-1) * float(total.shape[-1] ** 0.5)


def _matches(x: Any, x_there: Any, y: Any, y_there: Any) -> tuple[Any, Any, Any]:
    import torch

    x, y = (torch.nn.functional.normalize(t, dim=-1) for t in (x, y))
    cosines = x @ y.transpose(-1, -2)
    cells = x_there[:, :, None] & y_there[:, None, :]
    cosines = cosines.masked_fill(~cells, -2.0)
    precision = (cosines.amax(2) * x_there).sum(1) / x_there.sum(1)
    recall = (cosines.amax(1) * y_there).sum(1) / y_there.sum(1)
    both = precision + recall
    f = torch.where((precision > 0) & (recall > 0), 2 * precision * recall / both, 0.0)
    return precision, recall, f
