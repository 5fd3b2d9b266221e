"""The report of LiSAScore's experiment: means, effect sizes, claims and figures.

`summarize_grid` turns the scores of all cells into rows; `identify_encoders` measures whether
scores identify the encoder; `lisa_report` shows both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from evenmatch.data.tables import TextTable
from evenmatch.reports.plots import histogram, interval_plot, kernel_density, violin_plot
from evenmatch.reports.study_page import StudyReport
from evenmatch.stats.bootstrap import (
    Interval,
    bootstrap_interval,
    effect_size,
    mean_difference,
    probability_of_superiority,
)
from evenmatch.stats.p_values import holm
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import format_interval
from evenmatch.studies.lisa.grid import (
    ALIGNED,
    BASELINE,
    GREEDY,
    HARD,
    SHUFFLED,
    GridCell,
    GridScores,
)

BATCH = 20  # pairs whose scores are averaged, as the paper averages those of a batch
ALPHA = 0.05
_BIN_WIDTH = 4  # tokens, in the histogram of lengths
_SIDE_NAMES = {ALIGNED: "pairs", SHUFFLED: "in-batch negatives", HARD: "hard negatives"}
_LEAST_PEAK = 0.05  # of the highest one


def lisa_report(runs: GridScores, rows: list[GridRow]) -> StudyReport:
    """Report the paper's claims, a table of all rows, and the paper's figures."""
    tests = sum(row.beyond_greedy is not None for row in rows)
    notes = (
        f"{len(runs.sentences)} pairs of {runs.sentences.name}, sampled with seed {runs.seed}; "
        "an in-batch negative is the same candidate with the text of another pair (of its group)",
        "hard negatives: the text of the pair whose candidate is nearest by tf-idf, of all in the "
        "data; in an adversarial set, the text with an error",
        "padded to: every text is padded to this number of tokens; padding is masked in the "
        "encoder and not in the alignment; counted: padding, opening and closing tokens count in "
        "the mean, as in the paper's text; else they have no weight, as in its code",
        "effect size: Cohen's d of pairs and negatives; superiority: the probability that a pair "
        "scores above a negative; wins: the share of pairs that score above their own negative; "
        "gap: the difference of the two means; differences from greedy are paired, at the same "
        "padding",
        "in brackets: 95 % bootstrap intervals over pairs, 1000 resamples, each row separately; "
        f"p: of the difference in effect size, from the width of its interval, corrected for all "
        f"{tests} differences by Holm's method; in-batch negatives are one shuffle",
        f"all cells took {runs.seconds:.0f} seconds",
    )
    title = "LiSAScore: assignment, padding and negatives"
    tables = {"table": grid_table(rows)}
    if len(runs.encoders) > 1 and len(runs.sentences) >= 2 * BATCH:
        tables["identification"] = identification_table(identify_encoders(runs))
    return StudyReport(title, describe_claims(rows), tables, grid_figures(runs, rows), notes)


@dataclass(frozen=True, slots=True)
class GridRow:
    """The result for one encoder, length, algorithm, kind of negatives and group of pairs.

    `group` is "" for all pairs. `aligned` and `negative` are the mean scores of pairs and
    negatives. `effect` is Cohen's d with its interval; `told_apart` the probability of superiority;
    `wins` the share of pairs that score above their own negative; `beyond_greedy` the paired
    difference of the effect from greedy's, with `p`, corrected for all rows; `wider` the increase
    of the gap between the two means over greedy's. `lowered` is how far the mean of pairs is below
    greedy's, `inflated` how far it is above that without padding, and `inflated_negative` the same
    of negatives; None where there is nothing to compare with, and for a group.
    """

    encoder: str
    length: int
    algorithm: str
    counted: bool
    negatives: str
    group: str
    pairs: int
    aligned: float
    negative: float
    effect: Interval
    told_apart: float
    wins: Interval
    beyond_greedy: Interval | None = None
    p: float | None = None
    wider: Interval | None = None
    lowered: Interval | None = None
    inflated: Interval | None = None
    inflated_negative: Interval | None = None


def summarize_grid(runs: GridScores) -> list[GridRow]:
    """Return rows for all pairs, then for each group, by encoder, length and algorithm."""
    cells = [cell for cell in runs.cells if cell.side == ALIGNED]
    members = runs.sentences.members
    groups = {"": np.arange(len(runs.sentences)), **(members if len(members) > 1 else {})}
    rows = [
        _row(runs, cell, side, group, own)
        for (group, own), side, cell in product(groups.items(), runs.negatives, cells)
    ]
    tested = [row.beyond_greedy for row in rows if row.beyond_greedy]
    corrected = iter(holm([_wald_p(each) for each in tested]).tolist())
    return [
        dataclasses.replace(row, p=next(corrected)) if row.beyond_greedy else row for row in rows
    ]


def grid_table(rows: list[GridRow]) -> TextTable:
    """Return the rows as a text table."""
    header = ["group", "negatives", "encoder", "padded to", "counted", "algorithm", "pairs"]
    header += ["negatives' mean", "effect size", "superiority", "wins", "effect minus greedy", "p"]
    table = [[*header, "gap minus greedy", "greedy minus mean", "raised by padding"]]
    for row in rows:
        means = [f"{row.aligned:.3f}", f"{row.negative:.3f}"]
        effect, beyond = (format_interval(i, places=2) for i in (row.effect, row.beyond_greedy))
        gaps = [format_interval(i) for i in (row.wider, row.lowered, row.inflated)]
        p = "-" if row.p is None else f"{row.p:.3f}"
        found = [effect, f"{row.told_apart:.4f}", format_interval(row.wins), beyond, p, *gaps]
        where = [row.group or "all", _SIDE_NAMES[row.negatives], row.encoder]
        padding = [padding_label(row.length), "yes" if row.counted else "no"]
        table.append([*where, *padding, row.algorithm, *means, *found])
    return table


def describe_claims(rows: list[GridRow]) -> list[str]:
    """Return the paper's claims, each with the result for every encoder."""
    found: list[str] = []
    overall = [row for row in rows if not row.group]
    for encoder, counted in product(
        dict.fromkeys(row.encoder for row in rows), sorted({row.counted for row in rows})
    ):
        own = [r for r in overall if r.encoder == encoder and r.counted == counted]
        name = f"{encoder}{', padding counted' if counted else ''}"
        found += _mean_claims(name, [r for r in own if r.negatives == SHUFFLED])
        found += [
            _separation_claim(f"{name}, {padding_phrase(length)}, {_SIDE_NAMES[side]}", same)
            for side, length in dict.fromkeys((r.negatives, r.length) for r in own)
            if (same := [r for r in own if (r.negatives, r.length) == (side, length)])
            and any(r.algorithm != BASELINE for r in same)
        ]
    return found


