"""When an approximation of assignment is worth using: quality, agreement and speed, in cells.

The quality and speed of approximate assignment as tables, figures and advice.
"""

from __future__ import annotations

import dataclasses
import functools
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

_Record = TypeVar("_Record", AssignmentQuality, SolverAgreement, AssignmentSpeed)


_RANDOM_SIZES = (8, 32, 128)


_RANDOM_COUNT = 40


@dataclass(frozen=True, slots=True)
class TradeOff:
    """Everything measured: qualities by kind of matrix, agreements by set, speeds."""

    qualities: Mapping[str, Sequence[AssignmentQuality]]
    agreements: Sequence[SolverAgreement]
    speeds: Sequence[AssignmentSpeed]
    sentences: int


@dataclass(frozen=True, slots=True)
class TradeOffSettings:
    """What to measure; on a `device` other than cpu, solvers are timed on tensors there."""

    solvers: tuple[str, ...] = SOLVERS
    sizes: tuple[int, ...] = SIZES
    batches: tuple[int, ...] = BATCHES
    rounds: int = 5
    seconds: float = 4.0  # for each size and batch, as many rounds as fit
    device: str = "cpu"


def measure_trade_off(
    sentences: SentencePairs,
    ratings: Sequence[RatedSet],
    encoder: Encoder,
    folder: str | Path,
    measures: TradeOffSettings = TradeOffSettings(),
    **run: Any,
) -> TradeOff:
    """Measure what `folder` does not hold yet, and give all of it.

    `run` are the run settings of `score`. Speeds kept in the folder are those of the machine that
    measured them.
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
    def on_sentences() -> list[AssignmentQuality]:
        matrices = sentence_matrices(sentences.candidates, sentences.others, encoder)
        return measure_quality(matrices, solvers)

    recipe: dict[str, Any] = {
        "texts": sentences.digest,
        "encoder": spec(encoder),
        "solvers": solvers,
    }
    found = {
        "sentences": _load_or_measure(
            cells, "quality sentences", recipe, AssignmentQuality, on_sentences
        )
    }
    for size in _RANDOM_SIZES:
        name = f"random {size} × {size}"
        matrices = random_matrices(size, _RANDOM_COUNT)
        recipe = {"size": size, "count": _RANDOM_COUNT, "solvers": solvers}
        work = functools.partial(measure_quality, matrices, solvers)
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
    """The records of a cell, from its file or worked out now."""
    found = cells.load(name, recipe)
    if found is None:
        found = {"rows": [asdict(row) for row in work()]}
        cells.save(name, recipe, found)
    return [kind(**row) for row in found["rows"]]


_CLEAR_SPEEDUP = 1.25  # what is less apart on one machine may be the other way round on the next


def trade_off_report(worth: TradeOff) -> StudyReport:
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
    return StudyReport(
        title, recommendations(worth), tables, {"speed": _speed_figure(worth)}, notes
    )


def quality_table(worth: TradeOff) -> TextTable:
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


def agreement_table(worth: TradeOff) -> TextTable:
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


def speed_table(worth: TradeOff) -> TextTable:
    """A line per solver and batch, a column per size: microseconds per pair."""
    sizes = list(dict.fromkeys(row.size for row in worth.speeds))
    found = {(row.solver, row.batch, row.size): row for row in worth.speeds}
    lines = [
        [solver, str(batch), *(_speed_cell(found.get((solver, batch, size))) for size in sizes)]
        for solver in dict.fromkeys(row.solver for row in worth.speeds)
        for batch in dict.fromkeys(row.batch for row in worth.speeds)
    ]
    return [["solver", "batch", *(f"{size} units" for size in sizes)], *lines]


def recommendations(worth: TradeOff) -> list[str]:
    """One line for each solver: what it loses, what it costs, and so when to use it."""
    lines = []
    for row in worth.qualities["sentences"]:
        own = [s for s in worth.speeds if s.solver == row.solver]
        ratios = [s.times_exact for s in own]
        faster = [s for s in own if s.times_exact * _CLEAR_SPEEDUP < 1]
        where = ", ".join(f"{s.size} units in batches of {s.batch}" for s in faster)
        verdict = f"clearly faster at {where}" if where else "nowhere clearly faster"
        matching = "one-to-one" if row.fewest_pairs == 1 else f"{row.pairs:.1%} one-to-one"
        lines.append(
            f"{row.solver}: {row.share:.4f} of the greatest total on sentences, {matching}; "
            f"{min(ratios):.2f} to {max(ratios):.1f} times the time of exact, {verdict}"
        )
    return lines


def _speed_cell(row: AssignmentSpeed | None) -> str:
    return "-" if row is None else f"{row.microseconds:.0f} ({row.times_exact:.2f}×)"


def _speed_figure(worth: TradeOff) -> str:
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
    return line_plot_svg("Time against exact assignment, in the largest batch", axes, lines)
