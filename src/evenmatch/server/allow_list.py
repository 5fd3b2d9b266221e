"""Which metrics a server offers: the only ones a request can name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.models.checkpoints import without_downloads
from evenmatch.models.hidden_states import needs_idf_counts
from evenmatch.protocols import Metric, RunAwareMetric
from evenmatch.scoring.metric import AlignMetric, as_metric, score_metrics
from evenmatch.types import Pair, Run

# Offered where nobody says what to offer; those that cannot run here are left out.
DEFAULT_METRICS = ("f_disc", "bertscore", "f_cont", "struct_dep", "chrf", "bleu", "rougeL")


_WARMUP_PAIRS = [Pair("a short text", ("a short text",))]


@dataclass(frozen=True)
class AllowList:
    """Metrics by the names requests use; the first is taken where a request names none."""

    metrics: Mapping[str, Metric]

    @property
    def names(self) -> list[str]:
        """Every name, the usual choice first."""
        return list(self.metrics)

    @property
    def aligning_names(self) -> list[str]:
        """The names of those that align, and so can be looked at."""
        return [name for name, metric in self.metrics.items() if isinstance(metric, AlignMetric)]


def build_allow_list(wanted: Sequence[str], run: Run) -> AllowList:
    """The metrics named, each tried once so that its model is loaded; without names, the usual.

    A metric that was asked for and cannot run is an error now rather than in every answer.
    """
    if wanted:
        return AllowList({name: _load_metric(name, run) for name in dict.fromkeys(wanted)})
    found = dict(_available_defaults(run))
    if not found:
        raise InputError(
            "no metric can run here; name one with -m, or: evenmatch models get minilm"
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
    """Whether requests may share one call: not where a score or a table is made of a whole call."""
    if isinstance(metric, AlignMetric):
        return not needs_idf_counts(metric.vectors)
    return isinstance(metric, RunAwareMetric)