def _mean_claims(name: str, own: list[GridRow]) -> Iterator[str]:
    """Yield what one-to-one alignment and padding do to the means."""
    by = {(r.algorithm, r.length): r for r in own}
    lengths = sorted({length for _, length in by}) or [0]
    lsa, longest = by.get(("lsa", lengths[0])), lengths[-1]
    if lsa and lsa.lowered:
        yield f"{name}: one-to-one alignment lowers the mean by {format_interval(lsa.lowered)}"
    for algorithm in (GREEDY, "lsa"):
        row = by.get((algorithm, longest))
        if row and row.inflated and row.inflated_negative:
            yield (
                f"{name}: padding to {longest} raises {algorithm} by "
                f"{format_interval(row.inflated, places=4)} on pairs and by "
                f"{format_interval(row.inflated_negative, places=4)} on negatives"
            )


def _separation_claim(condition: str, own: list[GridRow]) -> str:
    """Say which algorithm separates best, and which differ from greedy after correction."""
    own = [row for row in own if row.algorithm != BASELINE]
    best = max(own, key=lambda r: r.effect.value)
    widest = max(own, key=lambda r: r.aligned - r.negative)
    line = (
        f"{condition}: {best.algorithm} separates pairs from negatives best by effect size, "
        f"{format_interval(best.effect, places=2)}, and {widest.algorithm} by difference of means, "
        f"{widest.aligned - widest.negative:.3f}"
    )
    for verdict, sign in (("better", 1), ("worse", -1)):
        names = [
            row.algorithm
            for row in own
            if row.p is not None
            and row.p < ALPHA
            and row.beyond_greedy
            and row.beyond_greedy.value * sign > 0
        ]
        if names:
            line += f"; significantly {verdict} than greedy: {', '.join(names)}"
    return line


@dataclass(frozen=True, slots=True)
class Identification:
    """Whether means of batches, pooled over encoders, show which encoder gave them.

    `peaks` counts the maxima of their density. `right` is the share of batch means that are nearest
    to the mean of their own encoder's other batches, in the same condition (padding and pairing).
    """

    algorithm: str
    peaks: int
    right: Interval
    chance: float


