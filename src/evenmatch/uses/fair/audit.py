"""audit: how biased metrics are, attribute by attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from evenmatch.data.fair_pairs import FairSet, read_fair_pairs
from evenmatch.data.fair_texts import FairPair
from evenmatch.errors import InputError
from evenmatch.scoring.ask import name_of
from evenmatch.scoring.settings import make_run, shifted
from evenmatch.scoring.together import as_metric, score_together
from evenmatch.stats.arrays import Floats
from evenmatch.types import Metric, Run
from evenmatch.uses.fair.audit_result import PUBLISHED, Audit, Verdict, judged
from evenmatch.uses.fair.bias import Draws

Pairs = str | PathLike[str] | FairSet


def audit(
    metric: str | Metric | Sequence[str | Metric] = "bertscore",
    pairs: Pairs = "",
    *,
    attributes: Sequence[str] = (),
    published: bool = False,
    worst: int = 3,
    confidence: float = 0.95,
    resamples: int = 1000,
    trials: int = 10_000,
    seed: int = 0,
    **run: Any,
) -> Audit:
    """How differently metrics score candidates that differ only in whom they speak of.

    `pairs` is what `read_fair_pairs` takes or gives: nothing for the pairs that come with
    evenmatch. `published` adds the scores that stand beside the pairs. `worst` pairs of each
    attribute and metric are shown. Each attribute is scored for itself, so that what a metric
    counts in its texts (idf) is counted there. `run` is as in `score`.
    """
    found = pairs if isinstance(pairs, FairSet) else read_fair_pairs(pairs, attributes=attributes)
    if worst < 0 or trials < 1 or resamples < 1:
        raise InputError("worst takes 0 or more, trials and resamples 1 or more")
    wanted = [metric] if isinstance(metric, str) or not isinstance(metric, Sequence) else [*metric]
    if not wanted and not published:
        raise InputError("the list of metrics is empty; name at least one, or ask for published")
    ready = {name_of(given): as_metric(given) for given in wanted}
    verdicts = list(_scored(ready, found, make_run(**run)))
    verdicts += _published(found) if published else ()
    return judged(found, verdicts, Draws(confidence, resamples, trials, seed), worst)


def _scored(metrics: Mapping[str, Metric], found: FairSet, run: Run) -> Iterator[Verdict]:
    done = 0
    for attribute, pairs in found.pairs.items():
        if not metrics:
            return
        texts = [text for pair in pairs for text in pair.both]
        part = shifted(run, done, 2 * len(found))
        scores = score_together(list(metrics.values()), texts, part)
        done += len(texts)
        for (name, metric), own in zip(metrics.items(), scores, strict=True):
            values = np.array([score.value for score in own.segments])
            yield Verdict(
                attribute, name, values[::2], values[1::2], own.signature, metric.higher_is_better
            )


def _published(found: FairSet) -> Iterator[Verdict]:
    some = False
    for attribute, pairs in found.pairs.items():
        for name in pairs[0].scores:
            some = True
            yield Verdict(attribute, name, *_columns(pairs, name, attribute), PUBLISHED)
    if not some:
        raise InputError(
            f"{found.name} has no published scores; 'metric-fairness' has, or give lines with "
            "scores_a and scores_b"
        )


def _columns(pairs: Sequence[FairPair], name: str, attribute: str) -> tuple[Floats, Floats]:
    if lacking := [n for n, pair in enumerate(pairs, 1) if name not in pair.scores]:
        raise InputError(f"pair {lacking[0]} about {attribute!r} has no score of {name}; add it")
    both = np.array([pair.scores[name] for pair in pairs])
    return both[:, 0], both[:, 1]
