"""Report page of an agreement: how well metrics correlate with human ratings.

`agreement_page` puts the sections together: ranking, intervals, all values, scatter plots of scores
against ratings, partial correlations between metrics, and the outputs on which metrics disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from evenmatch.evaluation.agreement_result import (
    AVERAGE_SUBSET,
    Agreement,
    AgreementEntry,
    format_correlation,
)
from evenmatch.evaluation.disagreement import (
    DisputedOutput,
    find_disputed_outputs,
    least_correlated_metrics,
    metric_partial_correlations,
)
from evenmatch.evaluation.rated_scores import ScoredSet
from evenmatch.reports.page import (
    SORT_HINT,
    heat_table,
    render_page,
    section,
    sortable_table,
    text_article,
)
from evenmatch.reports.plots import Estimate, estimate_plot, figures_section
from evenmatch.stats.panel import Floats
from evenmatch.stats.partial import PartialMethod
from evenmatch.viewer.links import truncate

_PLOT_WIDTH, _PLOT_HEIGHT, _PLOT_MARGIN = 190, 150, 10
_MAX_POINTS = 400  # more points only make the page larger
_MAX_NAMED = 60  # systems with a tooltip
_LIGHT_TEXT_THRESHOLD = 0.77  # white text from this colour depth on, black text below
_MAX_CHARACTERS = 1200  # longer texts are cut
_RANKING_TEXT = (
    "Agreement with its confidence interval, averaged over the subsets of the data (for example "
    "language pairs or criteria) if there are several. The last column counts the "
    "subsets in which the metric is in the best significance cluster."
)


def agreement_page(
    agreement: Agreement, *, signatures: Mapping[str, str] | None = None, command: str = ""
) -> str:
    """Return the page of an agreement.

    An agreement read from JSON has no scores of single outputs, so the scatter plots, the partial
    correlations and the disagreements are left out, and `signatures` gives those of the metrics.
    """
    first = agreement.entries[0]
    data = ", ".join(dict.fromkeys(entry.data for entry in agreement.entries))
    parts = [
        f"<p>Method: {escape(first.method)}. Level: {escape(first.level)}.</p>",
        ranking_section(agreement),
        intervals_section(agreement),
        table_section(agreement),
    ]
    if agreement.scored:
        parts += [
            scatter_section(agreement),
            partial_correlation_section(agreement),
            disagreement_section(agreement),
        ]
    recipes = [f"{name}: {signature}" for name, signature in (signatures or {}).items()]
    title = f"Agreement with human ratings: {data}"
    return render_page(title, parts, [*agreement.notes(), *recipes], command)


def table_section(agreement: Agreement) -> str:
    """Return a sortable table of all entries."""
    table = sortable_table(agreement.table(), "Agreement of each metric on each data set")
    text = (
        "Metrics in the same cluster do not differ significantly; cluster 1 is the best. n is the "
        "number of points that are correlated (per_item, per_system: the number of correlations "
        "that are averaged); for the subset average, the number of subsets. " + SORT_HINT
    )
    return section("All values", text, table)


def ranking_section(agreement: Agreement) -> str:
    """Return a table of the metrics from best to worst for each data set."""
    parts = []
    for data in dict.fromkeys(entry.data for entry in agreement.entries):
        own = [entry for entry in agreement.entries if entry.data == data]
        parts.append(_ranking_table(data, own, agreement.bounds))
    return section("Ranking", _RANKING_TEXT, "\n".join(parts))


def _ranking_table(data: str, entries: Sequence[AgreementEntry], bounds: tuple[str, str]) -> str:
    single = [entry for entry in entries if entry.subset != AVERAGE_SUBSET]
    sets = len({entry.subset for entry in single})
    # The average over the subsets comes after them, so it is what remains of a metric.
    last = {entry.metric: entry for entry in entries}.values()
    shown = sorted(last, key=lambda entry: _ranking_key(entry, sets))
    what = "mean agreement" if sets > 1 else "agreement"
    table = [["rank", "metric", what, *bounds, "subsets", "in cluster 1"]]
    for rank, entry in enumerate(shown, 1):
        own = [e for e in single if e.metric == entry.metric]
        count = entry.n if entry.subset == AVERAGE_SUBSET else 1
        best = sum(e.cluster == 1 for e in own)
        tested = sum(e.cluster is not None for e in own)
        numbers = map(format_correlation, (entry.value, entry.low, entry.high))
        clusters = f"{best} of {tested}" if tested else "-"
        table.append([str(rank), entry.metric, *numbers, str(count), clusters])
    return sortable_table(table, f"{data}, {sets} subset{'s' if sets > 1 else ''}")


def _ranking_key(entry: AgreementEntry, sets: int) -> tuple[bool, float]:
    """Return a sort key: best first; means over fewer sets are not comparable and come last."""
    complete = sets == 1 or (entry.subset == AVERAGE_SUBSET and entry.n == sets)
    return not complete, math.inf if math.isnan(entry.value) else -entry.value


def intervals_section(agreement: Agreement) -> str:
    """Return a plot of the intervals for each set, averages first."""
    sets: dict[tuple[str, str], list[AgreementEntry]] = {}
    for entry in agreement.entries:
        sets.setdefault((entry.data, entry.subset), []).append(entry)
    front = sorted(sets, key=lambda key: key[1] != AVERAGE_SUBSET)
    text = "Points show the agreement, lines the confidence interval."
    return figures_section("Intervals", text, [_interval_figure(key, sets[key]) for key in front])


def _interval_figure(key: tuple[str, str], entries: Sequence[AgreementEntry]) -> str:
    shown = [entry for entry in entries if not math.isnan(entry.value)]
    shown.sort(key=lambda entry: -entry.value)
    caption = " · ".join(filter(None, key))
    if not shown:
        return f"<figure><figcaption>{escape(caption)}: correlation undefined</figcaption></figure>"
    estimates = [
        Estimate(entry.metric, entry.value)
        if math.isnan(entry.low + entry.high)
        else Estimate(entry.metric, entry.value, entry.low, entry.high)
        for entry in shown
    ]
    return estimate_plot(estimates).figure(caption)


def scatter_section(agreement: Agreement) -> str:
    """Return a row of scatter plots for each set, the first one expanded."""
    by_system = agreement.entries[0].level == "system"
    values = {(e.data, e.subset, e.metric): e.value for e in agreement.entries}
    rows = []
    for number, each in enumerate(agreement.scored):
        key = each.rated.name, each.rated.subset
        plots = "\n".join(
            _scatter_plot(each, metric, values[*key, metric], by_system) for metric in each.scores
        )
        rows.append(
            f"<details{' open' if number == 0 else ''}>"
            f"<summary>{escape(' · '.join(filter(None, key)))}</summary>\n"
            f'<div class="figures">\n{plots}\n</div></details>'
        )
    points = "systems" if by_system else f"outputs (a sample of at most {_MAX_POINTS})"
    text = f"Points are {points}. Horizontal axis: human rating; vertical axis: metric score."
    return section("Metric scores against human ratings", text, "\n".join(rows))


def _scatter_plot(scored: ScoredSet, metric: str, value: float, by_system: bool) -> str:
    rated, kept, scores = scored.rated, scored.included, scored.scores[metric]
    if by_system:
        x, y = rated.by_system[kept], scores.systems[kept]
    else:
        x, y = rated.ratings[kept].ravel(), scores.segments[kept].ravel()
    known = ~(np.isnan(x) | np.isnan(y))
    points = _to_pixels(x[known], y[known])
    if by_system and 0 < len(points) <= _MAX_NAMED:
        shapes = _circles(points, np.array(rated.systems)[kept][known].tolist())
    else:
        shapes = _cloud(points)
    return (
        f"<figure><figcaption>{escape(metric)} <b>{format_correlation(value)}</b></figcaption>"
        f'<svg role="img" width="{_PLOT_WIDTH}" height="{_PLOT_HEIGHT}" '
        f'viewBox="0 0 {_PLOT_WIDTH} {_PLOT_HEIGHT}">'
        f'<rect class="frame" x=".5" y=".5" width="{_PLOT_WIDTH - 1}" height="{_PLOT_HEIGHT - 1}"/>'
        f"{shapes}</svg></figure>"
    )


def _to_pixels(x: Floats, y: Floats) -> Floats:
    """Scale both coordinates from their range to the plot area."""
    across = _PLOT_MARGIN + _min_max_scale(x) * (_PLOT_WIDTH - 2 * _PLOT_MARGIN)
    down = _PLOT_HEIGHT - _PLOT_MARGIN - _min_max_scale(y) * (_PLOT_HEIGHT - 2 * _PLOT_MARGIN)
    return np.stack([across, down], axis=-1)


def _min_max_scale(values: Floats) -> Floats:
    spread = np.ptp(values) if values.size else 0.0
    return (values - values.min()) / spread if spread else np.full(values.shape, 0.5)


def _circles(points: Floats, names: list[str]) -> str:
    return "".join(
        f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4">'
        f"<title>{escape(name)}</title></circle>"
        for (x, y), name in zip(points, names, strict=True)
    )


def _cloud(points: Floats) -> str:
    """Return a random sample of the points, with a fixed seed, as dots of one path."""
    if len(points) > _MAX_POINTS:
        some = np.random.default_rng(0).choice(len(points), _MAX_POINTS, replace=False)
        points = points[np.sort(some)]
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in points)
    return f'<path class="cloud" d="{dots}"/>'


def partial_correlation_section(agreement: Agreement) -> str:
    """Return partial correlations between metrics given human ratings; '' for a single metric."""
    metrics, first = agreement.metrics, agreement.entries[0]
    if len(metrics) < 2:
        return ""
    method: PartialMethod = "spearman" if first.method == "spearman" else "pearson"
    by_system = first.level == "system"
    matrix = metric_partial_correlations(
        agreement.scored, metrics, by_system=by_system, method=method
    )
    rows = {name: map(_heat_cell, row) for name, row in zip(metrics, matrix.tolist(), strict=True)}
    over = "systems" if by_system else "outputs"
    several = ", averaged over the subsets" if len(agreement.scored) > 1 else ""
    text = (
        f"Partial correlation ({method}) of the scores that two metrics give to {over}, "
        f"controlling for human ratings{several}: what metrics share that human ratings do not "
        "explain."
    )
    table = heat_table(metrics, rows, "Partial correlations")
    return section("Similarity between metrics", text, table)


def _heat_cell(value: float) -> str:
    if math.isnan(value):
        return '<td class="number">-</td>'
    side = "above" if value >= 0 else "below"
    hot = " hot" if abs(value) >= _LIGHT_TEXT_THRESHOLD else ""
    depth = min(abs(value), 1.0)
    return f'<td class="{side}{hot}" style="--s:{depth:.2f}">{round(value, 2) + 0.0:.2f}</td>'


def disagreement_section(agreement: Agreement) -> str:
    """Return the outputs on which the least correlated metrics disagree; '' if there are none."""
    parts = []
    for first, second in least_correlated_metrics(agreement.scored):
        found = find_disputed_outputs(agreement.scored, first, second)
        if found:
            shown = "\n".join(_text_article(text, (first, second)) for text in found)
            parts.append(f"<h3>{escape(first)} and {escape(second)}</h3>\n{shown}")
    text = (
        "For the pairs of metrics with the lowest correlation. A percentile is the share of "
        "outputs in the subset that score lower."
    )
    return section("Outputs on which metrics disagree most", text, "\n".join(parts))


def _text_article(text: DisputedOutput, metrics: tuple[str, str]) -> str:
    scores = [
        f"{escape(metric)} <b>{score:.3f}</b> (percentile {100 * rank:.0f})"
        for metric, score, rank in zip(metrics, text.scores, text.relative_ranks, strict=True)
    ]
    if text.rating is None or text.rating_rank is None:
        scores.append("human rating: none")
    else:
        rank = f"percentile {100 * text.rating_rank:.0f}"
        scores.append(f"human rating <b>{text.rating:.3f}</b> ({rank})")
    where = " · ".join(filter(None, (text.data, text.subset, text.system, text.segment)))
    texts = [("candidate", text.candidate), *(("reference", r) for r in text.references)]
    cut = [(name, truncate(each, _MAX_CHARACTERS)) for name, each in texts]
    return text_article(escape(where), " — ".join(scores), cut)