def identify_encoders(runs: GridScores, size: int = BATCH) -> list[Identification]:
    """Identify the encoder of each batch mean, for the baseline and each algorithm.

    Mander & Phillips read from the peaks of their figure 5 how well a method identifies the model.
    """
    found = []
    batches = len(runs.sentences) // size
    for algorithm in (BASELINE, *runs.algorithms):
        cells = [cell for cell in runs.cells if cell.algorithm == algorithm]
        pooled, right = [], []
        for condition in dict.fromkeys((c.length, c.counted, c.side) for c in cells):
            own = [c for c in cells if (c.length, c.counted, c.side) == condition]
            means = np.stack([batch_means(runs.cells[cell], size) for cell in own])
            pooled.append(means.ravel())
            right.append(_nearest_own_mean(means))
        shares = np.concatenate(right).mean(0)  # of each batch
        interval = bootstrap_interval(lambda w, s=shares: w @ s / w.sum(1), batches)  # type: ignore[misc]  # mypy does not infer the lambda's default
        peaks = count_peaks(np.concatenate(pooled))
        found.append(Identification(algorithm, peaks, interval, 1 / len(runs.encoders)))
    return found


def identification_table(found: Sequence[Identification]) -> TextTable:
    """Return a row per algorithm."""
    rows = [[f.algorithm, str(f.peaks), format_interval(f.right), f"{f.chance:.2f}"] for f in found]
    return [["algorithm", "peaks", "encoder identified", "by chance"], *rows]


def batch_means(values: Floats, size: int = BATCH) -> Floats:
    """Return the means of consecutive batches; an incomplete one at the end is left out.

    >>> batch_means(np.array([1.0, 3.0, 5.0, 7.0, 100.0]), 2)
    array([2., 6.])
    """
    count = len(values) // size
    means: Floats = values[: count * size].reshape(count, size).mean(1)
    return means


def count_peaks(values: Floats) -> int:
    """Count the maxima of the density of values; those below a twentieth of the highest are not.

    >>> count_peaks(np.array([0.1, 0.11, 0.12, 0.5, 0.51, 0.52]))
    2
    """
    density = kernel_density(values, np.linspace(values.min() - 0.1, values.max() + 0.1, 400))
    inner = density[1:-1]
    is_peak = (inner > density[:-2]) & (inner >= density[2:]) & (inner > _LEAST_PEAK * inner.max())
    return int(is_peak.sum())


