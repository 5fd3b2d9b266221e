"""Allow-list of a server: the only metrics that requests can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.models.checkpoints import without_downloads
from evenmatch.protocols import CorpusMetric, Metric
from evenmatch.registry import CallContext
from evenmatch.registry.opening import Openable, count_idf
from evenmatch.scoring.metric import AlignMetric, as_metric, score_metrics
from evenmatch.types import Pair, Run

# Metrics served by default; those that cannot run on this machine are left out.
DEFAULT_METRICS = ("f_disc", "bertscore", "f_cont", "struct_dep", "chrf", "bleu", "rougeL")


_WARMUP_PAIRS = [Pair("a short text", ("a short text",))]


@dataclass(frozen=True)
class AllowList:
    """The served metrics by name; the first is the default of requests."""

    metrics: Mapping[str, Metric]

    @property
    def names(self) -> list[str]:
        """Names of all metrics, the default first."""
        return list(self.metrics)

    @property
    def aligning_names(self) -> list[str]:
        """Names of the alignment metrics, whose alignments can be shown."""
        return [name for name, metric in self.metrics.items() if isinstance(metric, AlignMetric)]


def build_allow_list(wanted: Sequence[str], run: Run) -> AllowList:
    """Build the metrics and score one pair with each, so that its model is loaded.

    Without names, the default metrics that can run are used. A named metric that cannot run raises
    an error at startup rather than in every request.
    """
    if wanted:
        return AllowList({name: _load_metric(name, run) for name in dict.fromkeys(wanted)})
    found = dict(_available_defaults(run))
    if not found:
        raise InputError(
            "none of the default metrics can run; name a metric with -m, or run: "
            "evenmatch models get minilm"
        )
    return AllowList(found)


def _available_defaults(run: Run) -> Iterator[tuple[str, Metric]]:
    for name in DEFAULT_METRICS:
        try:
            with without_downloads():
                yield name, _load_metric(name, run)
        except EvenmatchError:
            continue


def _load_metric(name: str, run: Run) -> Metric:
    metric = as_metric(name)
    score_metrics([metric], _WARMUP_PAIRS, run)
    return metric


def can_batch(metric: Metric) -> bool:
    """Whether several requests can be scored in one call.

    This is not possible where a call counts idf or computes a corpus score over all its pairs.
    """
    if isinstance(metric, CorpusMetric) or not isinstance(metric, Openable):
        return False
    counted: bool = count_idf(metric, CallContext(pairs=_WARMUP_PAIRS)) != metric
    return not counted
