"""An audit as one page that stands alone."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path

from evenmatch.errors import InputError
from evenmatch.uses.fair.audit_result import Audit
from evenmatch.uses.report.audit_bars import bars_part, directions_part
from evenmatch.uses.report.audit_pairs import pairs_part
from evenmatch.uses.report.meta_page import check_page

_STYLES = (("evenmatch.uses.report", "meta.css"), ("evenmatch.viewer", "style.css"))
_OWN = """svg .bar { fill: var(--mark); opacity: .75; }
svg .bound { stroke: var(--ink); stroke-width: 1.4; }
"""


def write_audit(audit: Audit, path: str | Path) -> Path:
    """Write the page of an audit and give its path."""
    place = check_page(path)
    try:
        place.write_text(audit_page(audit), "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror}") from None
    return place


def audit_page(audit: Audit) -> str:
    """Bars, the table, the worst pairs; nothing is loaded from elsewhere."""
    title = escape(f"Social bias of metrics: {audit.data}")
    parts = (bars_part(audit), directions_part(audit), _table(audit), pairs_part(audit))
    style = "".join(map(_text, _STYLES)) + _OWN
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{title}</h1>\n"
        + "\n".join(filter(None, parts))
        + f"\n{_notes(audit)}\n</main>\n"
        f"<script>\n{_text(('evenmatch.uses.report', 'meta.js'))}</script>\n</body>\n</html>\n"
    )


def _table(audit: Audit) -> str:
    header, *rows = audit.table()
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{escape(name)}</button></th>'
        for name in header
    )
    body = "\n".join("<tr>" + "".join(map(_cell, range(len(row)), row)) + "</tr>" for row in rows)
    return (
        "<section>\n<h2>All values</h2>\n<p>A column's name sorts by it.</p>\n"
        '<div class="wide" role="region" tabindex="0" aria-label="all values">'
        f'<table class="sorted"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
        "</div>\n</section>"
    )


def _cell(column: int, text: str) -> str:
    return f'<td class="number">{escape(text)}</td>' if column > 1 else f"<td>{escape(text)}</td>"


def _notes(audit: Audit) -> str:
    lines = "".join(f"<li>{escape(note)}</li>\n" for note in audit.notes())
    return f'<section>\n<h2>What this rests on</h2>\n<ul class="notes">\n{lines}</ul>\n</section>'


def _text(place: tuple[str, str]) -> str:
    return files(place[0]).joinpath(place[1]).read_text("utf-8")
