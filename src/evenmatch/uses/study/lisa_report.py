"""LiSAScore's experiment as a folder to look at."""

from __future__ import annotations

from evenmatch.uses.study.lisa import Runs
from evenmatch.uses.study.lisa_figures import figures
from evenmatch.uses.study.lisa_table import Row, claims, table_of
from evenmatch.uses.study.page import Report


def lisa_report(runs: Runs, rows: list[Row]) -> Report:
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
    return Report(title, claims(rows), {"table": table_of(rows)}, figures(runs, rows), notes)
