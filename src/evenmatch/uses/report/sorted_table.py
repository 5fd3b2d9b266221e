"""Tables whose columns sort, by click and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from evenmatch.data.tables import Table
from evenmatch.uses.report.whole_page import scrolled

# A number, perhaps signed, with an interval, a total or stars behind it; a dash stands for none.
_NUMBER = re.compile(r"-|[-+]?\d[\d.]*(e[-+]?\d+)?( of \d+)?\s*([\[(].*[\])])?\s*\**")

_LONG = 40  # letters; from then on a cell is a text that needs room
_TINY, _LARGE = 1e-3, 1e4  # between them four decimals say enough


def sorted_table(table: Table, caption: str) -> str:
    """A table with a caption; a column's name is a button that sorts by it."""
    header, *rows = table
    kinds = [_kind(column) for column in zip(*rows, strict=True)] or [""] * len(header)
    head = "".join(
        f'<th scope="col" aria-sort="none"{kind}><button type="button">{escape(name)}</button></th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    return scrolled(
        f'<table class="sorted"><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>",
        caption,
    )


def record_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """Records of the same fields as people read them; an interval is one cell.

    >>> record_table([{"by": "lsa", "mean": 0.5, "gap": {"value": 1, "low": 0, "high": 2}}])[1]
    ['lsa', '0.5000', '1 [0, 2]']
    """
    fields = list(dict.fromkeys(name for record in records for name in record))
    names = [name.replace("_", " ") for name in fields]
    return [names, *([cell(record.get(name)) for name in fields] for record in records)]


def cell(value: Any) -> str:
    """A value as people read it; a dash for none.

    >>> cell(None), cell(0.123456), cell(0.00001), cell(True), cell(["a", 2])
    ('-', '0.1235', '1.00e-05', 'yes', 'a, 2')
    """
    if value is None or value != value:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        tiny = 0 < abs(value) < _TINY
        return f"{value:.2e}" if tiny else f"{value:.4f}" if abs(value) < _LARGE else f"{value:.0f}"
    if isinstance(value, Mapping):
        if set(value) == {"value", "low", "high"}:
            return "{} [{}, {}]".format(*(cell(value[name]) for name in ("value", "low", "high")))
        return ", ".join(f"{name} {cell(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(cell, value))
    return str(value)


def _kind(column: Sequence[str]) -> str:
    if all(map(_NUMBER.fullmatch, column)):
        return ' class="number"'
    return ' class="text"' if max(map(len, column)) > _LONG else ""
