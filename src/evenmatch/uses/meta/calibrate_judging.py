"""A calibrated metric on other ratings, beside the single metric it has to be better than."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from evenmatch.data.ratings import RatedSet
from evenmatch.data.ratings_reading import names_of
from evenmatch.data.tables import Table
from evenmatch.scoring.ask import name_of
from evenmatch.types import Metric
from evenmatch.uses.meta.agreement import correlate
from evenmatch.uses.meta.agreement_average import averages
from evenmatch.uses.meta.agreement_differences import agreement_differences
from evenmatch.uses.meta.agreement_result import Entry, short


def judge(
    metric: Metric,
    single: Metric,
    sets: Sequence[RatedSet],
    run: Mapping[str, Any],
    *,
    seed: int,
) -> tuple[dict[str, Table], dict[str, Any]]:
    """Agreement of both with people and the difference: for people, and for programs.

    `single` is the metric that was calibrated, or the best of a blend's parts.
    """
    names = {name_of(metric): "calibrated", name_of(single): recipe_of(single)}
    found = correlate([metric, single], sets, "segment", seed=seed, **run)
    pairs = [tuple(names)]
    by_set = agreement_differences(found, pairs)  # type: ignore[arg-type]  # two names
    more = [entry for rows in by_set for entry in rows]
    more += averages(by_set, [each.group for each in found.scored])
    entries = [replace(entry, metric=names[entry.metric]) for entry in found.entries]
    entries += [replace(entry, metric="difference") for entry in more]
    what = f"Agreement on other ratings: {names_of(sets)}"
    rows = [{k: v for k, v in asdict(e).items() if k != "cluster"} for e in entries]
    return {what: _table(entries)}, {"rows": rows}


def recipe_of(metric: Metric) -> str:
    """What a metric is, models in folders by content: what a card can say on any machine."""
    return metric.signature.split(" · ")[0]


def _table(entries: Sequence[Entry]) -> Table:
    body = [
        [e.data, e.subset or "-", e.metric, *map(short, (e.value, e.low, e.high)), str(e.n)]
        for e in entries
    ]
    return [["data", "subset", "metric", "r", "2.5%", "97.5%", "n"], *body]
