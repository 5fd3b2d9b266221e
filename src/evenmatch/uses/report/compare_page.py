"""A comparison of systems as one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evenmatch.uses.meta.compare_result import Comparison, Gap, SystemScore, Testing
from evenmatch.uses.report.fluid import Mark, captioned, figures_part, mark_rows
from evenmatch.uses.report.sorted_table import sorted_table
from evenmatch.uses.report.whole_page import notes_part, section, whole_page


def compare_page(document: Mapping[str, Any]) -> str:
    """Scores and differences with their intervals, drawn and in tables."""
    found = comparison_of(document)
    sorts = "A column's name sorts by it."
    parts = (
        _scores(found),
        _differences(found),
        section("All scores", sorts, sorted_table(found.score_table(), "Scores of systems")),
        section("All differences", sorts, sorted_table(found.gap_table(), "Pairs of systems")),
        notes_part(found.notes(), document.get("command", "")),
    )
    return whole_page(f"Systems compared: {', '.join(found.systems)}", parts)


def comparison_of(document: Mapping[str, Any]) -> Comparison:
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
        Testing(**document["testing"]),
    )


def _scores(found: Comparison) -> str:
    by_metric: dict[str, list[Mark]] = {}
    for score in found.scores:
        mark = Mark(score.system, score.score, score.low, score.high)
        by_metric.setdefault(score.metric, []).append(mark)
    figures = [captioned(_named(found, m), mark_rows(own)) for m, own in by_metric.items()]
    return figures_part("Scores", "A point is the score, its line the interval.", figures)


def _differences(found: Comparison) -> str:
    by_metric: dict[str, list[Mark]] = {}
    for gap in found.gaps:
        name = f"{gap.system} less {gap.baseline} {gap.mark}".strip()
        by_metric.setdefault(gap.metric, []).append(Mark(name, gap.difference, gap.low, gap.high))
    figures = [captioned(_named(found, m), mark_rows(own)) for m, own in by_metric.items()]
    said = (
        "By how much the first scores above the second. A line that keeps clear of zero is a "
        "difference; stars say how sure both tests are."
    )
    return figures_part("Differences", said, figures)


def _named(found: Comparison, metric: str) -> str:
    return metric if found.higher_is_better[metric] else f"{metric} (lower is better)"
