"""The table of agreements and the ranking of metrics, as HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from evenmatch.uses.meta.agreement_result import AVERAGE, Agreement, Entry, short


def table_part(agreement: Agreement) -> str:
    """Every entry in a table that sorts by any column at a click."""
    header, *rows = agreement.table()
    text = {0, 1, 2}
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{escape(name)}</button></th>'
        for name in header
    )
    body = "\n".join(
        "<tr>" + "".join(_cell(cell, i not in text) for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return (
        "<section>\n<h2>All values</h2>\n<p>Metrics of one cluster do not differ significantly; "
        "1 is the best. A column's name sorts by it.</p>\n"
        '<div class="wide" role="region" tabindex="0" aria-label="all values">'
        f'<table class="sorted"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
        "</div>\n</section>"
    )


def ranking_part(agreement: Agreement) -> str:
    """Metrics from the best to the worst on each data set."""
    parts = []
    for data in dict.fromkeys(entry.data for entry in agreement.entries):
        own = [entry for entry in agreement.entries if entry.data == data]
        parts.append(_ranking(data, own))
    return "<section>\n<h2>Ranking</h2>\n" + "\n".join(parts) + "\n</section>"


def _ranking(data: str, entries: Sequence[Entry]) -> str:
    single = [entry for entry in entries if entry.subset != AVERAGE]
    sets = len({entry.subset for entry in single})
    shown = sorted(headline(entries), key=lambda entry: _order(entry, sets))
    rows = []
    for place, entry in enumerate(shown, 1):
        own = [e for e in single if e.metric == entry.metric]
        count = entry.n if entry.subset == AVERAGE else 1
        best = sum(e.cluster == 1 for e in own)
        tested = sum(e.cluster is not None for e in own)
        cells = [str(place), entry.metric, *map(short, (entry.value, entry.low, entry.high))]
        cells += [str(count), f"{best} of {tested}" if tested else "-"]
        rows.append("<tr>" + "".join(_cell(c, i != 1) for i, c in enumerate(cells)) + "</tr>")
    what = "mean agreement" if sets > 1 else "agreement"
    names = ("place", "metric", what, "low", "high", "sets", "in the first cluster")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        '<div class="wide" role="region" tabindex="0" '
        f'aria-label="ranking on {escape(data, quote=True)}"><table>'
        f"<caption>{escape(data)}, {sets} set{'s' if sets > 1 else ''}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def headline(entries: Sequence[Entry]) -> list[Entry]:
    """One entry per metric: its average over the sets, or the only one it has."""
    found = {entry.metric: entry for entry in entries}
    return list(found.values())


def _order(entry: Entry, sets: int) -> tuple[bool, float]:
    """The better first; means over fewer sets are on other data, and come last."""
    complete = sets == 1 or (entry.subset == AVERAGE and entry.n == sets)
    return not complete, math.inf if math.isnan(entry.value) else -entry.value


def _cell(text: str, number: bool) -> str:
    return f'<td class="number">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"
