"""A study as a folder to look at: its figures as SVG, its tables as TSV, and one page of both.

The papers' experiments as one page each.

A run of training as one page.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from evenmatch.data.tables import TextTable, table_to_tsv
from evenmatch.reports.page import (
    notes_section,
    record_table,
    render_page,
    scroll_region,
    section,
    sortable_table,
)
from evenmatch.reports.plots import (
    Estimate,
    estimate_plot_html,
    figure_with_caption,
    figures_section,
    line_plot_html,
)

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
class StudyReport:
    """What a study found: lines to read first, tables by name, figures by name, notes."""

    title: str
    findings: Sequence[str]
    tables: Mapping[str, TextTable]
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
            (folder / f"{name}.tsv").write_text(table_to_tsv(table) + "\n", "utf-8")
        for name, figure in self.figures.items():
            (folder / f"{name}.svg").write_text(figure, "utf-8")
        (folder / "result.json").write_text(json.dumps(self.document, indent=1), "utf-8")
        page = folder / "index.html"
        page.write_text(self.to_html(), "utf-8")
        return page

    def to_html(self) -> str:
        """One page that stands alone."""
        title = escape(self.title)
        figures = "\n".join(f"<figure>{figure}</figure>" for figure in self.figures.values())
        tables = "\n".join(_html_table(name, table) for name, table in self.tables.items())
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<h1>{title}</h1>\n{_html_list(self.findings)}\n{figures}\n{tables}\n"
            f"<h2>What this rests on</h2>\n{_html_list(self.notes)}\n</main>\n</body>\n</html>\n"
        )


def _html_list(lines: Sequence[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{escape(line)}</li>\n" for line in lines) + "</ul>"


def _html_table(name: str, table: TextTable) -> str:
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


def lisa_page(document: Mapping[str, Any]) -> str:
    """What alignment and padding do to scores: claims, effect sizes drawn, every row."""
    table = sortable_table(record_table(document["rows"]), "Every encoder, length and algorithm")
    notes = [
        f"{name}: {document[name]}"
        for name in ("data", "pairs", "seed", "seconds")
        if name in document
    ]
    said = "Cohen's d of pairs over in-batch negatives; the line is the interval."
    parts = (
        section("What was found", "", _bullet_list(document["claims"])),
        figures_section("Effect sizes", said, _effect_figures(document["rows"])),
        section("All values", "A column's name sorts by it.", table),
        notes_section(notes, document.get("command", "")),
    )
    return render_page("LiSAScore: assignment, padding and in-batch negatives", parts)


def lisa_quality_page(document: Mapping[str, Any]) -> str:
    """What approximate assignment loses and costs: a table per kind of matrix, agreement, speed."""
    named = {f"Quality, {kind}": rows for kind, rows in document["qualities"].items()}
    named |= {"Agreement with people": document.get("agreements", [])}
    named |= {"Speed": document["speeds"]}
    parts = [
        section(name, "", sortable_table(record_table(rows), name))
        for name, rows in named.items()
        if rows
    ]
    notes = [f"{document['sentences']} pairs of sentences"]
    return render_page(
        "LiSAScore: what approximate assignment loses and costs",
        [*parts, notes_section(notes, document.get("command", ""))],
    )


def lisa_gradient_page(document: Mapping[str, Any]) -> str:
    """How training through the metric went, by method."""
    looks = {each["lesson"]["method"]: each["held_out"] for each in document["curves"]}
    figures = [
        figure_with_caption(
            caption,
            line_plot_html(
                ("step", caption.lower()),
                {
                    method: [(look["step"], look[name]) for look in own]
                    for method, own in looks.items()
                },
            ),
        )
        for caption, name in (("Loss on pairs held out", "loss"), ("Told from negatives", "right"))
    ]
    last = [{"method": method, **own[-1]} for method, own in looks.items()]
    lessons = record_table([each["lesson"] for each in document["curves"]])
    parts = (
        figures_section("The course of training", "", figures),
        section(
            "Where it ended", "", sortable_table(record_table(last), "The last look of each method")
        ),
        section("How it was trained", "", sortable_table(lessons, "Settings of each method")),
        notes_section((), document.get("command", "")),
    )
    return render_page("LiSAScore: training through the metric", parts)


def study_page(document: Mapping[str, Any]) -> str:
    """Findings, figures and tables, as a study wrote them."""
    figures = [_figure_image(name, figure) for name, figure in document.get("figures", {}).items()]
    parts = (
        section("What was found", "", _bullet_list(document["findings"])),
        section("Figures", "", "\n".join(figures)),
        *(
            section(name, "", sortable_table(table, name))
            for name, table in document["tables"].items()
        ),
        notes_section(document.get("notes", ()), document.get("command", "")),
    )
    return render_page(document["title"], parts)


def _figure_image(name: str, figure: str) -> str:
    """A drawing of somebody else's as an image, where no script in it would run."""
    data = b64encode(figure.encode()).decode()
    image = f'<img alt="{escape(name, quote=True)}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{scroll_region(image, name)}</figure>"


def _effect_figures(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    by_place: dict[str, list[Estimate]] = {}
    for row in rows:
        padding = f"padded to {row['length']}" if row["length"] else "no padding"
        effect = row["effect"]
        mark = Estimate(row["algorithm"], effect["value"], effect["low"], effect["high"])
        by_place.setdefault(f"{row['encoder']}, {padding}", []).append(mark)
    return [
        figure_with_caption(place, estimate_plot_html(marks, digits=2))
        for place, marks in by_place.items()
    ]


def _bullet_list(lines: Iterable[str]) -> str:
    inside = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return f"<ul>\n{inside}</ul>" if inside else ""


_CURVES = (
    ("BLEU on the texts held out", ("bleu",)),
    ("Cross-entropy", ("cross_entropy",)),
    ("Reward of texts drawn, and of the likeliest ones", ("reward", "baseline")),
)


def tune_page(document: Mapping[str, Any]) -> str:
    """What was seen at each look: BLEU, cross-entropy and rewards as curves and in a table."""
    looks = document["looks"]
    table = sortable_table(record_table(looks), "Looks at the run") if looks else ""
    parts = (
        figures_section("The course of training", "", _curve_figures(looks)),
        section("All looks", "Means of the steps since the look before.", table),
        notes_section(_notes(document), document.get("command", "")),
    )
    return render_page("Fine-tuning with a reward", parts)


def _curve_figures(looks: Sequence[Mapping[str, float]]) -> list[str]:
    figures = []
    for caption, names in _CURVES:
        lines = {
            name.replace("_", "-"): [(look["step"], look[name]) for look in looks]
            for name in names
            if looks and name in looks[0]
        }
        if lines:
            figures.append(
                figure_with_caption(caption, line_plot_html(("step", ", ".join(lines)), lines))
            )
    return figures


def _notes(document: Mapping[str, Any]) -> list[str]:
    best = document["best"]
    return [
        f"{document['steps']} steps, {'to the end' if document['ended'] else 'paused'}",
        f"best: BLEU {100 * best['bleu']:.2f} at step {best['step']}" if best else "no look yet",
    ]
