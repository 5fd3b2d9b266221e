"""One metric at every layer of its model: texts go through the model once for all of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from evenmatch.errors import InputError
from evenmatch.registry import spec
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.together import as_metric
from evenmatch.types import Metric
from evenmatch.vectors import layers
from evenmatch.vectors.transformer import Transformer


def layered(given: str | Metric) -> AlignMetric:
    """The metric that is meant, or a refusal where it has no layers to choose from."""
    metric: Any = as_metric(given)
    if isinstance(metric, AlignMetric) and isinstance(metric.vectors, Transformer):
        return metric
    raise InputError(
        f"{given if isinstance(given, str) else spec(metric)} has no layers; give an alignment "
        "metric over a transformer, such as bertscore(model='FOLDER')"
    )


def at_layer(metric: AlignMetric, layer: int) -> AlignMetric:
    """The metric with its vectors read at that layer."""
    assert isinstance(metric.vectors, Transformer)
    return dataclasses.replace(metric, vectors=dataclasses.replace(metric.vectors, layer=layer))


def at_every_layer(metric: AlignMetric) -> list[AlignMetric]:
    """The metric at layer 0, the embeddings before the first block, and at every block."""
    assert isinstance(metric.vectors, Transformer)
    deepest = layers.depth(metric.vectors.body.checkpoint())
    return [at_layer(metric, layer) for layer in range(deepest + 1)]
