"""Quality against speed of approximate assignment: measurements, tables and recommendations.

`measure_trade_off` runs the measurements of `quality.py` and stores each; `trade_off_report` shows
them and says for each solver when to use it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.tables import TextTable
from evenmatch.protocols import Encoder
from evenmatch.registry import spec
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.studies.experiment import ResultStore
from evenmatch.studies.lisa.quality import (
    BATCHES,
    SIZES,
    SOLVERS,
    AssignmentQuality,
    AssignmentSpeed,
    SolverAgreement,
    measure_quality,
    measure_solver_agreement,
    measure_speed,
    random_matrices,
    sentence_matrices,
)
from evenmatch.studies.sentences import SentencePairs

_RANDOM_SIZES = (8, 32, 128)
_RANDOM_COUNT = 40
_CLEAR_SPEEDUP = 1.25  # smaller ratios may be reversed on another machine
_Record = TypeVar("_Record", AssignmentQuality, SolverAgreement, AssignmentSpeed)


@dataclass(frozen=True, slots=True)
class TradeOff:
    """All measurements: qualities by kind of matrix, agreements by rated set, speeds."""

    qualities: Mapping[str, Sequence[AssignmentQuality]]
    agreements: Sequence[SolverAgreement]
    speeds: Sequence[AssignmentSpeed]
    sentences: int


@dataclass(frozen=True, slots=True)
class TradeOffSettings:
    """What to measure; with a `device` other than cpu, solvers are timed on tensors there."""

    solvers: tuple[str, ...] = SOLVERS
    sizes: tuple[int, ...] = SIZES
    batches: tuple[int, ...] = BATCHES
    rounds: int = 5
    seconds: float = 4.0  # time for more rounds, per size and batch
    device: str = "cpu"


def measure_trade_off(
    sentences: SentencePairs,
    ratings: Sequence[RatedSet],
    encoder: Encoder,
    folder: str | Path,
    measures: TradeOffSettings = TradeOffSettings(),
    **run: Any,
) -> TradeOff:
    """Measure what is not stored in `folder` yet, and return all measurements.

    `run` is as in `score`. Stored speeds are those of the machine that measured them.
    """
    cells = ResultStore(Path(folder))
    return TradeOff(
        _qualities(cells, sentences, encoder, measures.solvers),
        [row for rated in ratings for row in _agreements(cells, rated, measures.solvers, run)],
        [row for size in measures.sizes for row in _speeds(cells, size, measures)],
        len(sentences),
    )


def _qualities(
    cells: ResultStore, sentences: SentencePairs, encoder: Encoder, solvers: Sequence[str]
) -> dict[str, list[AssignmentQuality]]:
    recipe: dict[str, Any] = {"texts": sentences.digest, "encoder": spec(encoder)}
    recipe["solvers"] = solvers

    def on_sentences() -> list[AssignmentQuality]:
        matrices = sentence_matrices(sentences.candidates, sentences.others, encoder)
        return measure_quality(matrices, solvers)

    measured = _load_or_measure(cells, "quality sentences", recipe, AssignmentQuality, on_sentences)
    found = {"sentences": measured}
    for size in _RANDOM_SIZES:
        name = f"random {size} × {size}"
        recipe = {"size": size, "count": _RANDOM_COUNT, "solvers": solvers}
        work = functools.partial(measure_quality, random_matrices(size, _RANDOM_COUNT), solvers)
        found[name] = _load_or_measure(cells, f"quality {name}", recipe, AssignmentQuality, work)
    return found


def _agreements(
    cells: ResultStore, rated: RatedSet, solvers: Sequence[str], run: Mapping[str, Any]
) -> list[SolverAgreement]:
    recipe = {"outputs": len(rated.cells(rated=True)[0]), "solvers": solvers}
    work = functools.partial(measure_solver_agreement, rated, solvers, **run)
    return _load_or_measure(
        cells, f"agreement {rated.name} {rated.subset}", recipe, SolverAgreement, work
    )


def _speeds(cells: ResultStore, size: int, measures: TradeOffSettings) -> list[AssignmentSpeed]:
    recipe = asdict(dataclasses.replace(measures, sizes=(size,)))
    work = functools.partial(
        measure_speed,
        (size,),
        measures.batches,
        measures.solvers,
        rounds=measures.rounds,
        seconds=measures.seconds,
        device="" if measures.device == "cpu" else measures.device,
    )
    return _load_or_measure(cells, f"speed {size}", recipe, AssignmentSpeed, work)


def _load_or_measure(
    cells: ResultStore,
    name: str,
    recipe: dict[str, Any],
    kind: Callable[..., _Record],
    work: Callable[[], Sequence[_Record]],
) -> list[_Record]:
    """Return the records of a cell, loaded or measured now."""
    found = cells.load_or_compute(
        {name: recipe}, lambda _: [{"rows": [asdict(row) for row in work()]}]
    )
    return [kind(**row) for row in found[name]["rows"]]


def trade_off_report(measured: TradeOff) -> StudyReport:
    """Report all measurements, and a recommendation for each solver."""
    tables = {"quality": quality_table(measured), "speed": speed_table(measured)}
    if measured.agreements:
        tables["agreement"] = agreement_table(measured)
    notes = (
        f"sentences: the similarity matrices of {measured.sentences} pairs; random: independent "
        "uniform numbers between 0 and 1",
        "share: total similarity divided by that of the optimal matching; one-to-one: cells that "
        "both their units choose, as a share of min(m, n)",
        "agreement: Kendall's tau-b over rated outputs; the metric is F_DISC with its solver "
        "replaced (greedy: not one-to-one), so that nothing else differs",
        "speed: microseconds per pair, the fastest of several rounds on square random matrices, "
        "one thread; in brackets as a multiple of SciPy's exact assignment (lsa)",
    )
    return StudyReport(
        "Approximate assignment: quality and speed",
        recommendations(measured),
        tables,
        {"speed": _speed_figure(measured)},
        notes,
    )


def quality_table(measured: TradeOff) -> TextTable:
    """Return a row per kind of matrix and solver."""
    header = ["matrices", "solver", "share", "lowest share", "one-to-one", "fewest one-to-one"]
    table = [header]
    for name, rows in measured.qualities.items():
        for row in rows:
            numbers = (row.share, row.lowest_share, row.pairs, row.fewest_pairs)
            table.append([name, row.solver, *(f"{value:.4f}" for value in numbers)])
    return table


def agreement_table(measured: TradeOff) -> TextTable:
    """Return a row per solver: means over the sets, and agreement with ratings for each set."""
    sets = list(dict.fromkeys(row.subset for row in measured.agreements))
    lines = []
    for solver in dict.fromkeys(row.solver for row in measured.agreements):
        own = {row.subset: row for row in measured.agreements if row.solver == solver}
        exact = np.mean([row.with_exact for row in own.values()])
        human = [own[name].with_people for name in sets]
        numbers = (exact, np.mean(human), *human)
        lines.append([solver, *(f"{value:.3f}" for value in numbers)])
    return [["solver", "with exact", "with human ratings", *sets], *lines]


def speed_table(measured: TradeOff) -> TextTable:
    """Return a row per solver and batch, a column per size: microseconds per pair."""
    sizes = list(dict.fromkeys(row.size for row in measured.speeds))
    found = {(row.solver, row.batch, row.size): row for row in measured.speeds}
    lines = [
        [solver, str(batch), *(_speed_cell(found.get((solver, batch, size))) for size in sizes)]
        for solver in dict.fromkeys(row.solver for row in measured.speeds)
        for batch in dict.fromkeys(row.batch for row in measured.speeds)
    ]
    return [["solver", "batch", *(f"{size} units" for size in sizes)], *lines]


def recommendations(measured: TradeOff) -> list[str]:
    """Return a line for each solver: its quality, its time, and where it is clearly faster."""
    lines = []
    for row in measured.qualities["sentences"]:
        own = [s for s in measured.speeds if s.solver == row.solver]
        ratios = [s.times_exact for s in own]
        faster = [s for s in own if s.times_exact * _CLEAR_SPEEDUP < 1]
        where = ", ".join(f"{s.size} units in batches of {s.batch}" for s in faster)
        verdict = f"clearly faster at {where}" if where else "nowhere clearly faster"
        matching = "one-to-one" if row.fewest_pairs == 1 else f"{row.pairs:.1%} one-to-one"
        lines.append(
            f"{row.solver}: {row.share:.4f} of the optimal total on sentences, {matching}; "
            f"{min(ratios):.2f} to {max(ratios):.1f} times the time of exact, {verdict}"
        )
    return lines


def _speed_cell(row: AssignmentSpeed | None) -> str:
    return "-" if row is None else f"{row.microseconds:.0f} ({row.times_exact:.2f}×)"


def _speed_figure(measured: TradeOff) -> str:
    """Plot time as a multiple of exact assignment, in the largest batch of each size."""
    largest: dict[int, int] = {}
    for row in measured.speeds:
        largest[row.size] = max(row.batch, largest.get(row.size, 0))
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in measured.speeds:
        own = lines.setdefault(row.solver, [])
        if row.batch == largest[row.size]:
            own.append((math.log2(row.size), row.times_exact))
    axes = ("log2 of the number of units", "time, as a multiple of exact")
    return line_plot_svg("Time against exact assignment, in the largest batch", axes, lines)
