"""The report on word alignments: tables with intervals, and a pair with its links."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.reports.plots import interval_plot
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.bootstrap import Interval, bootstrap_interval
from evenmatch.studies.experiment import format_interval
from evenmatch.studies.word_alignment import (
    NO_THRESHOLD,
    PLAIN,
    TUNED,
    SolverLinks,
    WordAlignedSet,
    solve_words,
    word_similarities,
)
from evenmatch.viewer.links import text_width, unit_label

_GREEDY = "greedy"
_MAX_WORDS = 12  # of a sentence in the picture

# Measures and colours of the picture.
_FONT_SIZE = 13.0
_GAP, _LEFT, _TOP = 12.0, 16.0, 30.0
_HEIGHT = 92.0  # from the upper to the lower row of words
_PANEL = _HEIGHT + 62.0
_AGREED, _EXTRA, _MISSED = "#0b5ca8", "#e8590c", "#adb5bd"


def word_alignment_report(
    found: Sequence[SolverLinks],
    dev: WordAlignedSet,
    tests: Sequence[WordAlignedSet],
    *,
    model: str = "minilm",
    picture: bool = True,
    **run: Any,
) -> StudyReport:
    """Report precision, recall, F1 and AER of each solver on each test set."""
    tables = {each.name: score_table(found, each.name) for each in tests}
    groups = {
        f"{each.name}, {solver.solver}": {
            rule: f1_interval(solver, each.name, rule) for rule in (PLAIN, TUNED)
        }
        for each in tests
        for solver in found
    }
    figures = {"f1": interval_plot("F1", groups).svg_file("F1 against human links")}
    if picture:
        figures["links"] = draw_example(found, tests[0], model, **run)
    sizes = ", ".join(f"{each.name} ({len(each.pairs)} pairs)" for each in tests)
    notes = (
        f"layer, share and threshold of each solver are those with the highest F1 on {dev.name} "
        f"({len(dev.pairs)} pairs); tested on {sizes}",
        f"words: means of the sub-words' hidden states of {model}; similarity: cosine",
        "a cell is a link if it holds at least the share of the credit of one of its words, and if "
        "its similarity is above the threshold; plain: without a threshold",
        "precision, recall and F1 are against all human links, sure and possible, summed over "
        "sentences; AER is the alignment error rate of Och & Ney (2003)",
        "in brackets: 95 % bootstrap intervals over sentences, 1000 resamples; differences are "
        "paired",
        "not run: other encoders, and other settings of the solvers than their defaults; the "
        "intervals do not cover the choice of layer, share and threshold",
    )
    title = "Word alignments of the solvers and of people"
    return StudyReport(title, list(describe_findings(found, tests)), tables, figures, notes)


def score_table(found: Sequence[SolverLinks], name: str) -> TextTable:
    """Return a row per solver for one test set."""
    header = ["solver", "layer", "share", "threshold", "precision", "recall", "F1", "AER"]
    table = [[*header, "F1 minus greedy", "F1 plain"]]
    for solver in found:
        rule, counts = solver.rules[TUNED], solver.counts[name][TUNED]
        size = len(counts.found)
        scores = [
            format_interval(bootstrap_interval(statistic, size))
            for statistic in (counts.precision, counts.recall, counts.f1, counts.aer)
        ]
        threshold = "none" if rule.threshold == NO_THRESHOLD else f"{rule.threshold:.2f}"
        table.append(
            [
                solver.solver,
                str(rule.layer),
                f"{rule.share:.2f}",
                threshold,
                *scores,
                format_interval(minus_greedy(found, solver, name, TUNED), signed=True),
                format_interval(f1_interval(solver, name, PLAIN)),
            ]
        )
    return table


def word_alignment_rows(found: Sequence[SolverLinks]) -> list[dict[str, Any]]:
    """Return a record per solver, test set and rule, with the rule and all scores."""
    rows: list[dict[str, Any]] = []
    for solver in found:
        for name, by_rule in solver.counts.items():
            for rule, counts in by_rule.items():
                row: dict[str, Any] = {"solver": solver.solver, "data": name, "rule": rule}
                row |= {**asdict(solver.rules[rule]), "dev_f1": solver.dev_f1[rule]}
                for key in ("precision", "recall", "f1", "aer"):
                    interval = bootstrap_interval(getattr(counts, key), len(counts.found))
                    row[key] = asdict(interval)
                rows.append(row)
    return rows


def f1_interval(solver: SolverLinks, name: str, rule: str) -> Interval:
    """Return a solver's F1 on a test set with its interval."""
    counts = solver.counts[name][rule]
    return bootstrap_interval(counts.f1, len(counts.found))


def minus_greedy(
    found: Sequence[SolverLinks], solver: SolverLinks, name: str, rule: str
) -> Interval | None:
    """Return how much higher a solver's F1 is than that of greedy; None for greedy itself."""
    greedy = next((each for each in found if each.solver == _GREEDY), None)
    if greedy is None or solver is greedy:
        return None
    ours, theirs = solver.counts[name][rule], greedy.counts[name][rule]
    return bootstrap_interval(lambda w: ours.f1(w) - theirs.f1(w), len(ours.found))