def _nearest_own_mean(means: Floats) -> Floats:
    """Whether each of (encoders, batches) is nearest to its encoder's mean without itself."""
    count = means.shape[1]
    centres = np.broadcast_to(means.mean(1), (len(means), count, len(means))).copy()
    for k in range(len(means)):
        centres[k, :, k] = (means[k].sum() - means[k]) / (count - 1)
    nearest = abs(means[:, :, None] - centres).argmin(2)
    right: Floats = (nearest == np.arange(len(means))[:, None]).astype(np.float64)
    return right


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
    sides = {_SIDE_NAMES[side]: side for side in (ALIGNED, *runs.negatives)}

    def by_side(encoder: str, algorithm: str, length: int, size: int = 1) -> dict[str, Floats]:
        return {
            name: batch_means(runs.cells[GridCell(encoder, algorithm, length, side)], size)
            for name, side in sides.items()
        }

    size = BATCH if len(runs.sentences) >= 2 * BATCH else 1
    note = f"means of {size} pairs" if size > 1 else "all pairs"
    baseline = violin_plot("score", {e: by_side(e, BASELINE, 0, size) for e in runs.encoders})
    found = {
        "lengths": _length_figure(runs.token_counts),
        # Figures 3, 4 and 5 of the paper.
        "baseline": baseline.svg_file(f"Cosine of the closing tokens (eot), {note}"),
        "models": _pooled_figure(runs, f"All runs by encoder, {note}", "encoder", size),
        "algorithms": _pooled_figure(runs, f"All runs by algorithm, {note}", "algorithm", size),
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
        for side in runs.negatives:
            name = f"effects-{number}" + ("-hard" if side == HARD else "")
            found[name] = _effects_figure(rows, encoder, side)
        for length in runs.lengths:  # figures 6 and 7, for every algorithm
            separated = {a: by_side(encoder, a, length) for a in runs.algorithms}
            title = f"Pairs and negatives, {encoder}, {padding_phrase(length)}"
            name = f"separation-{number}-{padding_label(length)}"
            found[name] = violin_plot("F", separated).svg_file(title)
    return found


def padding_label(length: int) -> str:
    """Return a padded length as a table shows it."""
    return str(length) if length else "none"


def padding_phrase(length: int) -> str:
    """Return a padded length as a phrase."""
    return f"padded to {length}" if length else "no padding"


def _row(runs: GridScores, cell: GridCell, side: str, group: str, members: Any) -> GridRow:
    def both_sides(**changed: Any) -> list[Floats]:
        """Return the scores of pairs and of negatives; nothing if they were not computed."""
        cells = [dataclasses.replace(cell, side=s, **changed) for s in (ALIGNED, side)]
        return [runs.cells[c][members] for c in cells if c in runs.cells]

    pairs, negatives = both_sides()
    count = len(pairs)
    effect = effect_size(pairs, negatives)
    wins = (pairs > negatives) + 0.5 * (pairs == negatives)
    row = GridRow(
        cell.encoder,
        cell.length,
        cell.algorithm,
        cell.counted,
        side,
        group,
        count,
        float(pairs.mean()),
        float(negatives.mean()),
        bootstrap_interval(effect, count),
        probability_of_superiority(pairs, negatives),
        bootstrap_interval(lambda w: w @ wins / w.sum(1), count),
    )
    compared: dict[str, Any] = {}
    greedy = both_sides(algorithm=GREEDY)
    if cell.algorithm not in (GREEDY, BASELINE) and greedy:
        theirs = effect_size(*greedy)
        compared["beyond_greedy"] = bootstrap_interval(lambda w: effect(w) - theirs(w), count)
        if not group:
            compared["wider"] = _difference(pairs - negatives, greedy[0] - greedy[1])
            compared["lowered"] = _difference(greedy[0], pairs)
    if cell.length and not group and (unpadded := both_sides(length=0)):
        compared["inflated"] = _difference(pairs, unpadded[0])
        compared["inflated_negative"] = _difference(negatives, unpadded[1])
    return dataclasses.replace(row, **compared)


def _difference(x: Floats, y: Floats) -> Interval:
    return bootstrap_interval(mean_difference(x, y), len(y))


def _wald_p(difference: Interval) -> float:
    """Return the two-sided p-value of a normal with the width of the 95 % interval."""
    from scipy.special import ndtr

    error = (difference.high - difference.low) / (2 * 1.959964)
    return float(2 * ndtr(-abs(difference.value) / max(error, 1e-12)))


def _length_figure(counts: Sequence[int]) -> str:
    bins = np.bincount(np.asarray(counts) // _BIN_WIDTH)
    axes = ("tokens, special tokens included", "texts")
    plot = histogram(axes, bins.tolist(), 0, _BIN_WIDTH * len(bins))
    return plot.svg_file("Lengths of the texts")


def _pooled_figure(runs: GridScores, title: str, field: str, size: int) -> str:
    """Return the pooled scores of all cells with each encoder or algorithm."""
    names: Iterable[str] = runs.encoders if field == "encoder" else runs.algorithms
    groups: dict[str, dict[str, Floats]] = {}
    for name, side in product(names, (ALIGNED, *runs.negatives)):
        own = [
            batch_means(values, size)
            for cell, values in runs.cells.items()
            if cell.side == side
            and cell.algorithm != BASELINE
            and not cell.counted
            and getattr(cell, field) == name
        ]
        groups.setdefault(name, {})[_SIDE_NAMES[side]] = np.concatenate(own)
    return violin_plot("F", groups).svg_file(title)


def _effects_figure(rows: list[GridRow], encoder: str, side: str) -> str:
    own = [
        row
        for row in rows
        if (row.encoder, row.negatives, row.group) == (encoder, side, "")
        and row.algorithm != BASELINE
        and not row.counted
    ]
    groups = {
        algorithm: {padding_phrase(r.length): r.effect for r in own if r.algorithm == algorithm}
        for algorithm in dict.fromkeys((GREEDY, *(row.algorithm for row in own)))
    }
    plot = interval_plot("effect size (Cohen's d)", {k: g for k, g in groups.items() if g})
    return plot.svg_file(f"Separation of pairs and {_SIDE_NAMES[side]}, {encoder}")
