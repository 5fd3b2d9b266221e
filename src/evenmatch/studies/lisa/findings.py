"""LiSAScore's experiment as a folder to look at.

What LiSAScore's experiment shows: means, effect sizes, and answers to the paper's claims.

The figures of LiSAScore's experiment, by the name of their file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.reports.plots import histogram_svg, interval_plot_svg, violin_plot_svg
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


def lisa_report(runs: GridScores, rows: list[GridRow]) -> StudyReport:
    """Claims, the table, the paper's figures and what they rest on."""
    notes = (
        f"{len(runs.sentences)} pairs of {runs.sentences.name}, drawn with seed {runs.seed}; "
        "a negative is the same candidate with the text of another pair",
        "padded to: every text is padded to so many pieces, unmasked in the alignment and masked "
        "in the encoder; paddings, opening and closing tokens carry no weight in the mean",
        "effect size: Cohen's d of pairs over negatives; told apart: the chance that a pair scores "
        "above a negative; gap: the difference of the two means; beyond greedy and below greedy "
        "are paired differences at the same padding",
        "in brackets: 95 % by bootstrap over pairs, 1000 resamples, each row on its own; negatives "
        "are one shuffle",
        f"all cells took {runs.seconds:.0f} seconds",
    )
    title = "LiSAScore: assignment, padding and in-batch negatives"
    return StudyReport(
        title, describe_claims(rows), {"table": grid_table(rows)}, grid_figures(runs, rows), notes
    )


@dataclass(frozen=True, slots=True)
class GridRow:
    """An encoder, a length and an algorithm: pairs, in-batch negatives, and how far apart.

    `effect` is Cohen's d with its interval; `beyond_greedy` its difference from greedy's, paired,
    and `wider` by how much the two means are further apart than greedy's;
    `lowered` how far the mean of pairs lies below greedy's, `inflated` how far it lies above its
    own without padding, None where there is nothing to compare with.
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
    """A row for each encoder, length and algorithm, the baseline first."""
    keys = dict.fromkeys((c.encoder, c.length, c.algorithm) for c in runs.cells)
    return [_row(runs, *key) for key in keys]


def _row(runs: GridScores, encoder: str, length: int, algorithm: str) -> GridRow:
    def scores(side: str, by: str = algorithm, at: int = length) -> Floats | None:
        return runs.cells.get(GridCell(encoder, by, at, side))

    pairs, negatives = runs.cells[GridCell(encoder, algorithm, length, ALIGNED)], scores(SHUFFLED)
    assert negatives is not None
    effect = effect_size(pairs, negatives)
    of_greedy = beyond = wider = None
    if algorithm not in (GREEDY, BASELINE):
        greedy = scores(ALIGNED, GREEDY), scores(SHUFFLED, GREEDY)
        of_greedy = _difference(greedy[0], pairs)
        if greedy[0] is not None and greedy[1] is not None:
            theirs = effect_size(greedy[0], greedy[1])
            beyond = bootstrap_interval(lambda w: effect(w) - theirs(w), len(pairs))
            wider = _difference(pairs - negatives, greedy[0] - greedy[1])
    bare = (scores(ALIGNED, at=0), scores(SHUFFLED, at=0)) if length else (None, None)
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
        of_greedy,
        None if bare[0] is None else _difference(pairs, bare[0]),
        None if bare[1] is None else _difference(negatives, bare[1]),
    )


def _difference(x: Floats | None, y: Floats) -> Interval | None:
    return None if x is None else bootstrap_interval(mean_difference(x, y), len(y))


def grid_table(rows: list[GridRow]) -> TextTable:
    """The rows as people read them."""
    header = ["encoder", "padded to", "algorithm", "pairs", "negatives", "effect size"]
    header += ["told apart", "effect beyond greedy", "gap beyond greedy", "mean below greedy"]
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
    """The paper's claims, each with what was found for every encoder."""
    found = []
    for encoder in dict.fromkeys(row.encoder for row in rows):
        own = {(r.algorithm, r.length): r for r in rows if r.encoder == encoder}
        lengths = sorted({length for _, length in own})
        lsa, longest = own.get(("lsa", lengths[0])), lengths[-1]
        if lsa and lsa.lowered:
            found.append(
                f"{encoder}: one-to-one alignment lowers the mean by {interval_or_dash(lsa.lowered, 3)}"
            )
        for name in (GREEDY, "lsa"):
            row = own.get((name, longest))
            if row and row.inflated and row.inflated_shuffled:
                found.append(
                    f"{encoder}: padding to {longest} raises {name} by {interval_or_dash(row.inflated, 4)} "
                    f"on pairs and by {interval_or_dash(row.inflated_shuffled, 4)} on negatives"
                )
        bare = [r for r in own.values() if r.length == lengths[0] and r.algorithm != BASELINE]
        best = max(bare, key=lambda r: r.effect.value)
        widest = max(bare, key=lambda r: r.aligned - r.shuffled)
        found.append(
            f"{encoder}, {padding_phrase(lengths[0])}: pairs and negatives lie furthest apart under "
            f"{best.algorithm} by effect size, {interval_or_dash(best.effect, 2)}, and under "
            f"{widest.algorithm} by difference of means, {widest.aligned - widest.shuffled:.3f}"
        )
    return found