def describe_findings(
    found: Sequence[SolverLinks], tests: Sequence[WordAlignedSet]
) -> Sequence[str]:
    """Return a sentence per test set and rule: the best solver, and what greedy loses to it."""
    lines = []
    for each in tests:
        for rule, how in ((PLAIN, "without a threshold"), (TUNED, "with a threshold")):
            scores = {s.solver: f1_interval(s, each.name, rule).value for s in found}
            best = max(found, key=lambda s: scores[s.solver])
            line = (
                f"{each.name}, {how}: {best.solver} has the highest F1, {scores[best.solver]:.3f}"
            )
            if (gain := minus_greedy(found, best, each.name, rule)) is not None:
                line += f"; greedy {scores[_GREEDY]:.3f}, difference "
                line += format_interval(gain, signed=True)
            lines.append(line)
    return lines


def draw_example(
    found: Sequence[SolverLinks], given: WordAlignedSet, model: str, **run: Any
) -> str:
    """Draw a pair with human links, those of greedy, and those of the best other solver.

    Of the pairs with short sentences it is the one whose gain over greedy is nearest to the mean
    gain, so that the picture shows what is usual.
    """
    scores = {s.solver: f1_interval(s, given.name, PLAIN).value for s in found}
    others = [s for s in found if s.solver != _GREEDY] or list(found)
    best = max(others, key=lambda s: scores[s.solver])
    shown = [s for s in found if s.solver == _GREEDY and s is not best] + [best]
    each = np.eye(len(given.pairs))
    gain = best.counts[given.name][PLAIN].f1(each) - shown[0].counts[given.name][PLAIN].f1(each)
    short = [
        i
        for i, pair in enumerate(given.pairs)
        if max(len(pair.source), len(pair.target)) <= _MAX_WORDS
    ] or list(range(len(given.pairs)))
    chosen = min(short, key=lambda i: abs(gain[i] - gain.mean()))
    pair = given.pairs[chosen]
    layers = sorted({s.rules[PLAIN].layer for s in shown})
    matrices = word_similarities([pair], model, layers, **run)
    panels = {}
    for solver in shown:
        rule = solver.rules[PLAIN]
        similarity = matrices[rule.layer][0]
        mask = rule.links(solve_words(solver.solver, [similarity])[0], similarity)
        panels[f"{solver.solver}, layer {rule.layer}"] = [
            (int(i), int(j)) for i, j in np.argwhere(mask)
        ]
    title = "Blue: as people; orange: not drawn by people; dashed: missed"
    return link_plot(title, pair.source, pair.target, pair.links, panels)


def link_plot(
    title: str,
    above: Sequence[str],
    below: Sequence[str],
    human: Collection[tuple[int, int]],
    panels: Mapping[str, Collection[tuple[int, int]]],
) -> str:
    """Return an SVG file: the human links, then a panel for the links of each name.

    Links that people drew too are blue, other links orange, and missed links dashed grey.
    """
    places = [_middles(words) for words in (above, below)]
    drawn = {"people": human, **panels}
    width = max(600.0, *(row[-1] + 60 for row in places if row))
    height = 34 + _PANEL * len(drawn)
    body = ""
    for number, (name, links) in enumerate(drawn.items()):
        missed = sorted(set(human) - set(links))
        lines = [_line(places, link, _MISSED, ' stroke-dasharray="4 4"') for link in missed]
        lines += [_line(places, k, _AGREED if k in human else _EXTRA) for k in sorted(links)]
        words = "".join(
            f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(unit_label(word))}</text>'
            for row, side, y in zip((above, below), places, (_TOP, _TOP + _HEIGHT), strict=True)
            for word, x in zip(row, side, strict=True)
        )
        body += (
            f'<g transform="translate(0 {34 + _PANEL * number:.0f})">'
            f'<text x="{_LEFT}" y="8" font-weight="600">{escape(name)}</text>'
            f"{''.join(lines)}{words}</g>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="{_FONT_SIZE:.0f}" fill="#212529">'
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="600">{escape(title)}</text>'
        f"{body}</svg>\n"
    )


def _middles(words: Sequence[str]) -> list[float]:
    """Return the centre of each word in its row."""
    found, left = [], _LEFT
    for word in words:
        width = _FONT_SIZE * text_width(unit_label(word))
        found.append(left + width / 2)
        left += width + _GAP
    return found


def _line(
    places: Sequence[Sequence[float]], link: tuple[int, int], colour: str, more: str = ""
) -> str:
    x, y = places[0][link[0]], places[1][link[1]]
    return (
        f'<line x1="{x:.1f}" y1="{_TOP + 6}" x2="{y:.1f}" y2="{_TOP + _HEIGHT - 15}" '
        f'stroke="{colour}" stroke-width="1.8"{more}/>'
    )
