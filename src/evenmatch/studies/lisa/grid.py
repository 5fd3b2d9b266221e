"""The grid of LiSAScore's experiment: encoders × algorithms × padded lengths × pairs or negatives.

Each cell holds the scores of one metric on all pairs, aligned or shuffled, and is stored as soon
as it is computed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.api import as_solver
from evenmatch.errors import InputError
from evenmatch.metrics.presets import make_metric
from evenmatch.models.checkpoints import Layer
from evenmatch.scoring.inputs import make_run, offset_progress
from evenmatch.scoring.metric import AlignMetric, score_metrics
from evenmatch.stats.panel import Floats
from evenmatch.studies.experiment import ResultStore
from evenmatch.studies.sentences import SentencePairs
from evenmatch.types import Pair, Run
from evenmatch.units.text import Pieces
from evenmatch.vectors.transformer import Transformer

GREEDY, BASELINE = "greedy", "eot"
ALGORITHMS = (GREEDY, "lsa", "row_mask", "recursive", "recursive(legacy=True)", "topk", "auction")
LENGTHS = (0, 128, 384)  # tokens that texts are padded to; 0 for no padding
LAYERS: tuple[Layer, ...] = ("auto", "last")
ALIGNED, SHUFFLED = "aligned", "shuffled"


@dataclass(frozen=True, slots=True)
class Grid:
    """The dimensions of the grid; each model is used at every one of `layers`."""

    models: tuple[str, ...] = ("minilm",)
    layers: tuple[Layer, ...] = LAYERS
    lengths: tuple[int, ...] = LENGTHS
    algorithms: tuple[str, ...] = ALGORITHMS

    def __post_init__(self) -> None:
        for name in ("models", "layers", "lengths", "algorithms"):
            if not getattr(self, name):
                raise InputError(f"the study has no {name}; give at least one")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell: an encoder (model and layer), an algorithm, a padded length, and the pairing."""

    encoder: str
    algorithm: str
    length: int
    side: str


@dataclass(frozen=True, slots=True, eq=False)
class GridScores:
    """The scores of every cell, pair by pair, and the seconds all of them took.

    `token_counts` has the tokens of each text, special tokens included, by the first model.
    """

    sentences: SentencePairs
    cells: Mapping[GridCell, Floats]
    token_counts: Sequence[int]
    seconds: float
    seed: int

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders, in order."""
        return tuple(dict.fromkeys(cell.encoder for cell in self.cells))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The alignment algorithms, in order; the baseline is not among them."""
        found = dict.fromkeys(cell.algorithm for cell in self.cells)
        return tuple(name for name in found if name != BASELINE)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that texts were padded to, in order."""
        return tuple(dict.fromkeys(cell.length for cell in self.cells))


def run_lisa_grid(
    sentences: SentencePairs, grid: Grid, folder: str | Path, *, seed: int = 0, **run: Any
) -> GridScores:
    """Score every cell that is not stored in `folder` yet, and return all of them.

    A cell is written as soon as it is scored. `run` is as in `score`; with a cache, every padded
    text is encoded once for all cells.
    """
    settings = make_run(**run)
    store = ResultStore(Path(folder))
    sides = {ALIGNED: sentences, SHUFFLED: sentences.make_negatives(seed)}
    steps = list(_steps(grid))
    cells: dict[GridCell, Floats] = {}
    seconds = 0.0
    for done, step in enumerate(steps):
        shifted = offset_progress(settings, done * len(sentences), len(steps) * len(sentences))
        side = next(iter(step)).side
        for cell, found in _score_step(step, sides[side], store, shifted):
            cells[cell] = np.array(found["values"])
            seconds += found["seconds"]
        if settings.progress:
            settings.progress((done + 1) * len(sentences), len(steps) * len(sentences))
    backbone = Transformer(grid.models[0]).backbone.open()
    ids = backbone.token_ids([*sentences.candidates, *sentences.others])
    return GridScores(sentences, cells, [len(each) for each in ids], seconds, seed)


def _steps(grid: Grid) -> Iterator[dict[GridCell, AlignMetric]]:
    """Yield cells that are computed together: the layers of a model share one pass over texts."""
    for model in grid.models:
        depths = dict.fromkeys(Transformer(model, layer).layer_index() for layer in grid.layers)
        # The baseline compares closing tokens only, so padding does not change it.
        runs = [(BASELINE, 0), *((a, n) for n in grid.lengths for a in grid.algorithms)]
        for algorithm, length in runs:
            for side in (ALIGNED, SHUFFLED):
                yield {
                    GridCell(f"{model} layer {depth}", algorithm, length, side): _metric(
                        model, depth, algorithm, length
                    )
                    for depth in depths
                }


def _score_step(
    metrics: Mapping[GridCell, AlignMetric], sentences: SentencePairs, store: ResultStore, run: Run
) -> Iterator[tuple[GridCell, dict[str, Any]]]:
    """Yield each cell of a step, loaded or scored now."""
    cells = {f"{c.encoder} {c.algorithm} {c.length} {c.side}": c for c in metrics}
    recipes = {
        name: {"metric": metrics[cell].signature, "texts": sentences.digest}
        for name, cell in cells.items()
    }

    def compute(missing: list[str]) -> list[dict[str, Any]]:
        texts = zip(sentences.candidates, sentences.others, strict=True)
        pairs = [Pair(candidate, (other,)) for candidate, other in texts]
        started = time.perf_counter()
        scores = score_metrics([metrics[cells[name]] for name in missing], pairs, run)
        seconds = round((time.perf_counter() - started) / len(missing), 3)
        return [
            {"values": [round(s.value, 6) for s in each.segments], "seconds": seconds}
            for each in scores
        ]

    for name, found in store.load_or_compute(recipes, compute).items():
        yield cells[name], found


def _metric(model: str, layer: int, algorithm: str, length: int) -> AlignMetric:
    if algorithm == BASELINE:
        metric: AlignMetric = make_metric("eot", model=model, layer=layer)
        return metric
    vectors = Transformer(model, layer, pad_to=length)
    return AlignMetric(Pieces(marks=True), vectors, alignment=as_solver(algorithm))
