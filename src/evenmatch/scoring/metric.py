"""Alignment metrics, and scoring with any list of metrics.

`AlignMetric` is a chain of five parts. `score_metrics` scores pairs with metrics of every kind:
alignment metrics share one pass over the texts (`engine.py`), the others run one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from evenmatch.alignment.assignment import Greedy
from evenmatch.errors import InputError
from evenmatch.protocols import (
    BoundedReducer,
    Encoder,
    Metric,
    Reducer,
    RunAwareMetric,
    Similarity,
    Solver,
    Splitter,
)
from evenmatch.registry import build, kind_of, make_signature, register, spec
from evenmatch.scoring.engine import score_alignment_metrics
from evenmatch.scoring.reducers import Prf
from evenmatch.scoring.saved import is_metric_path, read_metric
from evenmatch.similarity.vectors import Cosine, similarity_bounds
from evenmatch.types import Pair, Run, Scores
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer


@register("metric", "align")
@dataclass(frozen=True)
class AlignMetric:
    """Alignment metric: split texts into units, embed, compare, align, reduce to a score."""

    units: Splitter = Pieces()
    vectors: Encoder = Transformer()
    similarity: Similarity = Cosine()
    alignment: Solver = Greedy()
    scoring: Reducer = Prf()

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Score the pairs, in order; with several references the best score counts."""
        return score_alignment_metrics([self], pairs, Run())[0]

    @property
    def signature(self) -> str:
        """The metric's spec, with 'auto' settings resolved and files named by content hash."""
        return make_signature(self)

    @property
    def higher_is_better(self) -> bool:
        """True: similar texts score higher."""
        return True

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of scores; infinite where the similarity or the reducer declares no bounds."""
        low, high = similarity_bounds(self.similarity)
        if isinstance(self.scoring, BoundedReducer):
            return self.scoring.score_bounds(low, high)
        return (-math.inf, math.inf)


def as_metric(given: Any) -> Metric:
    """Return the metric given as a name, a spec, the folder it was saved in, or the part itself."""
    metric = _metric_from_string(given) if isinstance(given, str) else given
    if isinstance(metric, type):
        raise InputError(
            f"expected a metric, got a class; create an instance: {metric.__name__}(...)"
        )
    kind = kind_of(metric)
    # The registry is asked first: isinstance() with a protocol computes the metric's signature.
    if kind == "metric" or (kind is None and isinstance(metric, Metric)):
        return cast(Metric, metric)
    what = f"the {kind} part {spec(metric)}" if kind else f"{type(metric).__name__}"
    raise InputError(f"expected a metric, got {what}; `evenmatch list metric` shows all metrics")


def _metric_from_string(given: str) -> Any:
    return read_metric(given) if is_metric_path(given) else build(given)


def score_metrics(metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run) -> list[Scores]:
    """Score the pairs with each metric; one `Scores` per metric, in the order of `metrics`."""
    if run.on is not None:
        return [scores for scores, _ in run.on.score_metrics(metrics, pairs, run)]
    aligned = [m for m in metrics if isinstance(m, AlignMetric)]
    shared = (
        dict(zip(aligned, score_alignment_metrics(aligned, pairs, run), strict=True))
        if aligned
        else {}
    )
    return [
        shared[m] if isinstance(m, AlignMetric) else _score_one_metric(m, pairs, run)
        for m in metrics
    ]


def _score_one_metric(metric: Metric, pairs: Sequence[Pair], run: Run) -> Scores:
    return metric.score_pairs(pairs, run) if isinstance(metric, RunAwareMetric) else metric(pairs)
