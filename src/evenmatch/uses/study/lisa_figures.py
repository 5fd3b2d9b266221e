"""The figures of LiSAScore's experiment, by the name of their file."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.uses.report.plot_lines import histogram, interval_plot
from evenmatch.uses.report.plot_violins import violins
from evenmatch.uses.study.lisa import ALIGNED, BASELINE, GREEDY, SHUFFLED, Cell, Runs
from evenmatch.uses.study.lisa_table import Row, padded, padding

_SIDES = {"pairs": ALIGNED, "in-batch negatives": SHUFFLED}


def figures(runs: Runs, rows: list[Row]) -> dict[str, str]:
    """Each figure as SVG; those of one encoder are numbered in the order of encoders."""
    found = {
        "lengths": histogram("Lengths of the texts", "pieces, marks included", runs.pieces, 4),
        "baseline": _baseline(runs),
        "models": _pooled(runs, "All runs by encoder", "encoder", runs.encoders),
        "algorithms": _pooled(runs, "All runs by algorithm", "algorithm", runs.algorithms),
    }
    for number, encoder in enumerate(runs.encoders, 1):
        found[f"padding-{number}"] = _padding(runs, encoder)
        found[f"effects-{number}"] = _effects(rows, encoder)
        for length in runs.lengths:
            name = f"separation-{number}-{padding(length)}"
            found[name] = _separation(runs, encoder, length)
    return found


def _baseline(runs: Runs) -> str:
    """The paper's figure 3."""
    groups = {
        encoder: {
            name: runs.cells[Cell(encoder, BASELINE, 0, side)] for name, side in _SIDES.items()
        }
        for encoder in runs.encoders
    }
    return violins("Cosine of the closing tokens (eot)", "score", groups)


def _pooled(runs: Runs, title: str, field: str, names: Iterable[str]) -> str:
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
    return violins(title, "F", groups)


def _padding(runs: Runs, encoder: str) -> str:
    """The paper's figure 2: pairs, padded to each length."""
    groups = {
        algorithm: {
            padded(n): runs.cells[Cell(encoder, algorithm, n, ALIGNED)] for n in runs.lengths
        }
        for algorithm in runs.algorithms
    }
    return violins(f"What padding does to pairs, {encoder}", "F", groups)


def _separation(runs: Runs, encoder: str, length: int) -> str:
    """The paper's figures 6 and 7, for every algorithm."""
    groups = {
        algorithm: {
            name: runs.cells[Cell(encoder, algorithm, length, side)]
            for name, side in _SIDES.items()
        }
        for algorithm in runs.algorithms
    }
    title = f"Pairs and in-batch negatives, {encoder}, {padded(length)}"
    return violins(title, "F", groups)


def _effects(rows: list[Row], encoder: str) -> str:
    own = [row for row in rows if row.encoder == encoder and row.algorithm != BASELINE]
    groups = {
        algorithm: {padded(r.length): r.effect for r in own if r.algorithm == algorithm}
        for algorithm in dict.fromkeys((GREEDY, *(row.algorithm for row in own)))
    }
    title = f"How far pairs and negatives lie apart, {encoder}"
    return interval_plot(title, "effect size (Cohen's d)", {k: g for k, g in groups.items() if g})
