"""AlignMetric: five parts in a row, and nothing else.

Any metrics over the same pairs: those made of parts share their work, the others run alone.
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
    """Cut into units, give them vectors, compare, align, reduce to a score."""

    units: Splitter = Pieces()
    vectors: Encoder = Transformer()
    similarity: Similarity = Cosine()
    alignment: Solver = Greedy()
    scoring: Reducer = Prf()

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """The scores of the pairs, in order; the best reference counts where there are several."""
        return score_alignment_metrics([self], pairs, Run())[0]

    @property
    def signature(self) -> str:
        """The recipe, with 'auto' settings resolved and files named by content."""
        return make_signature(self)

    @property
    def higher_is_better(self) -> bool:
        """Similar texts score higher."""
        return True

    @property
    def bounds(self) -> tuple[float, float]:
        """The range a score lies in, as far as the similarity and the reducer know theirs."""
        low, high = similarity_bounds(self.similarity)
        if isinstance(self.scoring, BoundedReducer):
            return self.scoring.score_bounds(low, high)
        return (-math.inf, math.inf)


def as_metric(given: Any) -> Metric:
    """A metric from its name, its spec, the folder it was saved in, or the part itself."""
    metric = _metric_from_string(given) if isinstance(given, str) else given
    if isinstance(metric, type):
        raise InputError(f"a metric is wanted, got a class; make one: {metric.__name__}(...)")
    kind = kind_of(metric)
    # By name first: to ask a metric for its shape is to work out its signature.
    if kind == "metric" or (kind is None and isinstance(metric, Metric)):
        return cast(Metric, metric)
    what = f"the {kind} part {spec(metric)}" if kind else f"{type(metric).__name__}"
    raise InputError(f"a metric is wanted, got {what}; `evenmatch list metric` names them")


def _metric_from_string(given: str) -> Any:
    return read_metric(given) if is_metric_path(given) else build(given)


def score_metrics(metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run) -> list[Scores]:
    """The scores of each metric, in the order of `metrics`."""
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
