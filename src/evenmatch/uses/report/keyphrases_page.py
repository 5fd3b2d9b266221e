"""Keyphrase scores as one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenmatch.uses.keyphrases.judging import COLUMNS
from evenmatch.uses.keyphrases.table import (
    Cell,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
    Resampling,
)
from evenmatch.uses.report.fluid import Mark, captioned, figures_part, mark_rows
from evenmatch.uses.report.sorted_table import sorted_table
from evenmatch.uses.report.whole_page import notes_part, section, whole_page


def keyphrases_page(document: Mapping[str, Any]) -> str:
    """Scores of present, absent and all phrases, drawn and in tables, and the tests."""
    found = table_of(document)
    data = ", ".join(dict.fromkeys(row.data for row in found.rows))
    scores = sorted_table(found.score_table(), "Scores of systems, intervals in brackets")
    gaps = sorted_table(found.gap_table(), "Pairs of systems") if found.gaps else ""
    parts = (
        figures_part("Scores", "A point is the score, its line the interval.", [*_figures(found)]),
        section("All scores", "A column's name sorts by it.", scores),
        section("All differences", "By how much a system scores above another.", gaps),
        notes_part(found.notes(), document.get("command", "")),
    )
    return whole_page(f"Keyphrases: {data}", parts)


def table_of(document: Mapping[str, Any]) -> KeyphraseTable:
    """Keyphrase scores made again from their JSON."""
    return KeyphraseTable(
        tuple(map(_row, document["rows"])),
        tuple(KeyphraseGap(**gap) for gap in document.get("tests", ())),
        document.get("flagged", {}),
        tuple(document.get("trouble", ())),
        document["signatures"],
        Resampling(**document["resampling"]),
    )


def _row(row: Mapping[str, Any]) -> KeyphraseRow:
    cells = {column: Cell(row[column], *row["intervals"][column]) for column in COLUMNS}
    return KeyphraseRow(row["data"], row["prediction"], row["metric"], cells, row["documents"])


def _figures(found: KeyphraseTable) -> Iterator[str]:
    places = dict.fromkeys((row.data, row.metric) for row in found.rows)
    for data, metric in places:
        own = [row for row in found.rows if (row.data, row.metric) == (data, metric)]
        for column in COLUMNS:
            marks = [
                Mark(row.prediction, cell.value, cell.low, cell.high)
                for row in own
                for cell in [row.cells[column]]
            ]
            yield captioned(f"{metric}, {column} phrases, {data}", mark_rows(marks))
