"""Agreement with people as one page that stands alone."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from evenmatch.errors import InputError
from evenmatch.uses.meta.agreement_result import Agreement
from evenmatch.uses.report.meta_heat import likeness_part
from evenmatch.uses.report.meta_intervals import intervals_part
from evenmatch.uses.report.meta_scatter import scatter_part
from evenmatch.uses.report.meta_table import ranking_part, table_part
from evenmatch.uses.report.meta_texts import texts_part

_SUFFIXES = (".html", ".htm")


def write_report(agreement: Agreement, path: str | Path) -> Path:
    """Write the page of an agreement and give its path."""
    place = check_page(path)
    try:
        place.write_text(agreement_page(agreement), "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {place}: {error.strerror}") from None
    return place


def check_page(path: str | Path) -> Path:
    """The path of a page; refused before any work is done where it is none."""
    place = Path(path)
    if place.suffix.lower() not in _SUFFIXES:
        raise InputError(
            f"a page's name ends in {' or '.join(_SUFFIXES)}, got {place.name!r}; rename it"
        )
    if not place.absolute().parent.is_dir():
        raise InputError(f"there is no folder {place.parent} for {place.name}; make it first")
    return place


def agreement_page(agreement: Agreement) -> str:
    """The table, the ranking, plots and disputed texts; nothing is loaded from elsewhere."""
    first = agreement.entries[0]
    data = ", ".join(dict.fromkeys(entry.data for entry in agreement.entries))
    title = escape(f"Agreement with people: {data}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>\n{_text('meta.css')}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{title}</h1>\n"
        f"<p>Method {escape(first.method)}, level {escape(first.level)}.</p>\n"
        f"{_parts(agreement)}\n{_notes(agreement)}\n</main>\n"
        f"<script>\n{_text('meta.js')}</script>\n</body>\n</html>\n"
    )


def _parts(agreement: Agreement) -> str:
    parts = (
        ranking_part(agreement),
        intervals_part(agreement),
        table_part(agreement),
        scatter_part(agreement),
        likeness_part(agreement),
        texts_part(agreement),
    )
    return "\n".join(part for part in parts if part)


def _notes(agreement: Agreement) -> str:
    lines = "".join(f"<li>{escape(note)}</li>\n" for note in agreement.notes())
    return f'<section>\n<h2>What this rests on</h2>\n<ul class="notes">\n{lines}</ul>\n</section>'


@cache
def _text(name: str) -> str:
    return files("evenmatch.uses.report").joinpath(name).read_text("utf-8")
