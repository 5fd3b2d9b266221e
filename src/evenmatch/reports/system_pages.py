"""Report pages about systems: comparisons of systems, and keyphrase scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenmatch.evaluation.compare import Comparison
from evenmatch.evaluation.keyphrase_table import COLUMNS, KeyphraseTable
from evenmatch.reports.page import SORT_HINT, render_page, section, sortable_table
from evenmatch.reports.plots import Estimate, estimate_plot, figures_section

_INTERVALS_TEXT = "Points show the score, lines the confidence interval."
_DIFFERENCES_TEXT = (
    "Score of the first system minus score of the second. An interval that excludes zero suggests "
    "a difference; stars mark differences that are significant in both tests."
)


def comparison_page(found: Comparison, *, command: str = "") -> str:
    """Return the page of a comparison: scores and differences, as plots and as tables."""
    scores = [(s.metric, Estimate(s.system, s.score, s.low, s.high)) for s in found.scores]
    gaps = []
    for gap in found.gaps:
        name = f"{gap.system} − {gap.baseline} {gap.stars}".strip()
        gaps.append((gap.metric, Estimate(name, gap.difference, gap.low, gap.high)))
    score_table = sortable_table(found.score_table(), "Scores of systems")
    gap_table = sortable_table(found.gap_table(), "Pairs of systems")
    parts = (
        figures_section("Scores", _INTERVALS_TEXT, _figures_by_metric(found, scores)),
        figures_section("Differences", _DIFFERENCES_TEXT, _figures_by_metric(found, gaps)),
        section("All scores", SORT_HINT, score_table),
        section("All differences", SORT_HINT, gap_table),
    )
    title = f"Comparison of systems: {', '.join(found.systems)}"
    return render_page(title, parts, found.notes(), command)


def _figures_by_metric(found: Comparison, estimates: Sequence[tuple[str, Estimate]]) -> list[str]:
    figures = []
    for metric in dict.fromkeys(metric for metric, _ in estimates):
        label = metric if found.higher_is_better[metric] else f"{metric} (lower is better)"
        figures.append(estimate_plot([e for m, e in estimates if m == metric]).figure(label))
    return figures


def keyphrase_page(found: KeyphraseTable, *, command: str = "") -> str:
    """Return the page of keyphrase scores, of present, absent and all phrases, with the tests."""
    data = ", ".join(dict.fromkeys(row.data for row in found.rows))
    scores = sortable_table(found.score_table(), "Scores of systems, intervals in brackets")
    gaps = sortable_table(found.gap_table(), "Pairs of systems") if found.gaps else ""
    parts = (
        figures_section("Scores", _INTERVALS_TEXT, [*_score_figures(found)]),
        section("All scores", SORT_HINT, scores),
        section("All differences", "Score of the system minus score of the baseline.", gaps),
    )
    return render_page(f"Keyphrases: {data}", parts, found.notes(), command)


def _score_figures(found: KeyphraseTable) -> Iterator[str]:
    for data, metric in dict.fromkeys((row.data, row.metric) for row in found.rows):
        own = [row for row in found.rows if (row.data, row.metric) == (data, metric)]
        for column in COLUMNS:
            estimates = [
                Estimate(row.prediction, cell.value, cell.low, cell.high)
                for row in own
                for cell in [row.cells[column]]
            ]
            yield estimate_plot(estimates).figure(f"{metric}, {column} phrases, {data}")
