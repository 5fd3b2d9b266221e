"""Report pages about systems: comparisons of systems, and keyphrase scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenmatch.evaluation.compare import Comparison
from evenmatch.evaluation.keyphrase_table import COLUMNS, KeyphraseTable
from evenmatch.reports.page import SORT_HINT, notes_section, render_page, section, sortable_table
from evenmatch.reports.plots import (
    Estimate,
    estimate_plot,
    figure_with_caption,
    figures_section,
)

_INTERVALS_TEXT = "Points show the score, lines the confidence interval."


def comparison_page(found: Comparison, *, command: str = "") -> str:
    """Return the page of a comparison: scores and differences, as plots and as tables."""
    parts = (
        _scores_section(found),
        _differences_section(found),
        section("All scores", SORT_HINT, sortable_table(found.score_table(), "Scores of systems")),
        section(
            "All differences", SORT_HINT, sortable_table(found.gap_table(), "Pairs of systems")
        ),
        notes_section(found.notes(), command),
    )
    return render_page(f"Comparison of systems: {', '.join(found.systems)}", parts)


def _scores_section(found: Comparison) -> str:
    estimates = [(s.metric, Estimate(s.system, s.score, s.low, s.high)) for s in found.scores]
    return figures_section("Scores", _INTERVALS_TEXT, _figures_by_metric(found, estimates))


def _differences_section(found: Comparison) -> str:
    estimates = [
        (
            gap.metric,
            Estimate(
                f"{gap.system} − {gap.baseline} {gap.stars}".strip(),
                gap.difference,
                gap.low,
                gap.high,
            ),
        )
        for gap in found.gaps
    ]
    text = (
        "Score of the first system minus score of the second. An interval that excludes zero "
        "suggests a difference; stars mark differences that are significant in both tests."
    )
    return figures_section("Differences", text, _figures_by_metric(found, estimates))


def _figures_by_metric(found: Comparison, estimates: Sequence[tuple[str, Estimate]]) -> list[str]:
    return [
        figure_with_caption(
            _metric_label(found, metric), estimate_plot([e for m, e in estimates if m == metric])
        )
        for metric in dict.fromkeys(metric for metric, _ in estimates)
    ]


def _metric_label(found: Comparison, metric: str) -> str:
    return metric if found.higher_is_better[metric] else f"{metric} (lower is better)"


def keyphrase_page(found: KeyphraseTable, *, command: str = "") -> str:
    """Return the page of keyphrase scores, of present, absent and all phrases, with the tests."""
    data = ", ".join(dict.fromkeys(row.data for row in found.rows))
    scores = sortable_table(found.score_table(), "Scores of systems, intervals in brackets")
    gaps = sortable_table(found.gap_table(), "Pairs of systems") if found.gaps else ""
    parts = (
        figures_section("Scores", _INTERVALS_TEXT, [*_score_figures(found)]),
        section("All scores", SORT_HINT, scores),
        section("All differences", "Score of the system minus score of the baseline.", gaps),
        notes_section(found.notes(), command),
    )
    return render_page(f"Keyphrases: {data}", parts)


def _score_figures(found: KeyphraseTable) -> Iterator[str]:
    places = dict.fromkeys((row.data, row.metric) for row in found.rows)
    for data, metric in places:
        own = [row for row in found.rows if (row.data, row.metric) == (data, metric)]
        for column in COLUMNS:
            estimates = [
                Estimate(row.prediction, cell.value, cell.low, cell.high)
                for row in own
                for cell in [row.cells[column]]
            ]
            yield figure_with_caption(
                f"{metric}, {column} phrases, {data}", estimate_plot(estimates)
            )
