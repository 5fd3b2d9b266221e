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
    header += ["raised by padding"]
    return [
        header,
        *(
            [
                row.encoder,
                padding_label(row.length),
                row.algorithm,
                *(f"{v:.3f}" for v in (row.aligned, row.shuffled)),
                interval_or_dash(row.effect, 2),
                f"{row.told_apart:.4f}",
                interval_or_dash(row.beyond_greedy, 2),
                interval_or_dash(row.wider, 3),
                interval_or_dash(row.lowered, 3),
                interval_or_dash(row.inflated, 3),
            ]
            for row in rows
        ),
    ]


def describe_claims(rows: list[GridRow]) -> list[str]:
    """Return the paper's claims, each with the result for every encoder."""
    found = []
    for encoder in dict.fromkeys(row.encoder for row in rows):
        own = {(r.algorithm, r.length): r for r in rows if r.encoder == encoder}
        lengths = sorted({length for _, length in own})
        lsa, longest = own.get(("lsa", lengths[0])), lengths[-1]
        if lsa and lsa.lowered:
            found.append(
                f"{encoder}: one-to-one alignment lowers the mean by "
                f"{interval_or_dash(lsa.lowered, 3)}"
            )
        for name in (GREEDY, "lsa"):
            row = own.get((name, longest))
            if row and row.inflated and row.inflated_shuffled:
                found.append(
                    f"{encoder}: padding to {longest} raises {name} by "
                    f"{interval_or_dash(row.inflated, 4)} on pairs and by "
                    f"{interval_or_dash(row.inflated_shuffled, 4)} on negatives"
                )
        unpadded = [r for r in own.values() if r.length == lengths[0] and r.algorithm != BASELINE]
        best = max(unpadded, key=lambda r: r.effect.value)
        widest = max(unpadded, key=lambda r: r.aligned - r.shuffled)
        found.append(
            f"{encoder}, {padding_phrase(lengths[0])}: {best.algorithm} separates pairs from "
            f"negatives best by effect size, {interval_or_dash(best.effect, 2)}, and "
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
    found = {
        "lengths": _length_figure(runs.token_counts),
        "baseline": _baseline_figure(runs),
        "models": _pooled_figure(runs, "All runs by encoder", "encoder", runs.encoders),
        "algorithms": _pooled_figure(runs, "All runs by algorithm", "algorithm", runs.algorithms),
    }
    for number, encoder in enumerate(runs.encoders, 1):
        found[f"padding-{number}"] = _padding_figure(runs, encoder)
        found[f"effects-{number}"] = _effects_figure(rows, encoder)
        for length in runs.lengths:
            name = f"separation-{number}-{padding_label(length)}"
            found[name] = _separation_figure(runs, encoder, length)
    return found


def padding_label(length: int) -> str:
    """Return a padded length as a table shows it."""
    return str(length) if length else "none"


def padding_phrase(length: int) -> str:
    """Return a padded length as a phrase."""
    return f"padded to {length}" if length else "no padding"


def interval_or_dash(interval: Interval | None, digits: int) -> str:
    """Format a number with its interval; a dash for None.

    >>> interval_or_dash(Interval(1.234, 1.0, 1.5), 2), interval_or_dash(None, 2)
    ('1.23 [1.00, 1.50]', '-')
    """
    if interval is None:
        return "-"
    value, low, high = (
        f"{v + 0.0:.{digits}f}" for v in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]"


def _row(runs: GridScores, encoder: str, length: int, algorithm: str) -> GridRow:
    def scores(side: str, by: str = algorithm, at: int = length) -> Floats | None:
        return runs.cells.get(GridCell(encoder, by, at, side))

    pairs, negatives = runs.cells[GridCell(encoder, algorithm, length, ALIGNED)], scores(SHUFFLED)
    assert negatives is not None
    effect = effect_size(pairs, negatives)
    lowered = beyond = wider = None
    if algorithm not in (GREEDY, BASELINE):
        greedy = scores(ALIGNED, GREEDY), scores(SHUFFLED, GREEDY)
        lowered = _difference(greedy[0], pairs)
        if greedy[0] is not None and greedy[1] is not None:
            greedy_effect = effect_size(greedy[0], greedy[1])
            beyond = bootstrap_interval(lambda w: effect(w) - greedy_effect(w), len(pairs))
            wider = _difference(pairs - negatives, greedy[0] - greedy[1])
    unpadded = (scores(ALIGNED, at=0), scores(SHUFFLED, at=0)) if length else (None, None)
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
        None if unpadded[0] is None else _difference(pairs, unpadded[0]),
        None if unpadded[1] is None else _difference(negatives, unpadded[1]),
    )


def _difference(x: Floats | None, y: Floats) -> Interval | None:
    return None if x is None else bootstrap_interval(mean_difference(x, y), len(y))


def _length_figure(counts: Sequence[int]) -> str:
    bins = np.bincount(np.asarray(counts) // _BIN_WIDTH)
    axes = ("tokens, special tokens included", "texts")
    plot = histogram(axes, bins.tolist(), 0, _BIN_WIDTH * len(bins))
    return plot.svg_file("Lengths of the texts")


def _baseline_figure(runs: GridScores) -> str:
    """Return the paper's figure 3."""
    groups = {
        encoder: {
            name: runs.cells[GridCell(encoder, BASELINE, 0, side)] for name, side in _SIDES.items()
        }
        for encoder in runs.encoders
    }
    return violin_plot("score", groups).svg_file("Cosine of the closing tokens (eot)")


def _pooled_figure(runs: GridScores, title: str, field: str, names: Iterable[str]) -> str:
    """Return the paper's figures 4 and 5: the pooled scores of all cells with each name."""
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


def _padding_figure(runs: GridScores, encoder: str) -> str:
    """Return the paper's figure 2: pairs, padded to each length."""
    groups = {
        algorithm: {
            padding_phrase(n): runs.cells[GridCell(encoder, algorithm, n, ALIGNED)]
            for n in runs.lengths
        }
        for algorithm in runs.algorithms
    }
    return violin_plot("F", groups).svg_file(f"Effect of padding on pairs, {encoder}")


def _separation_figure(runs: GridScores, encoder: str, length: int) -> str:
    """Return the paper's figures 6 and 7, for every algorithm."""
    groups = {
        algorithm: {
            name: runs.cells[GridCell(encoder, algorithm, length, side)]
            for name, side in _SIDES.items()
        }
        for algorithm in runs.algorithms
    }
    title = f"Pairs and in-batch negatives, {encoder}, {padding_phrase(length)}"
    return violin_plot("F", groups).svg_file(title)


def _effects_figure(rows: list[GridRow], encoder: str) -> str:
    own = [row for row in rows if row.encoder == encoder and row.algorithm != BASELINE]
    groups = {
        algorithm: {padding_phrase(r.length): r.effect for r in own if r.algorithm == algorithm}
        for algorithm in dict.fromkeys((GREEDY, *(row.algorithm for row in own)))
    }
    plot = interval_plot("effect size (Cohen's d)", {k: g for k, g in groups.items() if g})
    return plot.svg_file(f"Separation of pairs and negatives, {encoder}")
