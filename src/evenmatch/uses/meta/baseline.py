"""What unrelated texts score, layer by layer: the constants that rescaling puts at 0."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.data.tables import as_text, number
from evenmatch.errors import InputError
from evenmatch.registry import spec
from evenmatch.scoring.ask import name_of, score
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reduce import Rescale
from evenmatch.types import Metric, Scores
from evenmatch.uses.meta.baseline_pairs import unrelated_pairs
from evenmatch.uses.meta.layers import at_every_layer, at_layer, layered
from evenmatch.vectors.transformer import Transformer

_DIGITS = 6  # more than the standard error of any sample


@dataclass(frozen=True, slots=True)
class LayerBaseline:
    """Mean scores of unrelated texts at one layer; `error` is the standard error of `value`."""

    layer: int
    precision: float
    recall: float
    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """A metric's baselines at every layer, from `pairs` random pairings of `texts` texts.

    `layer` is the one the metric reads.
    """

    metric: AlignMetric
    layer: int
    rows: tuple[LayerBaseline, ...]
    texts: int
    pairs: int
    seed: int
    signature: str

    @property
    def low(self) -> float:
        """The value that unrelated texts have at the metric's own layer."""
        return self.rows[self.layer].value

    @property
    def rescaled(self) -> AlignMetric:
        """The metric at its layer with unrelated texts at 0."""
        fixed = at_layer(self.metric, self.layer)
        return dataclasses.replace(fixed, scoring=Rescale(self.low, fixed.scoring))

    @property
    def csv(self) -> str:
        """The table bert_score reads as `baseline_path`: LAYER,P,R,F."""
        lines = [f"{r.layer},{r.precision},{r.recall},{r.value}" for r in self.rows]
        return "\n".join(["LAYER,P,R,F", *lines]) + "\n"

    def __str__(self) -> str:
        table = [["layer", "precision", "recall", "value", "error"]]
        table += [
            [str(r.layer), *map(number, (r.precision, r.recall, r.value, r.error))]
            for r in self.rows
        ]
        return (
            f"{as_text(table)}\n\n{self.pairs} random pairs of {self.texts} texts, seed {self.seed}"
            f"\n{self.signature}\nto rescale: {spec(self.rescaled)}"
        )


def measure_baseline(
    texts: Sequence[str] | Sequence[Sequence[str]],
    metric: str | Metric = "bertscore",
    *,
    pairs: int = 2000,
    seed: int = 0,
    **run: Any,
) -> Baseline:
    """Mean precision, recall and value of random pairings of texts, at every layer of a model.

    Candidate and reference come from different lines; where a line is a list of texts that say the
    same, none of them is paired with another. All texts go through the model once for all layers.
    `run` is as in `score`.
    """
    wanted = layered(metric)
    if isinstance(wanted.scoring, Rescale):
        raise InputError(f"{name_of(metric)} is rescaled already; give it without rescale")
    assert isinstance(wanted.vectors, Transformer)
    chosen = unrelated_pairs(texts, pairs, seed)
    every = at_every_layer(wanted)
    found = score([c for c, _ in chosen], [r for _, r in chosen], every, **run)
    rows = [_row(layer, found[name_of(each)]) for layer, each in enumerate(every)]
    layer = wanted.vectors.depth()
    return Baseline(
        wanted,
        layer,
        tuple(rows),
        len({text for pair in chosen for text in pair}),
        len(chosen),
        seed,
        found[name_of(every[layer])].signature,
    )


def _row(layer: int, scores: Scores) -> LayerBaseline:
    table = np.array([(s.precision, s.recall, s.value) for s in scores.segments], dtype=np.float64)
    error = table[:, 2].std(ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0.0
    means = (round(float(mean), _DIGITS) for mean in (*table.mean(0), error))
    return LayerBaseline(layer, *means)
