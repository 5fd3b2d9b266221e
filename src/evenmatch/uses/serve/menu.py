"""Which metrics a server offers: the only ones a request can name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.together import as_metric, score_together
from evenmatch.types import Carried, Metric, Pair, Run
from evenmatch.vectors.checkpoints import without_downloads
from evenmatch.vectors.states import needs_counting

# Offered where nobody says what to offer; those that cannot run here are left out.
USUAL = ("f_disc", "bertscore", "f_cont", "struct_dep", "chrf", "bleu", "rougeL")
_TRIAL = [Pair("a short text", ("a short text",))]


@dataclass(frozen=True)
class Menu:
    """Metrics by the names requests use; the first is taken where a request names none."""

    metrics: Mapping[str, Metric]

    @property
    def names(self) -> list[str]:
        """Every name, the usual choice first."""
        return list(self.metrics)

    @property
    def aligning(self) -> list[str]:
        """The names of those that align, and so can be looked at."""
        return [name for name, metric in self.metrics.items() if isinstance(metric, AlignMetric)]


def make_menu(wanted: Sequence[str], run: Run) -> Menu:
    """The metrics named, each tried once so that its model is loaded; without names, the usual.

    A metric that was asked for and cannot run is an error now rather than in every answer.
    """
    if wanted:
        return Menu({name: _tried(name, run) for name in dict.fromkeys(wanted)})
    found = dict(_usual(run))
    if not found:
        raise InputError(
            "no metric can run here; name one with -m, or: evenmatch models get minilm"
        )
    return Menu(found)


def _usual(run: Run) -> Iterator[tuple[str, Metric]]:
    for name in USUAL:
        try:
            with without_downloads():
                yield name, _tried(name, run)
        except EvenmatchError:
            continue


def _tried(name: str, run: Run) -> Metric:
    metric = as_metric(name)
    score_together([metric], _TRIAL, run)
    return metric


def joins(metric: Metric) -> bool:
    """Whether requests may share one call: not where a score or a table is made of a whole call."""
    if isinstance(metric, AlignMetric):
        return not needs_counting(metric.vectors)
    return isinstance(metric, Carried)
