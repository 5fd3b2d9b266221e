"""LiSAScore's experiment: algorithms × lengths × aligned or shuffled × encoders, cell by cell."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.scoring.ask import as_solver
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.named_lisa import eot
from evenmatch.scoring.settings import make_run, shifted
from evenmatch.scoring.together import score_together
from evenmatch.stats.arrays import Floats
from evenmatch.types import Pair, Run
from evenmatch.units.pieces import Pieces
from evenmatch.uses.study.cells import Cells
from evenmatch.uses.study.sentences import Sentences
from evenmatch.vectors.layers import Layer
from evenmatch.vectors.transformer import Transformer

GREEDY, BASELINE = "greedy", "eot"
ALGORITHMS = (
    GREEDY,
    "lsa",
    "row_mask",
    "recursive",
    "recursive(legacy=True)",
    "topk",
    "auction",
)
LENGTHS = (0, 128, 384)  # 0 is no padding
LAYERS: tuple[Layer, ...] = ("auto", "last")
ALIGNED, SHUFFLED = "aligned", "shuffled"


@dataclass(frozen=True, slots=True)
class Grid:
    """What is varied; each model is read at every one of `layers`."""

    models: tuple[str, ...] = ("minilm",)
    layers: tuple[Layer, ...] = LAYERS
    lengths: tuple[int, ...] = LENGTHS
    algorithms: tuple[str, ...] = ALGORITHMS

    def __post_init__(self) -> None:
        for name in ("models", "layers", "lengths", "algorithms"):
            if not getattr(self, name):
                raise InputError(f"the study has no {name}; give at least one")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the experiment: an encoder by model and layer, and what was done with it."""

    encoder: str
    algorithm: str
    length: int
    side: str


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The scores of every cell, pair by pair, and the seconds all of them took.

    `pieces` counts the pieces of each text, marks included, as the first model cuts it.
    """

    sentences: Sentences
    cells: Mapping[Cell, Floats]
    pieces: Sequence[int]
    seconds: float
    seed: int

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders, in order."""
        return tuple(dict.fromkeys(cell.encoder for cell in self.cells))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms in order, without the baseline, which aligns nothing."""
        found = dict.fromkeys(cell.algorithm for cell in self.cells)
        return tuple(name for name in found if name != BASELINE)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that texts were padded to, in order."""
        return tuple(dict.fromkeys(cell.length for cell in self.cells))


@dataclass(frozen=True, slots=True)
class _Step:
    """What is worked out at once: the layers of a model share one pass over the texts."""

    algorithm: str
    length: int
    side: str
    encoders: Mapping[str, tuple[str, int]]  # by label: model and layer


def run_lisa(
    sentences: Sentences, grid: Grid, folder: str | Path, *, seed: int = 0, **run: Any
) -> Runs:
    """Score every cell that `folder` does not hold yet, and give all of them.

    A cell is written as soon as it is scored. `run` are the run settings of `score`; with a cache
    every padded text is encoded once for all cells.
    """
    settings = make_run(**run)
    store = Cells(Path(folder))
    sides = {ALIGNED: sentences, SHUFFLED: sentences.shuffled(seed)}
    steps = list(_steps(grid))
    cells: dict[Cell, Floats] = {}
    seconds = 0.0
    for done, step in enumerate(steps):
        own = shifted(settings, done * len(sentences), len(steps) * len(sentences))
        for cell, found in _scored(step, sides[step.side], store, own):
            cells[cell] = np.array(found["values"])
            seconds += found["seconds"]
        if settings.progress:
            settings.progress((done + 1) * len(sentences), len(steps) * len(sentences))
    body = Transformer(grid.models[0]).body
    pieces = [len(keys) for keys in body.keys([*sentences.candidates, *sentences.others])]
    return Runs(sentences, cells, pieces, seconds, seed)


def _steps(grid: Grid) -> Iterator[_Step]:
    for model in grid.models:
        depths = dict.fromkeys(Transformer(model, layer).depth() for layer in grid.layers)
        encoders = {f"{model} layer {depth}": (model, depth) for depth in depths}
        # The baseline looks at closing tokens only, so no padding changes it.
        runs = [(BASELINE, 0), *((a, n) for n in grid.lengths for a in grid.algorithms)]
        for algorithm, length in runs:
            for side in (ALIGNED, SHUFFLED):
                yield _Step(algorithm, length, side, encoders)


def _scored(
    step: _Step, sentences: Sentences, store: Cells, run: Run
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Each encoder's cell of a step, from its file or scored now."""
    cells = {label: Cell(label, step.algorithm, step.length, step.side) for label in step.encoders}
    metrics = {label: _metric(step, *at) for label, at in step.encoders.items()}
    recipes = {
        label: {"metric": metric.signature, "texts": sentences.digest}
        for label, metric in metrics.items()
    }
    kept = {label: store.find(_name(cells[label]), recipes[label]) for label in cells}
    missing = [label for label, found in kept.items() if found is None]
    fresh = _fresh([metrics[label] for label in missing], sentences, run) if missing else []
    for label, new in zip(missing, fresh, strict=True):
        store.keep(_name(cells[label]), recipes[label], new)
        kept[label] = new
    for label, found in kept.items():
        if found is not None:
            yield cells[label], found


def _fresh(metrics: Sequence[AlignMetric], sentences: Sentences, run: Run) -> list[dict[str, Any]]:
    pairs = [
        Pair(candidate, (other,))
        for candidate, other in zip(sentences.candidates, sentences.others, strict=True)
    ]
    started = time.perf_counter()
    scores = score_together(metrics, pairs, run)
    seconds = (time.perf_counter() - started) / len(metrics)
    return [
        {"values": [round(s.value, 6) for s in each.segments], "seconds": round(seconds, 3)}
        for each in scores
    ]


def _metric(step: _Step, model: str, layer: int) -> AlignMetric:
    if step.algorithm == BASELINE:
        return eot(model, layer)
    vectors = Transformer(model, layer, pad_to=step.length)
    return AlignMetric(Pieces(marks=True), vectors, alignment=as_solver(step.algorithm))


def _name(cell: Cell) -> str:
    return f"{cell.encoder} {cell.algorithm} {cell.length} {cell.side}"
