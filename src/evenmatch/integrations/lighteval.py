"""Metrics for Hugging Face's lighteval.

A task lists the metric among its own: `metrics=[em.for_lighteval("f_disc")]`. The references of a
document are its gold choices, and the candidate is the model's first text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.api import metric_name
from evenmatch.errors import InputError, needs_extra
from evenmatch.protocols import Metric
from evenmatch.scoring.inputs import make_run
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.types import Pair, Run


@dataclass(frozen=True)
class LightevalScores:
    """What lighteval calls: the scores of a list of responses, or the score of a single one."""

    metric: Metric
    run: Run

    def compute(
        self,
        doc: Any = None,
        model_response: Any = None,
        *,
        docs: Sequence[Any] = (),
        responses: Sequence[Any] = (),
        **more: Any,
    ) -> Any:
        """Return one score for each of `docs` and `responses`, or a number for a single one."""
        if doc is not None:
            return self.compute(docs=[doc], responses=[model_response])[0]
        if len(docs) != len(responses):
            raise InputError(f"{len(docs)} documents but {len(responses)} responses are given")
        pairs = [_to_pair(*each) for each in zip(docs, responses, strict=True)]
        return [score.value for score in score_metrics([self.metric], pairs, self.run)[0].segments]


def for_lighteval(metric: str | Metric = "bertscore", *, name: str = "", **run: Any) -> Any:
    """Make a sample-level metric for lighteval from the name, spec or object of a metric.

    All responses of a task are scored in one pass; lighteval averages the scores. `name` is the
    column of its results, by default the metric's name. `run` settings are those of `score`.
    """
    with needs_extra(
        "this needs lighteval, version 0.11 or later; install it with: pip install lighteval"
    ):
        from lighteval.metrics.metrics_sample import SampleLevelComputation
        from lighteval.metrics.utils.metric_utils import SampleLevelMetric
        from lighteval.tasks.requests import SamplingMethod
    SampleLevelComputation.register(LightevalScores)
    built = as_metric(metric)
    return SampleLevelMetric(
        metric_name=name or metric_name(metric),
        higher_is_better=built.higher_is_better,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=LightevalScores(built, make_run(**run)),
        corpus_level_fn=np.mean,
        batched_compute=True,
    )


def _to_pair(doc: Any, response: Any) -> Pair:
    golds = doc.get_golds()
    texts = response.final_text
    if not golds or not texts:
        what = "gold choice" if not golds else "text in its response"
        raise InputError(f"the document {doc.query[:40]!r} has no {what}; metrics need both")
    return Pair(texts[0], tuple(golds))
