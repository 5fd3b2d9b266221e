"""Scores of texts as one page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evenmatch.data.tables import Table, number
from evenmatch.errors import InputError
from evenmatch.types import Pair
from evenmatch.uses.report.fluid import bar_field, captioned, figures_part
from evenmatch.uses.report.plot_frame import scale_of
from evenmatch.uses.report.score_examples import examples_part
from evenmatch.uses.report.sorted_table import sorted_table
from evenmatch.uses.report.whole_page import notes_part, section, whole_page
from evenmatch.viewer.labels import shorten

_STRETCHES = 20
_MOST_ROWS = 1000  # more make a page slow, and nobody reads them there
_LONGEST = 90  # characters of a text in the table


def score_page(
    document: Mapping[str, Any], *, pairs: Sequence[Pair] | None = None, examples: int = 3
) -> str:
    """Means, how scores are spread, the worst and the best texts, and every row.

    All but the means need the scores of single pairs, and texts are shown where `pairs` are given.
    """
    metrics = document["metrics"]
    segments = {name: each["segments"] for name, each in metrics.items() if "segments" in each}
    _check(segments, pairs)
    shown = examples_part(segments, pairs, examples) if pairs else ""
    parts = (
        section("Means", "", sorted_table(_means(metrics), "The mean of each metric")),
        figures_part("How scores are spread", "", [*_figures(segments)]),
        shown,
        _rows(segments, pairs) if segments else "",
        notes_part(_notes(document, segments, pairs), document.get("command", "")),
    )
    return whole_page(f"Scores: {', '.join(metrics)}", parts, viewer="<evenmatch-viewer" in shown)


def _check(segments: Mapping[str, Any], pairs: Sequence[Pair] | None) -> None:
    if pairs is None:
        return
    if not segments:
        raise InputError(
            "texts were given but the result has no scores of single pairs; make it with: "
            "evenmatch score … --segments --json"
        )
    count = len(next(iter(segments.values())))
    if len(pairs) != count:
        raise InputError(
            f"the result has {count} rows but there are {len(pairs)} pairs of texts; give the "
            "file that was scored"
        )


def _means(metrics: Mapping[str, Any]) -> Table:
    corpus = any("corpus" in each for each in metrics.values())
    fields = ["mean", "precision", "recall", *(["corpus"] if corpus else [])]
    rows = [[name, *(number(each.get(f)) for f in fields)] for name, each in metrics.items()]
    return [["metric", *fields], *rows]


def _figures(segments: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    for name, rows in segments.items():
        values = [row["value"] for row in rows if _known(row["value"])]
        if not values:
            continue
        low, high = min(values), max(values)
        if low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        else:
            scale = scale_of(values, 0, 1)
            low, high = scale.low, scale.high
        counts, _ = np.histogram(values, _STRETCHES, (low, high))
        yield captioned(name, bar_field(("score", "pairs"), counts.tolist(), low, high))


def _rows(segments: Mapping[str, Any], pairs: Sequence[Pair] | None) -> str:
    header = ["row", *segments, "flags", *(["candidate"] if pairs else [])]
    count = len(next(iter(segments.values())))
    table = [header]
    for n in range(min(count, _MOST_ROWS)):
        own = [rows[n] for rows in segments.values()]
        flags = sorted({flag for row in own for flag in row["flags"]})
        values = [number(row["value"]) if _known(row["value"]) else "-" for row in own]
        text = [shorten(pairs[n].candidate, _LONGEST)] if pairs else []
        table.append([str(n), *values, ", ".join(flags), *text])
    said = "A column's name sorts by it."
    if count > _MOST_ROWS:
        said = f"The first {_MOST_ROWS} of {count} rows. {said}"
    return section("All rows", said, sorted_table(table, "Scores of single pairs"))


def _notes(
    document: Mapping[str, Any], segments: Mapping[str, Any], pairs: Sequence[Pair] | None
) -> Iterator[str]:
    for name, each in document["metrics"].items():
        yield f"{name}: {each['signature']}"
    for name, why in document.get("absent", {}).items():
        yield f"{name} could not run: {why}"
    if not segments:
        yield "single pairs are not in this result; evenmatch score … --segments puts them there"
    elif pairs is None:
        yield "texts were not given; evenmatch report … --texts FILE shows the worst and the best"


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
