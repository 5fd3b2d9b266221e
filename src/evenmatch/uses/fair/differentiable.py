"""Metrics that a gradient goes through, to train an adapter by: one form for each kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

from evenmatch.errors import InputError
from evenmatch.scoring.fitted import Fitted
from evenmatch.scoring.likelihood import Likelihood
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.regression import Regression
from evenmatch.types import Metric, Run
from evenmatch.uses.fair.differentiable_alignment import through_alignment
from evenmatch.uses.fair.differentiable_likelihood import through_likelihood
from evenmatch.uses.fair.differentiable_regression import through_regression
from evenmatch.uses.fair.differentiable_towers import through_towers
from evenmatch.uses.fair.lesson import Texts
from evenmatch.vectors.adapter import Adapter
from evenmatch.vectors.transformer import Transformer


class Differentiable(Protocol):
    """A metric over a model of one's own, whose blocks an adapter may stand behind."""

    @property
    def dim(self) -> int:
        """How long a vector is."""

    @property
    def blocks(self) -> int:
        """How many blocks, from the lowest, an adapter stands behind."""

    @property
    def label(self) -> str:
        """The model by content."""

    def scores(self, pairs: Sequence[Texts], adapter: Adapter | None) -> Any:
        """The scores of the pairs as one tensor, by the model with the adapter or without."""


def differentiable(metric: Metric, run: Run) -> Differentiable:
    """The metric ready to be trained through; refused where no gradient can go through it."""
    if isinstance(metric, AlignMetric):
        return through_alignment(metric, run)
    if not isinstance(metric, Fitted | Regression | Likelihood):
        raise InputError(
            "only metrics over a transformer can be trained through: alignment metrics such as "
            "bertscore, f_disc and f_cont, fitted, regression and likelihood metrics"
        )
    if metric.adapter:
        raise InputError("a metric to train through has no adapter yet; leave out adapter=")
    if isinstance(metric, Fitted):
        return through_towers(metric, run)
    if isinstance(metric, Regression):
        return through_regression(metric, run)
    return through_likelihood(metric, run)


def adapted_metric(metric: Metric, adapter: str) -> Metric:
    """The metric with an adapter switched on."""
    if isinstance(metric, Fitted | Regression | Likelihood):
        return dataclasses.replace(metric, adapter=adapter)
    if isinstance(metric, AlignMetric) and isinstance(metric.vectors, Transformer):
        encoder = dataclasses.replace(metric.vectors, adapter=adapter)
        return dataclasses.replace(metric, vectors=encoder)
    raise InputError("only a metric over a transformer takes an adapter, such as bertscore")
