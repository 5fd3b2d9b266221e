"""Allow-list of a server: the only metrics that requests can use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.models.checkpoints import without_downloads
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.registry import CallContext
from evenmatch.registry.opening import Openable, count_idf
from evenmatch.scoring.metric import TRIAL_PAIRS, as_metric, score_metrics
from evenmatch.types import Run

# Metrics served by default; those that cannot run on this machine are left out.
DEFAULT_METRICS = ("f_disc", "bertscore", "f_cont", "struct_dep", "chrf", "bleu", "rougeL")


def build_allow_list(wanted: Sequence[str], run: Run) -> dict[str, Metric]:
    """Build the metrics by name and score one pair with each, so that its model is loaded.

    The first is the default of requests. Without names, the default metrics that can run are used.
    A named metric that cannot run raises an error at startup rather than in every request.
    """
    if wanted:
        return {name: _load_metric(name, run) for name in dict.fromkeys(wanted)}
    found = {}
    for name in DEFAULT_METRICS:
        with suppress(EvenmatchError), without_downloads():
            found[name] = _load_metric(name, run)
    if not found:
        raise InputError(
            "none of the default metrics can run; name a metric with -m, or run: "
            "evenmatch models get minilm"
        )
    return found


def _load_metric(name: str, run: Run) -> Metric:
    metric = as_metric(name)
    score_metrics([metric], TRIAL_PAIRS, run)
    return metric


def can_batch(metric: Metric) -> bool:
    """Whether several requests can be scored in one call.

    This is not possible where a call counts idf or computes a corpus score over all its pairs.
    """
    if isinstance(metric, CorpusMetric) or not isinstance(metric, Openable):
        return False
    counted: bool = count_idf(metric, CallContext(pairs=TRIAL_PAIRS)) != metric
    return not counted
