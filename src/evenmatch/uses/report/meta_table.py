"""The table of agreements and the ranking of metrics, as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenmatch.uses.meta.agreement_result import AVERAGE, Agreement, Entry, short
from evenmatch.uses.report.sorted_table import sorted_table
from evenmatch.uses.report.whole_page import section


def table_part(agreement: Agreement) -> str:
    """Every entry in a table that sorts by any column at a click."""
    table = sorted_table(agreement.table(), "Agreement of each metric on each set")
    said = (
        "Metrics of one cluster do not differ significantly; 1 is the best. "
        "A column's name sorts by it."
    )
    return section("All values", said, table)


def ranking_part(agreement: Agreement) -> str:
    """Metrics from the best to the worst on each data set."""
    parts = []
    for data in dict.fromkeys(entry.data for entry in agreement.entries):
        own = [entry for entry in agreement.entries if entry.data == data]
        parts.append(_ranking(data, own))
    return section("Ranking", "", "\n".join(parts))


def _ranking(data: str, entries: Sequence[Entry]) -> str:
    single = [entry for entry in entries if entry.subset != AVERAGE]
    sets = len({entry.subset for entry in single})
    shown = sorted(headline(entries), key=lambda entry: _order(entry, sets))
    what = "mean agreement" if sets > 1 else "agreement"
    table = [["place", "metric", what, "low", "high", "sets", "in the first cluster"]]
    for place, entry in enumerate(shown, 1):
        own = [e for e in single if e.metric == entry.metric]
        count = entry.n if entry.subset == AVERAGE else 1
        best = sum(e.cluster == 1 for e in own)
        tested = sum(e.cluster is not None for e in own)
        cells = [str(place), entry.metric, *map(short, (entry.value, entry.low, entry.high))]
        table.append([*cells, str(count), f"{best} of {tested}" if tested else "-"])
    return sorted_table(table, f"{data}, {sets} set{'s' if sets > 1 else ''}")


def headline(entries: Sequence[Entry]) -> list[Entry]:
    """One entry per metric: its average over the sets, or the only one it has."""
    found = {entry.metric: entry for entry in entries}
    return list(found.values())


def _order(entry: Entry, sets: int) -> tuple[bool, float]:
    """The better first; means over fewer sets are on other data, and come last."""
    complete = sets == 1 or (entry.subset == AVERAGE and entry.n == sets)
    return not complete, math.inf if math.isnan(entry.value) else -entry.value
