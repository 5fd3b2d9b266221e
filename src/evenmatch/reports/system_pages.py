"""A comparison of systems as one page.

Keyphrase scores as one page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from evenmatch.evaluation.compare import Comparison, ComparisonTestSettings, Gap, SystemScore
from evenmatch.evaluation.keyphrase_table import (
    COLUMNS,
    KeyphraseCell,
    KeyphraseGap,
    KeyphraseRow,
    KeyphraseTable,
    Resampling,
)
from evenmatch.reports.page import notes_section, render_page, section, sortable_table
from evenmatch.reports.plots import (
    Estimate,
    estimate_plot_html,
    figure_with_caption,
    figures_section,
)


def comparison_page(document: Mapping[str, Any]) -> str:
    """Scores and differences with their intervals, drawn and in tables."""
    found = comparison_from_json(document)
    sorts = "A column's name sorts by it."
    parts = (
        _scores_section(found),
        _differences_section(found),
        section("All scores", sorts, sortable_table(found.score_table(), "Scores of systems")),
        section("All differences", sorts, sortable_table(found.gap_table(), "Pairs of systems")),
        notes_section(found.notes(), document.get("command", "")),
    )
    return render_page(f"Systems compared: {', '.join(found.systems)}", parts)


def comparison_from_json(document: Mapping[str, Any]) -> Comparison:
    """A comparison made again from its JSON."""
    scores = tuple(SystemScore(**row) for row in document["systems"])
    names = {field.name for field in fields(Gap)}
    rows = [{k: v for k, v in row.items() if k in names} for row in document["rows"]]
    metrics = dict.fromkeys(score.metric for score in scores)
    return Comparison(
        tuple(dict.fromkeys(score.system for score in scores)),
        scores,
        tuple(Gap(**row) for row in rows),
        dict.fromkeys(metrics, True) | document.get("higher_is_better", {}),
        document["signatures"],
        ComparisonTestSettings(**document["testing"]),
    )


def _scores_section(found: Comparison) -> str:
    by_metric: dict[str, list[Estimate]] = {}
    for score in found.scores:
        mark = Estimate(score.system, score.score, score.low, score.high)
        by_metric.setdefault(score.metric, []).append(mark)
    figures = [
        figure_with_caption(_metric_label(found, m), estimate_plot_html(own))
        for m, own in by_metric.items()
    ]
    return figures_section("Scores", "A point is the score, its line the interval.", figures)


def _differences_section(found: Comparison) -> str:
    by_metric: dict[str, list[Estimate]] = {}
    for gap in found.gaps:
        name = f"{gap.system} less {gap.baseline} {gap.stars}".strip()
        by_metric.setdefault(gap.metric, []).append(
            Estimate(name, gap.difference, gap.low, gap.high)
        )
    figures = [
        figure_with_caption(_metric_label(found, m), estimate_plot_html(own))
        for m, own in by_metric.items()
    ]
    said = (
        "By how much the first scores above the second. A line that keeps clear of zero is a "
        "difference; stars say how sure both tests are."
    )
    return figures_section("Differences", said, figures)


def _metric_label(found: Comparison, metric: str) -> str:
    return metric if found.higher_is_better[metric] else f"{metric} (lower is better)"


def keyphrase_page(document: Mapping[str, Any]) -> str:
    """Scores of present, absent and all phrases, drawn and in tables, and the tests."""
    found = keyphrase_table_from_json(document)
    data = ", ".join(dict.fromkeys(row.data for row in found.rows))
    scores = sortable_table(found.score_table(), "Scores of systems, intervals in brackets")
    gaps = sortable_table(found.gap_table(), "Pairs of systems") if found.gaps else ""
    parts = (
        figures_section(
            "Scores", "A point is the score, its line the interval.", [*_score_figures(found)]
        ),
        section("All scores", "A column's name sorts by it.", scores),
        section("All differences", "By how much a system scores above another.", gaps),
        notes_section(found.notes(), document.get("command", "")),
    )
    return render_page(f"Keyphrases: {data}", parts)


def keyphrase_table_from_json(document: Mapping[str, Any]) -> KeyphraseTable:
    """Keyphrase scores made again from their JSON."""
    return KeyphraseTable(
        tuple(map(_row_from_json, document["rows"])),
        tuple(KeyphraseGap(**gap) for gap in document.get("tests", ())),
        document.get("flagged", {}),
        tuple(document.get("trouble", ())),
        document["signatures"],
        Resampling(**document["resampling"]),
    )


def _row_from_json(row: Mapping[str, Any]) -> KeyphraseRow:
    cells = {column: KeyphraseCell(row[column], *row["intervals"][column]) for column in COLUMNS}
    return KeyphraseRow(row["data"], row["prediction"], row["metric"], cells, row["documents"])


def _score_figures(found: KeyphraseTable) -> Iterator[str]:
    places = dict.fromkeys((row.data, row.metric) for row in found.rows)
    for data, metric in places:
        own = [row for row in found.rows if (row.data, row.metric) == (data, metric)]
        for column in COLUMNS:
            marks = [
                Estimate(row.prediction, cell.value, cell.low, cell.high)
                for row in own
                for cell in [row.cells[column]]
            ]
            yield figure_with_caption(
                f"{metric}, {column} phrases, {data}", estimate_plot_html(marks)
            )
