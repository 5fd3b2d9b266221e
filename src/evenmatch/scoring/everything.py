"""Every metric that can judge a text here and now, and why the others cannot."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from evenmatch.errors import EvenmatchError, InputError
from evenmatch.registry import entry, names
from evenmatch.scoring.together import as_metric, score_together
from evenmatch.types import Pair, Run
from evenmatch.vectors.checkpoints import without_downloads

ALL = "all"
# `align` is what the metrics above it are made of, a length is no judgement, and the others read
# lists of phrases and not texts.
_NOT_OF_TEXTS = frozenset(
    "align reference_length keyphrases keyphrase_f1 fg fb f1_at_5 f1_at_m phrase_scorer".split()
)
_TRIAL = [Pair("a short text", ("a short text",))]


def chosen(metrics: Sequence[str], run: Run) -> tuple[list[str], dict[str, str]]:
    """The metrics meant, `all` spelt out, and why some of them cannot run.

    `all` is every metric of texts that needs no settings and no download; each is tried on one
    short text first. What is named beside it is taken as it is.
    """
    reasons: dict[str, str] = {}
    wanted: list[str] = []
    for name in metrics:
        for each in _of_texts() if name == ALL else (name,):
            why = _why_not(each, run) if name == ALL else ""
            if why:
                reasons[each] = why
            elif each not in wanted:
                wanted.append(each)
    if not wanted:
        raise InputError("no metric can run here; `evenmatch models list` says what is missing")
    return wanted, {name: why for name, why in reasons.items() if name not in wanted}


def _of_texts() -> Iterator[str]:
    for name in names("metric"):
        if name not in _NOT_OF_TEXTS and not _needs_settings(name):
            yield name


def _needs_settings(name: str) -> bool:
    settings = inspect.signature(entry(name).make).parameters.values()
    return any(setting.default is inspect.Parameter.empty for setting in settings)


def _why_not(name: str, run: Run) -> str:
    """The one line that says why a metric cannot run, or nothing."""
    quiet = Run(run.device, run.threads, run.batch_tokens)
    try:
        with without_downloads():
            score_together([as_metric(name)], _TRIAL, quiet)
    except EvenmatchError as error:
        return " ".join(str(error).split())
    return ""
