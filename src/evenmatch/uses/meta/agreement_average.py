"""The mean agreement over language pairs or criteria, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenmatch.uses.meta.agreement_result import AVERAGE, Entry


def averages(by_set: Sequence[Sequence[Entry]], groups: Sequence[int]) -> list[Entry]:
    """A row per metric that several sets have, its `n` the number of sets with a value.

    Distances to the bounds add up as squares where sets are independent (Zou & Donner 2008). Sets
    with the same number in `groups` are over the same texts: there the bounds are averaged, which
    is right if they vary together and else too wide.
    """
    if len(by_set) < 2:
        return []
    metrics = dict.fromkeys(entry.metric for rows in by_set for entry in rows)
    found = []
    for metric in metrics:
        own = [
            (entry, group)
            for rows, group in zip(by_set, groups, strict=True)
            for entry in rows
            if entry.metric == metric
        ]
        if len(own) > 1:
            found.append(_average([e for e, _ in own], [g for _, g in own]))
    return found


def _average(entries: Sequence[Entry], groups: Sequence[int]) -> Entry:
    known = [(e, g) for e, g in zip(entries, groups, strict=True) if not math.isnan(e.value)]
    value = math.fsum(e.value for e, _ in known) / len(known) if known else math.nan
    below = _distance([(e.value - e.low, g) for e, g in known])
    above = _distance([(e.high - e.value, g) for e, g in known])
    first = entries[0]
    return Entry(
        data=first.data,
        subset=AVERAGE,
        metric=first.metric,
        level=first.level,
        method=first.method,
        value=value,
        n=len(known),
        low=value - below,
        high=value + above,
        cluster=None,
    )


def _distance(sides: Sequence[tuple[float, int]]) -> float:
    """How far the bound of a mean lies from it, given how far those of its terms do.

    >>> _distance([(0.3, 0), (0.4, 1)]), _distance([(0.3, 0), (0.4, 0)])
    (0.25, 0.35)
    """
    if not sides:
        return math.nan
    together: dict[int, float] = {}
    for side, group in sides:
        together[group] = together.get(group, 0.0) + side
    return math.sqrt(math.fsum(total**2 for total in together.values())) / len(sides)
