"""Approximate assignment against exact assignment: quality, speed, and when to use which solver.

`measure_quality` compares total similarities, `measure_speed` times, and `measure_solver_agreement`
the correlation of F_DISC scores with exact ones and with human ratings. `measure_trade_off` runs
all three and stores each result; `trade_off_report` shows them and says for each solver when to use
it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenmatch.api import solve_batch
from evenmatch.data.ratings.rated_set import RatedSet
from evenmatch.data.tables import TextTable
from evenmatch.errors import InputError
from evenmatch.evaluation.agreement import correlate
from evenmatch.protocols import Encoder
from evenmatch.registry import build, spec
from evenmatch.reports.plots import line_plot_svg
from evenmatch.reports.study_page import StudyReport
from evenmatch.similarity.vectors import Cosine
from evenmatch.stats.levels import correlation
from evenmatch.studies.experiment import ResultStore
from evenmatch.studies.sentences import SentencePairs
from evenmatch.types import Alignment, Array, Problem
from evenmatch.units.text import Pieces

SOLVERS = ("row_mask", "recursive", "recursive(iterations=7)", "topk", "auction")
SIZES = (8, 16, 32, 64, 128, 256, 512)
BATCHES = (1, 16, 256)
EXACT_METRIC, GREEDY_METRIC = "f_disc", "align"
_MAX_CELLS = 1 << 23  # batches with more cells are limited by memory and are not timed
_RESAMPLES = 200
_RANDOM_SIZES = (8, 32, 128)
_RANDOM_COUNT = 40
_CLEAR_SPEEDUP = 1.25  # smaller ratios may be reversed on another machine
_Record = TypeVar("_Record", "AssignmentQuality", "SolverAgreement", "AssignmentSpeed")


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
    own = dataclasses.replace(measures, sizes=(size,))
    work = functools.partial(measure_speed, own)
    return _load_or_measure(cells, f"speed {size}", asdict(own), AssignmentSpeed, work)


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


@dataclass(frozen=True, slots=True)
class AssignmentQuality:
    """How close one solver comes to the optimal assignment on some matrices.

    `share` is its total similarity divided by that of the optimal matching, on average; alignments
    that are no matching can exceed 1. `pairs` is the share of the min(m, n) pairs of a matching
    that it makes: cells that both their units choose.
    """

    solver: str
    matrices: int
    share: float
    lowest_share: float
    pairs: float
    fewest_pairs: float


def measure_quality(
    matrices: Sequence[Array], solvers: Sequence[str] = SOLVERS
) -> list[AssignmentQuality]:
    """Compare each solver with exact assignment on the same matrices."""
    if not matrices:
        raise InputError("there are no matrices to compare solvers on; give at least one")
    exact = solve_batch(matrices, "lsa")
    optimal = [_total_similarity(s, a) for s, a in zip(matrices, exact, strict=True)]
    rows = []
    for name in solvers:
        found = solve_batch(matrices, name)
        shares = [
            _total_similarity(s, a) / b
            for s, a, b in zip(matrices, found, optimal, strict=True)
            if b > 0
        ]
        pairs = [
            float(np.minimum(a.rows, a.cols).sum()) / min(s.shape)
            for s, a in zip(matrices, found, strict=True)
        ]
        means = float(np.mean(shares)), float(np.mean(pairs))
        rows.append(
            AssignmentQuality(name, len(matrices), means[0], min(shares), means[1], min(pairs))
        )
    return rows


@dataclass(frozen=True, slots=True)
class AssignmentSpeed:
    """Microseconds per pair for one solver, also as a multiple of SciPy's exact assignment."""

    solver: str
    size: int
    batch: int
    microseconds: float
    times_exact: float


def measure_speed(settings: TradeOffSettings) -> list[AssignmentSpeed]:
    """Time each solver and the exact one for every size and batch; batches too large are skipped.

    The time is that of the fastest round. Solvers take turns, so that other load on the machine
    affects all of them. The exact solver always gets arrays.
    """
    if settings.rounds < 1:
        raise InputError(f"rounds must be at least 1, got {settings.rounds}")
    rows: list[AssignmentSpeed] = []
    for size in settings.sizes:
        for batch in settings.batches:
            if batch == 1 or batch * size * size <= _MAX_CELLS:
                rows += _time_solvers(size, batch, settings)
    return rows


@dataclass(frozen=True, slots=True)
class SolverAgreement:
    """Kendall's tau-b of one metric on one set, with exact F_DISC and with human ratings."""

    solver: str
    subset: str
    outputs: int
    with_exact: float
    with_people: float


def measure_solver_agreement(
    rated: RatedSet, solvers: Sequence[str], **run: Any
) -> list[SolverAgreement]:
    """Correlate F_DISC with greedy, exact and each of `solvers`; nothing else differs."""
    specs = {
        "greedy": GREEDY_METRIC,
        "lsa": EXACT_METRIC,
        **{s: f"align(alignment={s})" for s in solvers},
    }
    found = correlate(
        list(specs.values()), rated, "segment", "kendall", resamples=_RESAMPLES, **run
    )
    scores = found.scored[0].scores
    exact = scores[EXACT_METRIC].segments.ravel()
    values = {entry.metric: entry for entry in found.entries}
    return [
        SolverAgreement(
            solver,
            rated.subset,
            values[spec].n,
            float(correlation(scores[spec].segments.ravel(), exact, "kendall")),
            values[spec].value,
        )
        for solver, spec in specs.items()
    ]


def random_matrices(size: int, count: int, seed: int = 0) -> list[Array]:
    """Return square matrices of independent uniform similarities between 0 and 1."""
    random = np.random.default_rng(seed)
    return [random.uniform(0, 1, (size, size)) for _ in range(count)]


def sentence_matrices(
    candidates: Sequence[str], references: Sequence[str], encoder: Encoder
) -> list[Array]:
    """Return the similarity matrix of each pair; pairs with an empty side are dropped."""
    units = Pieces(marks=True)
    x, y = (encoder([units(text) for text in side]) for side in (candidates, references))
    found = [Cosine()(a, b) for a, b in zip(x, y, strict=True)]
    return [s for s in found if s.size]


def _time_solvers(size: int, batch: int, settings: TradeOffSettings) -> Iterator[AssignmentSpeed]:
    masses = np.ones(size), np.ones(size)
    arrays = [Problem(matrix, *masses) for matrix in random_matrices(size, batch)]
    tensors = [_to_device(p, settings.device) for p in arrays if settings.device != "cpu"]
    given = {"lsa": arrays} | dict.fromkeys(settings.solvers, tensors or arrays)
    fastest = dict.fromkeys(given, float("inf"))
    began, done = time.perf_counter(), 0
    while done < settings.rounds or time.perf_counter() - began < settings.seconds:
        done += 1
        for name, problems in given.items():
            solver = build(name)
            started = time.perf_counter()
            solver(problems)
            _synchronize(settings.device)
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    for name, seconds in fastest.items():
        yield AssignmentSpeed(name, size, batch, seconds / batch * 1e6, seconds / fastest["lsa"])


def _to_device(problem: Problem, device: str) -> Problem:
    import torch

    return Problem(
        torch.as_tensor(problem.similarity, device=device), problem.row_mass, problem.col_mass
    )


def _synchronize(device: str) -> None:
    """Wait until the accelerator has finished."""
    if not device.startswith("cpu"):
        import torch

        accelerator: Any = torch.accelerator
        accelerator.synchronize()


def _total_similarity(similarity: Array, alignment: Alignment) -> float:
    return float((np.maximum(alignment.rows, alignment.cols) * similarity).sum())


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
