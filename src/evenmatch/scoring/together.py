"""Any metrics over the same pairs: those made of parts share their work, the others run alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from evenmatch.errors import InputError
from evenmatch.registry import build, kind_of, spec
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.saved import is_path, read_metric
from evenmatch.scoring.shared import score_aligned
from evenmatch.types import Carried, Metric, Pair, Run, Scores


def as_metric(given: Any) -> Metric:
    """A metric from its name, its spec, the folder it was saved in, or the part itself."""
    metric = _read(given) if isinstance(given, str) else given
    if isinstance(metric, type):
        raise InputError(f"a metric is wanted, got a class; make one: {metric.__name__}(...)")
    kind = kind_of(metric)
    # By name first: to ask a metric for its shape is to work out its signature.
    if kind == "metric" or (kind is None and isinstance(metric, Metric)):
        return cast(Metric, metric)
    what = f"the {kind} {spec(metric)}" if kind else f"{type(metric).__name__}"
    raise InputError(f"a metric is wanted, got {what}; `evenmatch list metric` names them")


def _read(given: str) -> Any:
    return read_metric(given) if is_path(given) else build(given)


def score_together(metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run) -> list[Scores]:
    """The scores of each metric, in the order of `metrics`."""
    if run.on is not None:
        return [scores for scores, _ in run.on.share_out(metrics, pairs, run)]
    aligned = [m for m in metrics if isinstance(m, AlignMetric)]
    shared = dict(zip(aligned, score_aligned(aligned, pairs, run), strict=True)) if aligned else {}
    return [shared[m] if isinstance(m, AlignMetric) else _alone(m, pairs, run) for m in metrics]


def _alone(metric: Metric, pairs: Sequence[Pair], run: Run) -> Scores:
    return metric.carry_out(pairs, run) if isinstance(metric, Carried) else metric(pairs)
