"""Building blocks of report pages: the page itself, sections, sortable tables, and writing.

Pages are self-contained: style and script are inlined, and a content security policy forbids
loading anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenmatch.data.tables import TextTable
from evenmatch.errors import EvenmatchError, InputError
from evenmatch.protocols import Metric
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.metric import as_metric
from evenmatch.viewer.page import scroll_region, viewer_script, viewer_style

SORT_HINT = "Click a column heading to sort the table."
_PAGE_SUFFIXES = (".html", ".htm")

# Texts in a page come from users, so the page must not be able to load or send anything.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)

# A number, optionally followed by a total, significance stars, an interval in brackets and a
# p-value; "-" is missing.
_NUMBER = re.compile(
    r"-|[-+]?\d[\d.]*(e[-+]?\d+)?( of \d+)?\**\s*([\[(].*[\])](, p [=<] [\d.]+)?)?\s*\**"
)

_LONG_TEXT = 40  # characters; columns with longer cells wrap and get a minimum width
_TINY, _LARGE = 1e-3, 1e4  # between them numbers have four decimals


def render_page(
    title: str,
    parts: Iterable[str],
    notes: Iterable[str],
    command: str = "",
    *,
    viewer: bool = False,
) -> str:
    """Return a self-contained HTML page; empty parts are skipped.

    The last section has the notes (settings and signatures) and the command that produced the
    result. With `viewer`, the page includes the script of the interactive alignment viewer.
    """
    escaped = escape(title)
    style = read_resource("plots.css") + read_resource("page.css") + viewer_style()
    script = f"<script>\n{read_resource('sorting.js')}</script>\n" + (
        viewer_script() if viewer else ""
    )
    made = f'<p>Produced by <code class="command">{escape(command)}</code></p>\n' if command else ""
    last = section("Settings and signatures", "", made + bullet_list(notes, ' class="notes"'))
    content = "\n".join(filter(None, [*parts, last]))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{escaped}</h1>\n{content}\n</main>\n{script}\n</body>\n</html>\n"
    )


def section(heading: str, text: str, content: str) -> str:
    """Return a section with a heading and an introductory text; '' if `content` is empty."""
    intro = f"<p>{escape(text)}</p>\n" if text else ""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{intro}{content}\n</section>" if content else ""


def bullet_list(lines: Iterable[str], attributes: str = "") -> str:
    """Return lines of text as a list; '' if there are none."""
    items = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return f"<ul{attributes}>\n{items}</ul>" if items else ""


@check_arguments
def check_page_path(path: str | Path) -> Path:
    """Return the path of a page; raise InputError if no page can be written there."""
    target = Path(path)
    if target.suffix.lower() not in _PAGE_SUFFIXES:
        raise InputError(
            f"the name of a report must end in {' or '.join(_PAGE_SUFFIXES)}, got {target.name!r}"
        )
    if not target.absolute().parent.is_dir():
        raise InputError(f"there is no folder {target.parent} for {target.name}; create it first")
    return target


def write_page(page: str, path: str | Path) -> Path:
    """Write a page and return its path."""
    target = check_page_path(path)
    try:
        target.write_text(page, "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    return target


@cache
def read_resource(name: str) -> str:
    """Return a file of this folder: a style sheet or a script."""
    return files("evenmatch.reports").joinpath(name).read_text("utf-8")


def sortable_table(table: TextTable, caption: str) -> str:
    """Return a table with a caption; the column headings are buttons that sort it."""
    header, *rows = table
    kinds = [_column_class(column) for column in zip(*rows, strict=True)] or [""] * len(header)
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
    return _table("sorted", caption, head, body)


def heat_table(columns: Iterable[str], rows: Mapping[str, Iterable[str]], caption: str) -> str:
    """Return a table of coloured cells, given as HTML by row; the headings are escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'
        for name, cells in rows.items()
    )
    return _table("heat", caption, f"<td></td>{head}", body)


def _table(kind: str, caption: str, head: str, body: str) -> str:
    return scroll_region(
        f'<table class="{kind}"><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>",
        caption,
    )


def text_article(where: str, scores: str, texts: Iterable[tuple[str, str]], more: str = "") -> str:
    """Return texts by name, with a line that says where they are from; `scores` is HTML."""
    listed = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text) or '(empty)'}</dd>" for name, text in texts
    )
    numbers = f"<p>{scores}</p>\n" if scores else ""
    return f'<article>\n<p class="where">{where}</p>\n{numbers}<dl>{listed}</dl>\n{more}</article>'


def record_table(records: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return records with the same fields as a table of texts; an interval is one cell.

    >>> record_table([{"by": "lsa", "mean": 0.5, "gap": {"value": 1, "low": 0, "high": 2}}])[1]
    ['lsa', '0.5000', '1 [0, 2]']
    """
    fields = list(dict.fromkeys(name for record in records for name in record))
    names = [name.replace("_", " ") for name in fields]
    return [names, *([format_cell(record.get(name)) for name in fields] for record in records)]


def format_cell(value: Any) -> str:
    """Return a value as text for a table; a dash if it is missing.

    >>> [format_cell(value) for value in (None, 0.123456, 0.00001, True, ["a", 2])]
    ['-', '0.1235', '1.00e-05', 'yes', 'a, 2']
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
            middle, low, high = (format_cell(value[name]) for name in ("value", "low", "high"))
            return f"{middle} [{low}, {high}]"
        return ", ".join(f"{name} {format_cell(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(format_cell, value))
    return str(value)


def _column_class(column: Sequence[str]) -> str:
    if all(map(_NUMBER.fullmatch, column)):
        return ' class="number"'
    return ' class="text"' if max(map(len, column)) > _LONG_TEXT else ""


def metric_if_available(name: str) -> Metric | None:
    """Return the metric with that name or spec, or None if it is not available here."""
    try:
        return as_metric(name)
    except EvenmatchError:
        return None
