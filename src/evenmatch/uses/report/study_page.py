"""The papers' experiments as one page each."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from evenmatch.uses.report.fluid import Mark, captioned, curve_field, figures_part, mark_rows
from evenmatch.uses.report.sorted_table import record_table, sorted_table
from evenmatch.uses.report.whole_page import notes_part, scrolled, section, whole_page


def lisa_page(document: Mapping[str, Any]) -> str:
    """What alignment and padding do to scores: claims, effect sizes drawn, every row."""
    table = sorted_table(record_table(document["rows"]), "Every encoder, length and algorithm")
    notes = [
        f"{name}: {document[name]}"
        for name in ("data", "pairs", "seed", "seconds")
        if name in document
    ]
    said = "Cohen's d of pairs over in-batch negatives; the line is the interval."
    parts = (
        section("What was found", "", _items(document["claims"])),
        figures_part("Effect sizes", said, _effects(document["rows"])),
        section("All values", "A column's name sorts by it.", table),
        notes_part(notes, document.get("command", "")),
    )
    return whole_page("LiSAScore: assignment, padding and in-batch negatives", parts)


def worth_page(document: Mapping[str, Any]) -> str:
    """What approximate assignment loses and costs: a table per kind of matrix, agreement, speed."""
    named = {f"Quality, {kind}": rows for kind, rows in document["qualities"].items()}
    named |= {"Agreement with people": document.get("agreements", [])}
    named |= {"Speed": document["speeds"]}
    parts = [
        section(name, "", sorted_table(record_table(rows), name))
        for name, rows in named.items()
        if rows
    ]
    notes = [f"{document['sentences']} pairs of sentences"]
    return whole_page(
        "LiSAScore: what approximate assignment loses and costs",
        [*parts, notes_part(notes, document.get("command", ""))],
    )


def curves_page(document: Mapping[str, Any]) -> str:
    """How training through the metric went, by method."""
    looks = {each["lesson"]["method"]: each["held_out"] for each in document["curves"]}
    figures = [
        captioned(
            caption,
            curve_field(
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
        figures_part("The course of training", "", figures),
        section(
            "Where it ended", "", sorted_table(record_table(last), "The last look of each method")
        ),
        section("How it was trained", "", sorted_table(lessons, "Settings of each method")),
        notes_part((), document.get("command", "")),
    )
    return whole_page("LiSAScore: training through the metric", parts)


def study_page(document: Mapping[str, Any]) -> str:
    """Findings, figures and tables, as a study wrote them."""
    figures = [_picture(name, figure) for name, figure in document.get("figures", {}).items()]
    parts = (
        section("What was found", "", _items(document["findings"])),
        section("Figures", "", "\n".join(figures)),
        *(
            section(name, "", sorted_table(table, name))
            for name, table in document["tables"].items()
        ),
        notes_part(document.get("notes", ()), document.get("command", "")),
    )
    return whole_page(document["title"], parts)


def _picture(name: str, figure: str) -> str:
    """A drawing of somebody else's as an image, where no script in it would run."""
    data = b64encode(figure.encode()).decode()
    image = f'<img alt="{escape(name, quote=True)}" src="data:image/svg+xml;base64,{data}">'
    return f"<figure>{scrolled(image, name)}</figure>"


def _effects(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    by_place: dict[str, list[Mark]] = {}
    for row in rows:
        padding = f"padded to {row['length']}" if row["length"] else "no padding"
        effect = row["effect"]
        mark = Mark(row["algorithm"], effect["value"], effect["low"], effect["high"])
        by_place.setdefault(f"{row['encoder']}, {padding}", []).append(mark)
    return [captioned(place, mark_rows(marks, digits=2)) for place, marks in by_place.items()]


def _items(lines: Iterable[str]) -> str:
    inside = "".join(f"<li>{escape(line)}</li>\n" for line in lines)
    return f"<ul>\n{inside}</ul>" if inside else ""
