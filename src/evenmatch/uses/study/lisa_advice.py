"""The quality and speed of approximate assignment as tables, figures and advice."""

from __future__ import annotations

import numpy as np

from evenmatch.data.tables import Table
from evenmatch.uses.report.plot_lines import curves
from evenmatch.uses.study.lisa_quality import Speed
from evenmatch.uses.study.lisa_worth import Worth
from evenmatch.uses.study.page import Report

_CLEARLY = 1.25  # what is less apart on one machine may be the other way round on the next


def worth_report(worth: Worth) -> Report:
    """Tables of all measurements and a line of advice for each solver."""
    tables = {"quality": quality_table(worth), "speed": speed_table(worth)}
    if worth.agreements:
        tables["agreement"] = agreement_table(worth)
    notes = (
        f"sentences: the similarities of {worth.sentences} pairs; random: independent numbers "
        "between 0 and 1",
        "share: total similarity over the greatest a matching has; one-to-one: cells that are the "
        "choice of both their units, as a share of min(m, n)",
        "agreement: Kendall's tau-b over rated outputs; the metric is F_DISC with its solver "
        "exchanged (greedy: without one-to-one), so that nothing else differs",
        "speed: the fastest of several rounds on square random matrices, one thread, against "
        "SciPy's exact assignment (lsa)",
    )
    title = "Approximate assignment: quality and speed"
    return Report(title, advice(worth), tables, {"speed": _speed_figure(worth)}, notes)


def quality_table(worth: Worth) -> Table:
    """A line per kind of matrix and solver."""
    header = ["matrices", "solver", "share", "lowest share", "one-to-one", "fewest one-to-one"]
    return [
        header,
        *(
            [
                name,
                row.solver,
                *(f"{v:.4f}" for v in (row.share, row.lowest_share, row.pairs, row.fewest_pairs)),
            ]
            for name, rows in worth.qualities.items()
            for row in rows
        ),
    ]


def agreement_table(worth: Worth) -> Table:
    """A line per solver: means over the sets, and people's agreement set by set."""
    sets = list(dict.fromkeys(row.subset for row in worth.agreements))
    lines = []
    for solver in dict.fromkeys(row.solver for row in worth.agreements):
        own = {row.subset: row for row in worth.agreements if row.solver == solver}
        exact = np.mean([row.with_exact for row in own.values()])
        people = [own[name].with_people for name in sets]
        numbers = (exact, np.mean(people), *people)
        lines.append([solver, *(f"{value:.3f}" for value in numbers)])
    return [["solver", "with exact", "with people", *sets], *lines]


def speed_table(worth: Worth) -> Table:
    """A line per solver and batch, a column per size: microseconds per pair."""
    sizes = list(dict.fromkeys(row.size for row in worth.speeds))
    found = {(row.solver, row.batch, row.size): row for row in worth.speeds}
    lines = [
        [solver, str(batch), *(_cell(found.get((solver, batch, size))) for size in sizes)]
        for solver in dict.fromkeys(row.solver for row in worth.speeds)
        for batch in dict.fromkeys(row.batch for row in worth.speeds)
    ]
    return [["solver", "batch", *(f"{size} units" for size in sizes)], *lines]


def advice(worth: Worth) -> list[str]:
    """One line for each solver: what it loses, what it costs, and so when to use it."""
    lines = []
    for row in worth.qualities["sentences"]:
        own = [s for s in worth.speeds if s.solver == row.solver]
        ratios = [s.times_exact for s in own]
        faster = [s for s in own if s.times_exact * _CLEARLY < 1]
        where = ", ".join(f"{s.size} units in batches of {s.batch}" for s in faster)
        verdict = f"clearly faster at {where}" if where else "nowhere clearly faster"
        matching = "one-to-one" if row.fewest_pairs == 1 else f"{row.pairs:.1%} one-to-one"
        lines.append(
            f"{row.solver}: {row.share:.4f} of the greatest total on sentences, {matching}; "
            f"{min(ratios):.2f} to {max(ratios):.1f} times the time of exact, {verdict}"
        )
    return lines


def _cell(row: Speed | None) -> str:
    return "-" if row is None else f"{row.microseconds:.0f} ({row.times_exact:.2f}×)"


def _speed_figure(worth: Worth) -> str:
    """How many times longer than exact, in the largest batch that every size has one of."""
    largest = {
        size: max(row.batch for row in worth.speeds if row.size == size)
        for size in dict.fromkeys(row.size for row in worth.speeds)
    }
    lines = {
        solver: [
            (float(np.log2(row.size)), row.times_exact)
            for row in worth.speeds
            if row.solver == solver and row.batch == largest[row.size]
        ]
        for solver in dict.fromkeys(row.solver for row in worth.speeds)
    }
    axes = ("units a side, as a power of 2", "times the time of exact")
    return curves("Time against exact assignment, in the largest batch", axes, lines)
