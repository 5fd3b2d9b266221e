"""Scores of a shard as sums, small enough for the record, and those of all shards together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from evenmatch.scoring.tally import Tally
from evenmatch.types import Array, Metric, Scores, Totalled


def tally_of(scores: Scores, counts: Array | None) -> dict[str, Any]:
    """What the record keeps of one metric's scores of a shard."""
    tally = Tally().plus(scores)
    kept: dict[str, Any] = {
        "count": tally.count,
        "value": tally.value,
        "precision": tally.precision,
        "recall": tally.recall,
        "signature": tally.signature,
    }
    if scores.corpus is not None:
        kept["corpus"] = {"totals": None if counts is None else counts.sum(0).tolist()}
    return kept


def joined(metric: Metric, kept: Sequence[Mapping[str, Any]]) -> Tally:
    """One metric's tally over all shards; the corpus score where counts can be summed."""
    return Tally(
        sum(own["count"] for own in kept),
        math.fsum(own["value"] for own in kept),
        _sum(own["precision"] for own in kept),
        _sum(own["recall"] for own in kept),
        kept[0]["signature"],
        _corpus(metric, kept),
    )


def _corpus(metric: Metric, kept: Sequence[Mapping[str, Any]]) -> float | None:
    totals = [own["corpus"]["totals"] for own in kept if "corpus" in own]
    if len(totals) < len(kept) or None in totals or not isinstance(metric, Totalled):
        return None
    return float(metric.of_totals(np.sum(totals, axis=0)))


def _sum(values: Iterable[float | None]) -> float | None:
    given = list(values)
    known = [value for value in given if value is not None]
    return math.fsum(known) if len(known) == len(given) else None
