"""Scores of many metrics with the counts behind their corpus scores."""

from __future__ import annotations

from collections.abc import Sequence

from evenmatch.scoring.keyphrase import KeyphraseMetric
from evenmatch.scoring.keyphrase_shared import judge_keyphrases
from evenmatch.scoring.together import score_together
from evenmatch.types import Array, Metric, Pair, Run, Scores, Totalled


def score_counted(
    metrics: Sequence[Metric], pairs: Sequence[Pair], run: Run
) -> list[tuple[Scores, Array | None]]:
    """Each metric's scores, in order, and a row of counts per pair where it is `Totalled`.

    Metrics of keyphrases share their work, and so do those made of parts.
    """
    if run.on is not None:
        return run.on.share_out(metrics, pairs, run)
    phrases = {n: m for n, m in enumerate(metrics) if isinstance(m, KeyphraseMetric)}
    judged = judge_keyphrases(list(phrases.values()), pairs, run) if phrases else []
    found: dict[int, tuple[Scores, Array | None]] = dict(zip(phrases, judged, strict=True))
    rest: dict[int, Metric] = {}
    for n, metric in enumerate(metrics):
        if n in found:
            continue
        if isinstance(metric, Totalled):
            found[n] = metric.counted(pairs)
        else:
            rest[n] = metric
    scored = score_together(list(rest.values()), pairs, run)
    found |= {n: (scores, None) for n, scores in zip(rest, scored, strict=True)}
    return [found[n] for n in range(len(metrics))]
