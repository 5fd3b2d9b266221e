"""A study as a folder to look at: its figures as SVG, its tables as TSV, and one page of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from evenmatch.data.tables import Table, as_tsv

_STYLE = """
:root { --paper: #fff; --ink: #212529; --quiet: #5c636a; --line: #dee2e6; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16191d; --ink: #e9ecef; --quiet: #a8b0b8; --line: #343a40; }
}
body { margin: 0; background: var(--paper); color: var(--ink); }
body { font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 3rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .4rem; } figure { margin: 1rem 0; overflow-x: auto; }
figure svg { border-radius: 6px; } .wide { overflow-x: auto; } .notes { color: var(--quiet); }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: left; }
td { white-space: nowrap; }
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What a study found: lines to read first, tables by name, figures by name, notes."""

    title: str
    findings: Sequence[str]
    tables: Mapping[str, Table]
    figures: Mapping[str, str]
    notes: Sequence[str]

    @property
    def document(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {
            "title": self.title,
            "findings": list(self.findings),
            "tables": {name: [list(row) for row in table] for name, table in self.tables.items()},
            "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    def write(self, folder: Path) -> Path:
        """Write all of it into a folder; gives the page's path."""
        for name, table in self.tables.items():
            (folder / f"{name}.tsv").write_text(as_tsv(table) + "\n", "utf-8")
        for name, figure in self.figures.items():
            (folder / f"{name}.svg").write_text(figure, "utf-8")
        (folder / "result.json").write_text(json.dumps(self.document, indent=1), "utf-8")
        page = folder / "index.html"
        page.write_text(self.page(), "utf-8")
        return page

    def page(self) -> str:
        """One page that stands alone."""
        title = escape(self.title)
        figures = "\n".join(f"<figure>{figure}</figure>" for figure in self.figures.values())
        tables = "\n".join(_table(name, table) for name, table in self.tables.items())
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<h1>{title}</h1>\n{_items(self.findings)}\n{figures}\n{tables}\n"
            f"<h2>What this rests on</h2>\n{_items(self.notes)}\n</main>\n</body>\n</html>\n"
        )


def _items(lines: Sequence[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{escape(line)}</li>\n" for line in lines) + "</ul>"


def _table(name: str, table: Table) -> str:
    header, *rows = table
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<h2>{escape(name)}</h2>\n<div class="wide" role="region" tabindex="0" '
        f'aria-label="{escape(name, quote=True)}"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
