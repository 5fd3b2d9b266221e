"""The metric name `all`: the metrics that can run on this machine, and why others cannot."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.models.checkpoints import without_downloads
from evenmatch.registry import find_entry, names
from evenmatch.scoring.metric import as_metric, score_metrics
from evenmatch.types import Pair, Run

ALL_METRICS = "all"

# `align` is what other metrics are made of, `rouge` is `rouge1` by default, `reference_length` and
# the sentinels do not rate a candidate, and the others score lists of phrases instead of texts.
_NON_TEXT_METRICS = frozenset(
    "align rouge reference_length sentinel_length sentinel_random "
    "keyphrases keyphrase_f1 fg fb f1_at_5 f1_at_m f1_at_10 f1_at_o recall_at_10 recall_at_50 "
    "keyphrase_map keyphrase_ndcg keyphrase_alpha_ndcg sem_f1 phrase_scorer".split()
)


_TRIAL_PAIRS = [Pair("a short text", ("a short text",))]


def select_metrics(metrics: Sequence[str], run: Run) -> tuple[list[str], dict[str, str]]:
    """Replace `all` by the names of all metrics that can run; also return why others cannot.

    `all` covers every metric of texts that needs no settings and no download; each is tried on one
    short text first. Metrics named explicitly are not tried.
    """
    reasons: dict[str, str] = {}
    wanted: list[str] = []
    for name in metrics:
        if name != ALL_METRICS:
            wanted.append(name)
            continue
        for each in names("metric"):
            if each in _NON_TEXT_METRICS or _needs_settings(each):
                continue
            if why := _reason_unavailable(each, run):
                reasons[each] = why
            else:
                wanted.append(each)
    wanted = list(dict.fromkeys(wanted))
    if not wanted:
        raise InputError("no metric can run here; `evenmatch models list` shows what is missing")
    return wanted, {name: why for name, why in reasons.items() if name not in wanted}


def _needs_settings(name: str) -> bool:
    settings = inspect.signature(find_entry(name).factory).parameters.values()
    return any(setting.default is inspect.Parameter.empty for setting in settings)


def _reason_unavailable(name: str, run: Run) -> str:
    """Why a metric cannot run, in one line; empty if it can."""
    quiet = Run(run.device, run.threads, run.batch_tokens)
    try:
        with without_downloads():
            score_metrics([as_metric(name)], _TRIAL_PAIRS, quiet)
    except EvenmatchError as error:
        return " ".join(str(error).split())
    return ""
