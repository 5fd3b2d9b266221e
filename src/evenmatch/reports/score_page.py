"""Report pages of scores: of one system, of several, of comparisons of systems, and of keyphrases.

The page of one system has means, histograms, the worst and the best texts, and all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from evenmatch.data.scores import finite_or_none
from evenmatch.data.tables import TextTable, direction_label, format_number
from evenmatch.errors import EvenmatchError, InputError
from evenmatch.evaluation.compare import Comparison
from evenmatch.evaluation.keyphrase_table import COLUMNS, KeyphraseTable
from evenmatch.protocols import Metric
from evenmatch.reports.page import (
    SORT_HINT,
    metric_if_available,
    render_page,
    section,
    sortable_table,
    text_article,
)
from evenmatch.reports.plots import Estimate, estimate_plot, figures_section, histogram, nice_scale
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.inputs import check_pairs, hash_texts
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Pair
from evenmatch.viewer.links import MAX_CELLS, link_diagram, truncate
from evenmatch.viewer.page import align_all, scroll_region, viewer_element

_INTERVALS_TEXT = "Points show the score, lines the confidence interval."
_DIFFERENCES_TEXT = (
    "Score of the first system minus score of the second. An interval that excludes zero suggests "
    "a difference; stars mark differences that are significant in both tests."
)
_BINS = 20
_MAX_ROWS = 1000  # more rows make the page slow
_MAX_CHARACTERS = 90  # of a text in the table
_TOLERANCE = 1e-3  # between the score in the result and that of the alignment shown


def score_page(
    document: Mapping[str, Any], *, pairs: Sequence[Pair] | None = None, examples: int = 3
) -> str:
    """Return the page of a score document.

    Everything but the means needs the score of every pair (`segments`). Texts are shown if
    `pairs` are given: `examples` of the worst and of the best, with their alignments.
    """
    metrics = document["metrics"]
    segments = {name: each["segments"] for name, each in metrics.items() if "segments" in each}
    _check_pairs(segments, pairs, document.get("texts", ""))
    if pairs:
        examples_html = examples_section(segments, pairs, examples, document.get("scale", 1.0))
    else:
        examples_html = _worst_section(document)
    parts = (
        section("Means", "", sortable_table(_means_table(metrics), "Mean score of each metric")),
        figures_section("Distribution of scores", "", [*_histograms(segments)]),
        examples_html,
        _rows_section(segments, pairs) if segments else "",
    )
    return render_page(
        f"Scores: {', '.join(metrics)}",
        parts,
        _notes(document, segments, pairs),
        document.get("command", ""),
        viewer="<evenmatch-viewer" in examples_html,
    )


def systems_page(document: Mapping[str, Any]) -> str:
    """Return the page of a score document with several systems: a table of systems and metrics."""
    systems = document["systems"]
    first = next(iter(systems.values()))["metrics"]
    rows = [
        [
            name,
            *(format_number(each.get("corpus", each["mean"])) for each in own["metrics"].values()),
        ]
        for name, own in systems.items()
    ]
    corpus = [name for name, each in first.items() if "corpus" in each]
    text = f"Corpus scores of {', '.join(corpus)}; means of others. " if corpus else ""
    header = ["system", *map(_label, first)]
    table = sortable_table([header, *rows], "Score of each system by each metric")
    return render_page(
        f"Scores of systems: {', '.join(systems)}",
        (section("Scores", text + SORT_HINT, table), _worst_section(document)),
        [
            *_direction_notes(first),
            *(f"{name}: {each['signature']}" for name, each in first.items()),
        ],
        document.get("command", ""),
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


def _worst_section(document: Mapping[str, Any]) -> str:
    """Return the worst texts that the document itself contains (`score --worst`)."""
    articles = []
    for record in document.get("worst", ()):
        texts = [
            ("candidate", record["candidate"]),
            *(("reference", r) for r in record["references"]),
        ]
        names = [n for n, value in record.items() if isinstance(value, float)]
        numbers = [f"{escape(n)} <b>{format_number(record[n])}</b>" for n in names]
        where = f"row {record['row']}" + (f", {record['system']}" if "system" in record else "")
        articles.append(text_article(escape(where), " · ".join(numbers), texts))
    return section("Worst texts", "Ranked by the first metric.", "\n".join(articles))


def _check_pairs(segments: Mapping[str, Any], pairs: Sequence[Pair] | None, texts: str) -> None:
    if pairs is None:
        return
    check_pairs(pairs)
    if not segments:
        raise InputError(
            "texts are given but the result has only mean scores; create it with: "
            "evenmatch score … --segments --json"
        )
    count = len(next(iter(segments.values())))
    if len(pairs) != count:
        raise InputError(
            f"the result has {count} rows but {len(pairs)} pairs of texts are given; give the file "
            "that was scored"
        )
    if texts and hash_texts(pairs) != texts:
        raise InputError("the result was computed from other texts; give the file that was scored")


def _means_table(metrics: Mapping[str, Any]) -> TextTable:
    corpus = any("corpus" in each for each in metrics.values())
    fields = ["mean", "precision", "recall", *(["corpus"] if corpus else [])]
    rows = [
        [_label(name), *(format_number(each.get(f)) for f in fields)]
        for name, each in metrics.items()
    ]
    return [["metric", *fields], *rows]


def _label(metric: str) -> str:
    """Return the name of a metric, with an arrow if lower is better as far as is known here."""
    found = metric_if_available(metric)
    return direction_label(metric, found is None or found.higher_is_better)


def _direction_notes(metrics: Iterable[str]) -> list[str]:
    lower = [name for name in metrics if _label(name) != name]
    return [f"↓ lower is better: {', '.join(lower)}"] if lower else []


def _histograms(segments: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    for name, rows in segments.items():
        values = [row["value"] for row in rows if finite_or_none(row["value"]) is not None]
        if not values:
            continue
        low, high = 0.0, 1.0
        if min(values) < low or max(values) > high:
            scale = nice_scale(values, 0, 1)
            low, high = scale.low, scale.high
        counts, _ = np.histogram(values, _BINS, (low, high))
        yield histogram(("score", "pairs"), counts.tolist(), low, high).figure(name)


def _rows_section(segments: Mapping[str, Any], pairs: Sequence[Pair] | None) -> str:
    header = ["row", *segments, "flags", *(["candidate"] if pairs else [])]
    count = len(next(iter(segments.values())))
    table = [header]
    for n in range(min(count, _MAX_ROWS)):
        own = [rows[n] for rows in segments.values()]
        flags = sorted({flag for row in own for flag in row["flags"]})
        values = [format_number(finite_or_none(row["value"])) for row in own]
        text = [truncate(pairs[n].candidate, _MAX_CHARACTERS)] if pairs else []
        table.append([str(n), *values, ", ".join(flags), *text])
    intro = f"Rows are numbered from 0. {SORT_HINT}"
    if count > _MAX_ROWS:
        intro = f"The first {_MAX_ROWS} of {count} rows. {intro}"
    return section("All rows", intro, sortable_table(table, "Score of each pair"))


def _notes(
    document: Mapping[str, Any], segments: Mapping[str, Any], pairs: Sequence[Pair] | None
) -> Iterator[str]:
    yield from _direction_notes(document["metrics"])
    for name, each in document["metrics"].items():
        yield f"{name}: {each['signature']}"
    for name, why in document.get("absent", {}).items():
        yield f"{name} could not run: {why}"
    if not segments:
        yield (
            "this result has only mean scores; to show distributions and all rows, create it with "
            "evenmatch score … --segments --json"
        )
    elif pairs is None:
        yield (
            "no texts are given; to show the worst and the best texts, use evenmatch report … "
            "--texts FILE, or in Python write_report(…, pairs=…)"
        )


def examples_section(
    segments: Mapping[str, Sequence[Mapping[str, Any]]],
    pairs: Sequence[Pair],
    count: int,
    scale: float = 1.0,
) -> str:
    """Return `count` of the worst and of the best texts by the first metric, with alignments."""
    first = next(iter(segments))
    metrics = {name: metric for name in segments if (metric := metric_if_available(name))}
    rising = metrics[first].higher_is_better if first in metrics else True
    values = [row["value"] for row in segments[first]]
    known = [n for n, value in enumerate(values) if finite_or_none(value) is not None]
    ranked = sorted(known, key=lambda n: values[n] if rising else -values[n])
    count = min(count, len(ranked) // 2)
    parts = []
    for heading, rows in (("Worst", ranked[:count]), ("Best", ranked[: -count - 1 : -1])):
        parts.append(f"<h3>{heading}</h3>")
        for n in rows:
            scores = {name: own[n]["value"] for name, own in segments.items()}
            parts.append(_example_article(n, pairs[n], scores, metrics, scale))
    text = f"Ranked by {first}. Expand an alignment to see which units are matched."
    return section("Worst and best texts", text, "\n".join(parts) if count else "")


def _example_article(
    row: int,
    pair: Pair,
    scores: Mapping[str, float | None],
    metrics: Mapping[str, Metric],
    scale: float,
) -> str:
    numbers = [f"{escape(name)} <b>{format_number(value)}</b>" for name, value in scores.items()]
    texts = [("candidate", pair.candidate), *(("reference", text) for text in pair.references)]
    alignment = _alignment_html(pair, scores, metrics, scale)
    return text_article(f"row {row}", " · ".join(numbers), texts, alignment)


def _alignment_html(
    pair: Pair,
    scores: Mapping[str, float | None],
    metrics: Mapping[str, Metric],
    scale: float,
) -> str:
    """Return the alignments by all alignment metrics, collapsed; '' if there are none."""
    aligning = [(n, metric) for n, metric in metrics.items() if isinstance(metric, AlignMetric)]
    if not aligning or not pair.candidate or not any(pair.references):
        return ""
    name, first = aligning[0]
    try:
        found = [(text, align_texts(pair.candidate, text, first)) for text in pair.references]
        reference, aligned = max(found, key=lambda each: each[1].score.value)
        if len(aligned.candidate_units) * len(aligned.reference_units) > MAX_CELLS:
            return '<p class="where">These texts are too long to plot their alignment.</p>'
        own = align_all(aligning, [pair.candidate], reference)
    except EvenmatchError as error:
        return f'<p class="where">The alignment cannot be plotted: {escape(str(error))}</p>'
    value = scores[name]
    note = _difference_note(aligned, name, None if value is None else value / scale)
    still = f'<div class="evenmatch">{scroll_region(link_diagram(aligned), "pairs of units")}</div>'
    return f"<details><summary>Alignment</summary>\n{note}{viewer_element(own, still)}</details>\n"


def _difference_note(aligned: Aligned, name: str, value: float | None) -> str:
    """Return a note if the alignment shown has another score, as with idf over all texts."""
    if value is None or abs(aligned.score.value - value) <= _TOLERANCE:
        return ""
    return (
        f'<p class="where">Scored alone, this pair gets {aligned.score.value:.4f} by '
        f"{escape(name)}; the result was computed with other settings, for example idf weights "
        "over all texts.</p>\n"
    )
