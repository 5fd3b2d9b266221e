"""Agreements with their intervals, drawn as points on lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from evenmatch.uses.meta.agreement_result import AVERAGE, Agreement, Entry
from evenmatch.uses.report.fluid import Mark, captioned, figures_part, mark_rows


def intervals_part(agreement: Agreement) -> str:
    """A plot per set, averages in front."""
    sets: dict[tuple[str, str], list[Entry]] = {}
    for entry in agreement.entries:
        sets.setdefault((entry.data, entry.subset), []).append(entry)
    front = sorted(sets, key=lambda key: key[1] != AVERAGE)
    said = "A point is the agreement, its line the interval."
    return figures_part("Intervals", said, [_figure(key, sets[key]) for key in front])


def _figure(key: tuple[str, str], entries: Sequence[Entry]) -> str:
    shown = [entry for entry in entries if not math.isnan(entry.value)]
    shown.sort(key=lambda entry: -entry.value)
    caption = " · ".join(filter(None, key))
    if not shown:
        return f"<figure><figcaption>{escape(caption)}: no correlation</figcaption></figure>"
    return captioned(caption, mark_rows(list(map(_mark, shown))))


def _mark(entry: Entry) -> Mark:
    if math.isnan(entry.low + entry.high):
        return Mark(entry.metric, entry.value)
    return Mark(entry.metric, entry.value, entry.low, entry.high)
