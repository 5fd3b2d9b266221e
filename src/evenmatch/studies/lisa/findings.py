"""The report of LiSAScore's experiment: means, effect sizes, claims and figures.

`summarize_grid` turns the scores of all cells into rows; `lisa_report` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.reports.plots import histogram, interval_plot, violin_plot
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.bootstrap import (
    Interval,
    bootstrap_interval,
    effect_size,
    mean_difference,
    probability_of_superiority,
)
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import format_interval
from evenmatch.studies.lisa.grid import ALIGNED, BASELINE, GREEDY, SHUFFLED, GridCell, GridScores

_BIN_WIDTH = 4  # tokens, in the histogram of lengths
_SIDES = {"pairs": ALIGNED, "in-batch negatives": SHUFFLED}


def lisa_report(runs: GridScores, rows: list[GridRow]) -> StudyReport:
    """Report the paper's claims, a table of all rows, and the paper's figures."""
    notes = (
        f"{len(runs.sentences)} pairs of {runs.sentences.name}, sampled with seed {runs.seed}; "
        "a negative is the same candidate with the text of another pair",
        "padded to: every text is padded to this number of tokens; padding is masked in the "
        "encoder and not in the alignment; padding, opening and closing tokens have no weight in "
        "the mean",
        "effect size: Cohen's d of pairs and negatives; superiority: the probability that a pair "
        "scores above a negative; gap: the difference of the two means; differences from greedy "
        "are paired, at the same padding",
        "in brackets: 95 % bootstrap intervals over pairs, 1000 resamples, each row separately; "
        "negatives are one shuffle",
        f"all cells took {runs.seconds:.0f} seconds",
    )
    title = "LiSAScore: assignment, padding and in-batch negatives"
    return StudyReport(
        title, describe_claims(rows), {"table": grid_table(rows)}, grid_figures(runs, rows), notes
    )


@dataclass(frozen=True, slots=True)
class GridRow:
    """The result for an encoder, a length and an algorithm: mean scores and their separation.

    `aligned` and `shuffled` are the mean scores of pairs and negatives. `effect` is Cohen's d with
    its interval; `told_apart` the probability of superiority; `beyond_greedy` the paired
    difference of the effect from greedy's; `wider` the increase of the gap between the two means
    over greedy's. `lowered` is how far the mean of pairs is below greedy's, `inflated` how far it
    is above that without padding; None where there is nothing to compare with.
    """

    encoder: str
    length: int
    algorithm: str
    aligned: float
    shuffled: float
    effect: Interval
    told_apart: float
    beyond_greedy: Interval | None
    wider: Interval | None
    lowered: Interval | None
    inflated: Interval | None
    inflated_shuffled: Interval | None


def summarize_grid(runs: GridScores) -> list[GridRow]:
    """Return a row for each encoder, length and algorithm, the baseline first."""
    keys = dict.fromkeys((c.encoder, c.length, c.algorithm) for c in runs.cells)
    return [_row(runs, *key) for key in keys]


def grid_table(rows: list[GridRow]) -> TextTable:
    """Return the rows as a text table."""
    header = ["encoder", "padded to", "algorithm", "pairs", "negatives", "effect size"]
    header += ["superiority", "effect minus greedy", "gap minus greedy", "greedy minus mean"]
    table = [[*header, "raised by padding"]]
    for row in rows:
        means = [f"{row.aligned:.3f}", f"{row.shuffled:.3f}"]
        effect, beyond = (format_interval(i, places=2) for i in (row.effect, row.beyond_greedy))
        gaps = [format_interval(i) for i in (row.wider, row.lowered, row.inflated)]
        cells = [*means, effect, f"{row.told_apart:.4f}", beyond, *gaps]
        table.append([row.encoder, padding_label(row.length), row.algorithm, *cells])
    return table


def describe_claims(rows: list[GridRow]) -> list[str]:
    """Return the paper's claims, each with the result for every encoder."""
    found = []
    for encoder in dict.fromkeys(row.encoder for row in rows):
        own = {(r.algorithm, r.length): r for r in rows if r.encoder == encoder}
        lengths = sorted({length for _, length in own})
        lsa, longest = own.get(("lsa", lengths[0])), lengths[-1]
        if lsa and lsa.lowered:
            found.append(
                f"{encoder}: one-to-one alignment lowers the mean by {format_interval(lsa.lowered)}"
            )
        for name in (GREEDY, "lsa"):
            row = own.get((name, longest))
            if row and row.inflated and row.inflated_shuffled:
                found.append(
                    f"{encoder}: padding to {longest} raises {name} by "
                    f"{format_interval(row.inflated, places=4)} on pairs and by "
                    f"{format_interval(row.inflated_shuffled, places=4)} on negatives"
                )
        unpadded = [r for r in own.values() if r.length == lengths[0] and r.algorithm != BASELINE]
        best = max(unpadded, key=lambda r: r.effect.value)
        widest = max(unpadded, key=lambda r: r.aligned - r.shuffled)
        found.append(
            f"{encoder}, {padding_phrase(lengths[0])}: {best.algorithm} separates pairs from "
            f"negatives best by effect size, {format_interval(best.effect, places=2)}, and "
            f"{widest.algorithm} by difference of means, {widest.aligned - widest.shuffled:.3f}"
        )
    return found