def grid_document(runs: GridScores, rows: list[GridRow]) -> dict[str, Any]:
    """Rows and claims as JSON has them."""
    return {
        "data": runs.sentences.name,
        "pairs": len(runs.sentences),
        "seed": runs.seed,
        "seconds": round(runs.seconds, 1),
        "rows": [asdict(row) for row in rows],
        "claims": describe_claims(rows),
    }


def padding_label(length: int) -> str:
    """A length as people say it."""
    return str(length) if length else "none"


def padding_phrase(length: int) -> str:
    """What was done to texts, in words."""
    return f"padded to {length}" if length else "no padding"


def interval_or_dash(interval: Interval | None, digits: int) -> str:
    """A number with its interval; a dash where there is none.

    >>> interval_or_dash(Interval(1.234, 1.0, 1.5), 2), interval_or_dash(None, 2)
    ('1.23 [1.00, 1.50]', '-')
    """
    if interval is None:
        return "-"
    value, low, high = (
        f"{v + 0.0:.{digits}f}" for v in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]"


_SIDES = {"pairs": ALIGNED, "in-batch negatives": SHUFFLED}


def grid_figures(runs: GridScores, rows: list[GridRow]) -> dict[str, str]:
    """Each figure as SVG; those of one encoder are numbered in the order of encoders."""
    found = {
        "lengths": histogram_svg(
            "Lengths of the texts", "pieces, marks included", runs.token_counts, 4
        ),
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


def _baseline_figure(runs: GridScores) -> str:
    """The paper's figure 3."""
    groups = {
        encoder: {
            name: runs.cells[GridCell(encoder, BASELINE, 0, side)] for name, side in _SIDES.items()
        }
        for encoder in runs.encoders
    }
    return violin_plot_svg("Cosine of the closing tokens (eot)", "score", groups)


def _pooled_figure(runs: GridScores, title: str, field: str, names: Iterable[str]) -> str:
    """The paper's figures 4 and 5: every cell that has the name, together."""
    groups: dict[str, dict[str, Floats]] = {}
    for name in names:
        for label, side in _SIDES.items():
            own = [
                values
                for cell, values in runs.cells.items()
                if cell.side == side and cell.algorithm != BASELINE and getattr(cell, field) == name
            ]
            groups.setdefault(name, {})[label] = np.concatenate(own)
    return violin_plot_svg(title, "F", groups)


def _padding_figure(runs: GridScores, encoder: str) -> str:
    """The paper's figure 2: pairs, padded to each length."""
    groups = {
        algorithm: {
            padding_phrase(n): runs.cells[GridCell(encoder, algorithm, n, ALIGNED)]
            for n in runs.lengths
        }
        for algorithm in runs.algorithms
    }
    return violin_plot_svg(f"What padding does to pairs, {encoder}", "F", groups)


def _separation_figure(runs: GridScores, encoder: str, length: int) -> str:
    """The paper's figures 6 and 7, for every algorithm."""
    groups = {
        algorithm: {
            name: runs.cells[GridCell(encoder, algorithm, length, side)]
            for name, side in _SIDES.items()
        }
        for algorithm in runs.algorithms
    }
    title = f"Pairs and in-batch negatives, {encoder}, {padding_phrase(length)}"
    return violin_plot_svg(title, "F", groups)


def _effects_figure(rows: list[GridRow], encoder: str) -> str:
    own = [row for row in rows if row.encoder == encoder and row.algorithm != BASELINE]
    groups = {
        algorithm: {padding_phrase(r.length): r.effect for r in own if r.algorithm == algorithm}
        for algorithm in dict.fromkeys((GREEDY, *(row.algorithm for row in own)))
    }
    title = f"How far pairs and negatives lie apart, {encoder}"
    return interval_plot_svg(
        title, "effect size (Cohen's d)", {k: g for k, g in groups.items() if g}
    )
