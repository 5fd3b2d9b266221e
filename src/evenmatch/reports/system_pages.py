"""Report pages about systems: comparisons of systems, and keyphrase scores."""

from __future__ import annotations

from collections.abc import Iterator

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
    by_metric: dict[str, list[Estimate]] = {}
    for score in found.scores:
        estimate = Estimate(score.system, score.score, score.low, score.high)
        by_metric.setdefault(score.metric, []).append(estimate)
    figures = [
        figure_with_caption(_metric_label(found, m), estimate_plot(estimates))
        for m, estimates in by_metric.items()
    ]
    return figures_section("Scores", _INTERVALS_TEXT, figures)


def _differences_section(found: Comparison) -> str:
    by_metric: dict[str, list[Estimate]] = {}
    for gap in found.gaps:
        name = f"{gap.system} − {gap.baseline} {gap.stars}".strip()
        by_metric.setdefault(gap.metric, []).append(
            Estimate(name, gap.difference, gap.low, gap.high)
        )
    figures = [
        figure_with_caption(_metric_label(found, m), estimate_plot(estimates))
        for m, estimates in by_metric.items()
    ]
    text = (
        "Score of the first system minus score of the second. An interval that excludes zero "
        "suggests a difference; stars mark differences that are significant in both tests."
    )
    return figures_section("Differences", text, figures)


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