def grid_document(runs: GridScores, rows: list[GridRow]) -> dict[str, Any]:
    """Return rows and claims as JSON-compatible values."""
    return {
        "data": runs.sentences.name,
        "pairs": len(runs.sentences),
        "seed": runs.seed,
        "seconds": round(runs.seconds, 1),
        "rows": [asdict(row) for row in rows],
        "claims": describe_claims(rows),
    }


def grid_figures(runs: GridScores, rows: list[GridRow]) -> dict[str, str]:
    """Return each figure as SVG, by file name; those of one encoder have its number."""

    def both_sides(encoder: str, algorithm: str, length: int) -> dict[str, Floats]:
        return {
            name: runs.cells[GridCell(encoder, algorithm, length, side)]
            for name, side in _SIDES.items()
        }

    baseline = violin_plot("score", {e: both_sides(e, BASELINE, 0) for e in runs.encoders})
    found = {
        "lengths": _length_figure(runs.token_counts),
        # Figures 3, 4 and 5 of the paper.
        "baseline": baseline.svg_file("Cosine of the closing tokens (eot)"),
        "models": _pooled_figure(runs, "All runs by encoder", "encoder", runs.encoders),
        "algorithms": _pooled_figure(runs, "All runs by algorithm", "algorithm", runs.algorithms),
    }
    for number, encoder in enumerate(runs.encoders, 1):
        padded = {
            algorithm: {
                padding_phrase(n): runs.cells[GridCell(encoder, algorithm, n, ALIGNED)]
                for n in runs.lengths
            }
            for algorithm in runs.algorithms
        }
        # Figure 2 of the paper.
        title = f"Effect of padding on pairs, {encoder}"
        found[f"padding-{number}"] = violin_plot("F", padded).svg_file(title)
        found[f"effects-{number}"] = _effects_figure(rows, encoder)
        for length in runs.lengths:  # figures 6 and 7, for every algorithm
            separated = {a: both_sides(encoder, a, length) for a in runs.algorithms}
            title = f"Pairs and in-batch negatives, {encoder}, {padding_phrase(length)}"
            name = f"separation-{number}-{padding_label(length)}"
            found[name] = violin_plot("F", separated).svg_file(title)
    return found


def padding_label(length: int) -> str:
    """Return a padded length as a table shows it."""
    return str(length) if length else "none"


def padding_phrase(length: int) -> str:
    """Return a padded length as a phrase."""
    return f"padded to {length}" if length else "no padding"


def _row(runs: GridScores, encoder: str, length: int, algorithm: str) -> GridRow:
    def both_sides(by: str, at: int) -> list[Floats]:
        """Return the scores of pairs and of negatives; nothing if they were not computed."""
        cells = [GridCell(encoder, by, at, side) for side in (ALIGNED, SHUFFLED)]
        return [runs.cells[cell] for cell in cells if cell in runs.cells]

    pairs, negatives = both_sides(algorithm, length)
    effect = effect_size(pairs, negatives)
    beyond = wider = lowered = inflated = inflated_shuffled = None
    if algorithm not in (GREEDY, BASELINE) and (greedy := both_sides(GREEDY, length)):
        greedy_effect = effect_size(*greedy)
        beyond = bootstrap_interval(lambda w: effect(w) - greedy_effect(w), len(pairs))
        wider = _difference(pairs - negatives, greedy[0] - greedy[1])
        lowered = _difference(greedy[0], pairs)
    if length and (unpadded := both_sides(algorithm, 0)):
        inflated = _difference(pairs, unpadded[0])
        inflated_shuffled = _difference(negatives, unpadded[1])
    return GridRow(
        encoder,
        length,
        algorithm,
        float(pairs.mean()),
        float(negatives.mean()),
        bootstrap_interval(effect, len(pairs)),
        probability_of_superiority(pairs, negatives),
        beyond,
        wider,
        lowered,
        inflated,
        inflated_shuffled,
    )


def _difference(x: Floats, y: Floats) -> Interval:
    return bootstrap_interval(mean_difference(x, y), len(y))


def _length_figure(counts: Sequence[int]) -> str:
    bins = np.bincount(np.asarray(counts) // _BIN_WIDTH)
    axes = ("tokens, special tokens included", "texts")
    plot = histogram(axes, bins.tolist(), 0, _BIN_WIDTH * len(bins))
    return plot.svg_file("Lengths of the texts")


def _pooled_figure(runs: GridScores, title: str, field: str, names: Iterable[str]) -> str:
    """Return the pooled scores of all cells with each name."""
    groups: dict[str, dict[str, Floats]] = {}
    for name in names:
        for label, side in _SIDES.items():
            own = [
                values
                for cell, values in runs.cells.items()
                if cell.side == side and cell.algorithm != BASELINE and getattr(cell, field) == name
            ]
            groups.setdefault(name, {})[label] = np.concatenate(own)
    return violin_plot("F", groups).svg_file(title)


def _effects_figure(rows: list[GridRow], encoder: str) -> str:
    own = [row for row in rows if row.encoder == encoder and row.algorithm != BASELINE]
    groups = {
        algorithm: {padding_phrase(r.length): r.effect for r in own if r.algorithm == algorithm}
        for algorithm in dict.fromkeys((GREEDY, *(row.algorithm for row in own)))
    }
    plot = interval_plot("effect size (Cohen's d)", {k: g for k, g in groups.items() if g})
    return plot.svg_file(f"Separation of pairs and negatives, {encoder}")
