"""The scores of a shard with their counts, as bytes: for uses that go on computing with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from evenmatch.types import Array, Metric, Score, Scores, Totalled

PACKED = ".json"
Counted: TypeAlias = tuple[Scores, Array | None]


def packed(found: Sequence[Counted]) -> bytes:
    """Scores as JSON; every bit of a number stays, also where it is none."""
    return json.dumps([_plain(scores, counts) for scores, counts in found]).encode()


def unpacked(data: bytes) -> list[Counted]:
    """What `packed` was given."""
    return [_counted(own) for own in json.loads(data)]


def _plain(scores: Scores, counts: Array | None) -> dict[str, Any]:
    return {
        "signature": scores.signature,
        "corpus": scores.corpus,
        "segments": [(s.value, s.precision, s.recall, sorted(s.flags)) for s in scores.segments],
        "counts": None if counts is None else counts.tolist(),
    }


def _counted(own: dict[str, Any]) -> Counted:
    segments = tuple(
        Score(value, precision, recall, frozenset(flags))
        for value, precision, recall, flags in own["segments"]
    )
    counts = None if own["counts"] is None else np.array(own["counts"], dtype=np.float64)
    return Scores(segments, own["signature"], own["corpus"]), counts


def chained(metric: Metric, parts: Sequence[Counted]) -> Counted:
    """One metric's scores of all shards; the corpus score comes from the sum of their counts."""
    segments = tuple(chain.from_iterable(scores.segments for scores, _ in parts))
    tables = [table for _, table in parts if table is not None]
    counts = np.concatenate(tables) if tables else None
    corpus = None
    if isinstance(metric, Totalled) and counts is not None and parts[0][0].corpus is not None:
        corpus = float(metric.of_totals(counts.sum(0)))
    return Scores(segments, parts[0][0].signature, corpus), counts
