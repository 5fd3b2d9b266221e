"""The page on agreement with human ratings, from the stored results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evenmatch.evaluation.agreement import average_entries
from evenmatch.evaluation.agreement_result import AVERAGE_SUBSET, AgreementEntry
from tools.pages.published_agreement import HEADINGS, PAPERS

_INTRODUCTION = """# Agreement with human ratings

How closely metrics agree with human ratings on public data sets, computed by
`python -m tools.pages.agreement` with the embedded encoder (`minilm`, 22.7 million parameters,
layers 4 and 6). Each value has its 95 % bootstrap interval below it. **Bold** marks the metrics of
the first significance cluster: no metric is significantly better than those. A dash means that
there is no value. [Choose a metric](../choose-a-metric.md) draws the conclusions.

Published numbers are listed beside ours, with their source. Most come from far larger encoders and
some from other texts, so they show what is usual rather than what should be reproduced here; each
section says what differs.
"""


def write_page(results: Path, page: Path, names: Sequence[str]) -> None:
    """Write the page from the results that exist; those on structure have a page of their own."""
    sections = [_INTRODUCTION]
    for name in names:
        if not name.startswith("structure-") and (pieces := read_pieces(results, name)):
            sections.append("\n".join(_section(name, pieces)))
    page.write_text("\n".join(sections), "utf-8")


def read_pieces(results: Path, name: str) -> list[dict[str, Any]]:
    """Return the stored results of one task: one document per subset, or one for all."""
    return [
        json.loads(path.read_text("utf-8"))
        for path in sorted((results / "agreement").glob(f"{name}*.json"))
        if path.name.split(".")[0] == name
    ]


def _section(name: str, pieces: Sequence[dict[str, Any]]) -> Iterator[str]:
    recipe = pieces[0]["recipe"]
    heading, remark = HEADINGS[name]
    yield f"## {heading}\n"
    yield f"{recipe['method']}, level `{recipe['level']}`. {remark}\n"
    if segments := pieces[0]["segments"]:
        yield f"Only {segments} randomly sampled segments of each set.\n"
    yield from agreement_table(agreement_entries(pieces, "entries"), "metric")
    for number, more in enumerate(pieces[0].get("more", ())):
        several = [{**piece["more"][number], "groups": piece["groups"]} for piece in pieces]
        yield f"\n{more['method']}, level `{more['level']}` ({more['resamples']} resamples):\n"
        yield from agreement_table(agreement_entries(several, "entries"), "metric")
    if selection := [row for piece in pieces for row in piece.get("selection", ())]:
        yield from _selection(selection, recipe["good"])
    if paper := PAPERS.get(name):
        yield "\nPublished values:\n"
        yield from _paper(paper)
    if contests := agreement_entries(pieces, "differences"):
        if against := recipe.get("against"):
            yield f"\nGain in agreement over `{against}`:\n"
        else:
            yield "\nGain in agreement of one-to-one and transport over greedy alignment:\n"
        yield from agreement_table(contests, "difference")
        yield "\n" + _verdict(contests)
    yield ""


def agreement_entries(pieces: Sequence[dict[str, Any]], kind: str) -> list[AgreementEntry]:
    """Return all entries of one kind, with averages over the subsets."""
    by_set: dict[tuple[str, Any], list[AgreementEntry]] = {}
    for number, piece in enumerate(pieces):
        for row in piece[kind]:
            known: dict[str, Any] = {k: math.nan if _missing(k, v) else v for k, v in row.items()}
            entry = AgreementEntry(**known)
            group = f"{number}.{piece['groups'][entry.subset]}"
            by_set.setdefault((entry.subset, group), []).append(entry)
    numbers = {group: n for n, group in enumerate(dict.fromkeys(g for _, g in by_set))}
    every = [entry for several in by_set.values() for entry in several]
    return every + average_entries(list(by_set.values()), [numbers[group] for _, group in by_set])


def _missing(key: str, value: Any) -> bool:
    return value is None and key in ("value", "low", "high")


def agreement_table(entries: Sequence[AgreementEntry], what: str) -> Iterator[str]:
    """Yield a table of metrics and subsets, with intervals."""
    subsets = list(dict.fromkeys(entry.subset for entry in entries))
    cells = {(entry.metric, entry.subset): entry for entry in entries}
    points = {s: max(e.n for e in entries if e.subset == s) for s in subsets if s != AVERAGE_SUBSET}
    names = [f"{s or 'all'} (n {points[s]})" if s in points else s for s in subsets]
    yield f"| {what} | {' | '.join(names)} |"
    yield "|---" * (len(subsets) + 1) + "|"
    for metric in dict.fromkeys(entry.metric for entry in entries):
        row = [_cell(cells.get((metric, subset))) for subset in subsets]
        yield f"| {metric} | {' | '.join(row)} |"


def _selection(rows: Sequence[dict[str, Any]], good: float) -> Iterator[str]:
    yield (
        f"\nAs a filter for the {good:.0%} of outputs with the highest ratings, and as a re-ranker "
        "of the outputs of a segment: precision / recall, F1 with its interval.\n"
    )
    chance = {row["task"]: format_correlation(row["chance"]) for row in rows}
    yield (
        f"| metric | filter (F1 of keeping all: {chance['filter']}) | "
        f"re-ranker (F1 of a random choice: {chance['rerank']}) |"
    )
    yield "|---|---|---|"
    by_metric: dict[str, dict[str, str]] = {}
    for row in rows:
        p, r, f, low, high = (
            format_correlation(row[key]) for key in ("precision", "recall", "value", "low", "high")
        )
        by_metric.setdefault(row["metric"], {})[row["task"]] = f"{p} / {r}, {f}<br>{low} to {high}"
    for metric, cells in by_metric.items():
        yield f"| {metric} | {cells.get('filter', '-')} | {cells.get('rerank', '-')} |"


def _cell(entry: AgreementEntry | None) -> str:
    if entry is None or math.isnan(entry.value):
        return "-"
    value = (
        f"**{format_correlation(entry.value)}**"
        if entry.cluster == 1
        else format_correlation(entry.value)
    )
    if math.isnan(entry.low + entry.high):
        return value
    return f"{value}<br>{format_correlation(entry.low)} to {format_correlation(entry.high)}"


def format_correlation(value: float) -> str:
    """Format with three decimals and no leading zero, as papers print correlations."""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.9995 else text


def _paper(paper: dict[str, Any]) -> Iterator[str]:
    subsets = paper["subsets"]
    yield f"| metric | {' | '.join(subsets)} | source |"
    yield "|---" * (len(subsets) + 2) + "|"
    for metric, values, source in paper["rows"]:
        shown = [("-" if v is None else format_correlation(v)) for v in values]
        yield f"| {metric} | {' | '.join(shown)} | {source} |"


def _verdict(contests: Sequence[AgreementEntry]) -> str:
    """State which differences are significant, on the average if there is one."""
    shown = [e for e in contests if e.subset == AVERAGE_SUBSET] or list(contests)
    said = []
    for entry in shown:
        what = f"{entry.metric}" + (f", {entry.subset}" if entry.subset else "")
        if entry.low > 0:
            said.append(f"{what}: better, the interval excludes 0.")
        elif entry.high < 0:
            said.append(f"{what}: worse, the interval excludes 0.")
        else:
            said.append(f"{what}: no significant difference.")
    return "\n".join(f"- {line}" for line in said)
