"""When an approximation of assignment is worth using: quality, agreement and speed, in cells."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from evenmatch.data.ratings import RatedSet
from evenmatch.registry import spec
from evenmatch.types import Encoder
from evenmatch.uses.study.cells import Cells
from evenmatch.uses.study.lisa_agreement import Agreeing, agreeing
from evenmatch.uses.study.lisa_quality import (
    BATCHES,
    SIZES,
    SOLVERS,
    Quality,
    Speed,
    quality,
    random_matrices,
    sentence_matrices,
    speed,
)
from evenmatch.uses.study.sentences import Sentences

_Record = TypeVar("_Record", Quality, Agreeing, Speed)
_RANDOM_SIZES = (8, 32, 128)
_RANDOM_COUNT = 40


@dataclass(frozen=True, slots=True)
class Worth:
    """Everything measured: qualities by kind of matrix, agreements by set, speeds."""

    qualities: Mapping[str, Sequence[Quality]]
    agreements: Sequence[Agreeing]
    speeds: Sequence[Speed]
    sentences: int


@dataclass(frozen=True, slots=True)
class Measures:
    """What to measure; on a `device` other than cpu, solvers are timed on tensors there."""

    solvers: tuple[str, ...] = SOLVERS
    sizes: tuple[int, ...] = SIZES
    batches: tuple[int, ...] = BATCHES
    rounds: int = 5
    seconds: float = 4.0  # for each size and batch, as many rounds as fit
    device: str = "cpu"


def measure_worth(
    sentences: Sentences,
    ratings: Sequence[RatedSet],
    encoder: Encoder,
    folder: str | Path,
    measures: Measures = Measures(),
    **run: Any,
) -> Worth:
    """Measure what `folder` does not hold yet, and give all of it.

    `run` are the run settings of `score`. Speeds kept in the folder are those of the machine that
    measured them.
    """
    cells = Cells(Path(folder))
    return Worth(
        _qualities(cells, sentences, encoder, measures.solvers),
        [row for rated in ratings for row in _agreements(cells, rated, measures.solvers, run)],
        [row for size in measures.sizes for row in _speeds(cells, size, measures)],
        len(sentences),
    )


def _qualities(
    cells: Cells, sentences: Sentences, encoder: Encoder, solvers: Sequence[str]
) -> dict[str, list[Quality]]:
    def on_sentences() -> list[Quality]:
        matrices = sentence_matrices(sentences.candidates, sentences.others, encoder)
        return quality(matrices, solvers)

    recipe: dict[str, Any] = {
        "texts": sentences.digest,
        "encoder": spec(encoder),
        "solvers": solvers,
    }
    found = {"sentences": _kept(cells, "quality sentences", recipe, Quality, on_sentences)}
    for size in _RANDOM_SIZES:
        name = f"random {size} × {size}"
        matrices = random_matrices(size, _RANDOM_COUNT)
        recipe = {"size": size, "count": _RANDOM_COUNT, "solvers": solvers}
        work = functools.partial(quality, matrices, solvers)
        found[name] = _kept(cells, f"quality {name}", recipe, Quality, work)
    return found


def _agreements(
    cells: Cells, rated: RatedSet, solvers: Sequence[str], run: Mapping[str, Any]
) -> list[Agreeing]:
    recipe = {"outputs": len(rated.cells(rated=True)[0]), "solvers": solvers}
    work = functools.partial(agreeing, rated, solvers, **run)
    return _kept(cells, f"agreement {rated.name} {rated.subset}", recipe, Agreeing, work)


def _speeds(cells: Cells, size: int, measures: Measures) -> list[Speed]:
    recipe = asdict(dataclasses.replace(measures, sizes=(size,)))
    work = functools.partial(
        speed,
        (size,),
        measures.batches,
        measures.solvers,
        rounds=measures.rounds,
        seconds=measures.seconds,
        device="" if measures.device == "cpu" else measures.device,
    )
    return _kept(cells, f"speed {size}", recipe, Speed, work)


def _kept(
    cells: Cells,
    name: str,
    recipe: dict[str, Any],
    kind: Callable[..., _Record],
    work: Callable[[], Sequence[_Record]],
) -> list[_Record]:
    """The records of a cell, from its file or worked out now."""
    found = cells.find(name, recipe)
    if found is None:
        found = {"rows": [asdict(row) for row in work()]}
        cells.keep(name, recipe, found)
    return [kind(**row) for row in found["rows"]]
