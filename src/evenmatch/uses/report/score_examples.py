"""The worst and the best of the texts that were scored, with how they align."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from evenmatch.errors import EvenmatchError
from evenmatch.scoring.aligned import Aligned, align_texts
from evenmatch.scoring.metric import AlignMetric
from evenmatch.types import Metric, Pair
from evenmatch.uses.report.metrics_here import metric_here
from evenmatch.uses.report.whole_page import scrolled, section
from evenmatch.viewer.links import links
from evenmatch.viewer.page import viewer_element
from evenmatch.viewer.shown import all_shown
from evenmatch.viewer.table import MOST_CELLS

_CLOSE = 1e-3  # an alignment drawn now should score what the result says


@dataclass(frozen=True, slots=True)
class Example:
    """A pair that was scored, which row it is, and its scores by metric."""

    row: int
    pair: Pair
    scores: Mapping[str, float | None]


def examples_part(
    segments: Mapping[str, Sequence[Mapping[str, Any]]], pairs: Sequence[Pair], count: int
) -> str:
    """So many of the worst and of the best texts by the first metric, each with its alignments."""
    first = next(iter(segments))
    metrics = {name: metric for name in segments if (metric := metric_here(name))}
    rising = metrics[first].higher_is_better if first in metrics else True
    values = [row["value"] for row in segments[first]]
    known = [n for n, value in enumerate(values) if value is not None and math.isfinite(value)]
    ranked = sorted(known, key=lambda n: values[n] if rising else -values[n])
    count = min(count, len(ranked) // 2)
    shown = {
        "Worst": ranked[:count],
        "Best": ranked[: -count - 1 : -1],
    }
    parts = []
    for heading, rows in shown.items():
        parts.append(f"<h3>{heading}</h3>")
        for n in rows:
            scores = {name: own[n]["value"] for name, own in segments.items()}
            parts.append(_article(Example(n, pairs[n], scores), metrics))
    said = f"By {first}. Open an alignment to see which units are paired."
    return section("Worst and best", said, "\n".join(parts) if count else "")


def _article(example: Example, metrics: Mapping[str, Metric]) -> str:
    scores = " · ".join(
        f"{escape(name)} <b>{'-' if value is None else f'{value:.4f}'}</b>"
        for name, value in example.scores.items()
    )
    texts = [("candidate", example.pair.candidate)]
    texts += [("reference", text) for text in example.pair.references]
    said = "".join(f"<dt>{name}</dt><dd>{escape(text) or '(empty)'}</dd>" for name, text in texts)
    return (
        f'<article>\n<p class="where">row {example.row}</p>\n<p>{scores}</p>\n<dl>{said}</dl>\n'
        f"{_alignment(example, metrics)}</article>"
    )


def _alignment(example: Example, metrics: Mapping[str, Metric]) -> str:
    """How the texts align by each metric that aligns, to open; nothing where none does."""
    aligning = [(name, metric) for name, metric in metrics.items() if _aligns(metric)]
    if not aligning or not example.pair.candidate or not any(example.pair.references):
        return ""
    try:
        reference, aligned = _best(example.pair, aligning[0][1])
        if len(aligned.candidate_units) * len(aligned.reference_units) > MOST_CELLS:
            return '<p class="where">These texts are too long to draw how they align.</p>'
        own = all_shown(aligning, [example.pair.candidate], reference)
    except EvenmatchError as error:
        return f'<p class="where">The alignment is not drawn: {escape(str(error))}</p>'
    note = _difference(aligned, aligning[0][0], example)
    still = f'<div class="evenmatch">{scrolled(links(aligned), "pairs of units")}</div>'
    return (
        f"<details><summary>The alignment</summary>\n{note}{viewer_element(own, still)}</details>\n"
    )


def _aligns(metric: Metric) -> bool:
    return isinstance(metric, AlignMetric)


def _best(pair: Pair, metric: Metric) -> tuple[str, Aligned]:
    """The reference that counts, and the alignment with it."""
    found = [(text, align_texts(pair.candidate, text, metric)) for text in pair.references]
    return max(found, key=lambda each: each[1].score.value)


def _difference(aligned: Aligned, name: str, example: Example) -> str:
    """A word where what is drawn is not what was scored, as with idf counted over all texts."""
    value = example.scores[name]
    if value is None or abs(aligned.score.value - value) <= _CLOSE:
        return ""
    return (
        f'<p class="where">Drawn by itself, this pair scores {aligned.score.value:.4f} by '
        f"{escape(name)}; the result was made with another setting.</p>\n"
    )
