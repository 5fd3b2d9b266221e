"""The grid of LiSAScore's experiment: encoders × algorithms × padding × pairs or negatives.

Each cell holds the scores of one metric on all pairs, as they are or with negatives, and is stored
as soon as it is computed. Negatives are in-batch (`SHUFFLED`) and, if the data have them, `HARD`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from evenmatch.api import as_solver
from evenmatch.errors import InputError
from evenmatch.metrics.presets import make_metric
from evenmatch.models.checkpoints import Layer
from evenmatch.scoring.inputs import make_run, offset_progress
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reducers import Prf, Unweighted
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
ALIGNED, SHUFFLED, HARD = "aligned", "shuffled", "hard"


@dataclass(frozen=True, slots=True)
class Grid:
    """The dimensions of the grid; each model is used at every one of `layers`.

    With `counted`, each metric is also used with padding, opening and closing tokens counted in the
    mean of its score.
    """

    models: tuple[str, ...] = ("minilm",)
    layers: tuple[Layer, ...] = LAYERS
    lengths: tuple[int, ...] = LENGTHS
    algorithms: tuple[str, ...] = ALGORITHMS
    counted: bool = True

    def __post_init__(self) -> None:
        for name in ("models", "layers", "lengths", "algorithms"):
            if not getattr(self, name):
                raise InputError(f"the study has no {name}; give at least one")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell: an encoder (model and layer), an algorithm, the padding, and the pairing."""

    encoder: str
    algorithm: str
    length: int
    side: str
    counted: bool = False

    def __str__(self) -> str:
        counted = " counted" if self.counted else ""
        return f"{self.encoder} {self.algorithm} {self.length}{counted} {self.side}"


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

    @property
    def negatives(self) -> tuple[str, ...]:
        """The kinds of negatives."""
        return (SHUFFLED, HARD) if self.sentences.hard else (SHUFFLED,)


def run_lisa_grid(
    sentences: SentencePairs, grid: Grid, folder: str | Path, *, seed: int = 0, **run: Any
) -> GridScores:
    """Score every cell that is not stored in `folder` yet, and return all of them.

    The cells of a model and a length are scored together, so that a text is encoded once for all
    of them, and are then written. `run` is as in `score`.
    """
    settings = make_run(**run)
    store = ResultStore(Path(folder))
    sides = {ALIGNED: sentences, SHUFFLED: sentences.make_negatives(seed)}
    if sentences.hard:
        sides[HARD] = sentences.make_hard_negatives()
    size = len(sides) * len(sentences)
    cells: dict[GridCell, Floats] = {}
    seconds = 0.0
    steps = list(product(grid.models, grid.lengths))
    for done, (model, length) in enumerate(steps):
        shifted = offset_progress(settings, done * size, len(steps) * size)
        step = dict(_step(grid, model, length, first=length == grid.lengths[0]))
        for cell, values, spent in _score_step(step, sides, store, shifted):
            cells[cell] = values
            seconds += spent
        if settings.progress:
            settings.progress((done + 1) * size, len(steps) * size)
    backbone = Transformer(grid.models[0]).backbone.open()
    ids = backbone.token_ids([*sentences.candidates, *sentences.others])
    return GridScores(sentences, cells, [len(each) for each in ids], seconds, seed)


def _step(
    grid: Grid, model: str, length: int, *, first: bool
) -> Iterator[tuple[GridCell, AlignMetric]]:
    """Yield the metrics of a model and a length, each as the cell of its aligned pairs."""
    for depth in dict.fromkeys(Transformer(model, layer).layer_index() for layer in grid.layers):
        encoder = f"{model} layer {depth}"
        if first:  # it compares closing tokens only, so padding does not change it
            eot: AlignMetric = make_metric("eot", model=model, layer=depth)
            yield GridCell(encoder, BASELINE, 0, ALIGNED), eot
        vectors = Transformer(model, depth, pad_to=length)
        for counted, algorithm in product((False, True)[: 1 + grid.counted], grid.algorithms):
            yield (
                GridCell(encoder, algorithm, length, ALIGNED, counted),
                AlignMetric(
                    Pieces(marks=True),
                    vectors,
                    alignment=as_solver(algorithm),
                    scoring=Unweighted() if counted else Prf(),
                ),
            )


def _score_step(
    metrics: Mapping[GridCell, AlignMetric],
    sides: Mapping[str, SentencePairs],
    store: ResultStore,
    run: Run,
) -> Iterator[tuple[GridCell, Floats, float]]:
    """Yield each cell of a step with its scores and seconds, loaded or scored now."""
    digests = {side: sentences.digest for side, sentences in sides.items()}
    cells = {str(cell): cell for cell in metrics}

    def make_pairs() -> list[Pair]:
        return [
            Pair(candidate, (other,))
            for sentences in sides.values()
            for candidate, other in zip(sentences.candidates, sentences.others, strict=True)
        ]

    named = {name: metrics[cell] for name, cell in cells.items()}
    for name, found, seconds in store.load_or_score(named, {"texts": digests}, make_pairs, run):
        for side, values in zip(sides, np.split(found, len(sides)), strict=True):
            yield replace(cells[name], side=side), values, seconds / len(sides)
