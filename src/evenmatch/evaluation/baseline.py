"""Baselines for rescaling: mean scores of unrelated texts, layer by layer.

`measure_baseline` scores random pairs of texts at every layer of a model. Rescaling maps the mean
score of such pairs to 0 (Zhang et al., 2020, BERTScore).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenmatch.api import metric_name, score
from evenmatch.data.tables import format_number, table_to_text
from evenmatch.errors import InputError
from evenmatch.evaluation.layer_selection import (
    layered_metric,
    metric_at_every_layer,
    metric_at_layer,
)
from evenmatch.protocols import MetricLike, TextColumn
from evenmatch.registry import spec
from evenmatch.registry.parts import check_arguments
from evenmatch.scoring.inputs import column_values
from evenmatch.scoring.metric import AlignMetric
from evenmatch.scoring.reducers import Rescale
from evenmatch.stats.panel import Indexes
from evenmatch.types import Scores
from evenmatch.vectors.transformer import Transformer

_DIGITS = 6  # more precise than the standard error of any sample


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
    """Baselines of a metric at every layer, from `pairs` random pairs of `texts` texts.

    `layer` is the layer that the metric uses.
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
        """Mean score of unrelated texts at the metric's layer."""
        return self.rows[self.layer].value

    @property
    def rescaled(self) -> AlignMetric:
        """The metric at its layer, rescaled so that unrelated texts score 0."""
        fixed = metric_at_layer(self.metric, self.layer)
        return replace(fixed, scoring=Rescale(self.low, fixed.scoring))

    @property
    def csv(self) -> str:
        """The table in the format of bert_score's `baseline_path`: LAYER,P,R,F."""
        lines = [f"{r.layer},{r.precision},{r.recall},{r.value}" for r in self.rows]
        return "\n".join(["LAYER,P,R,F", *lines]) + "\n"

    def __str__(self) -> str:
        table = [["layer", "precision", "recall", "value", "error"]]
        table += [
            [str(r.layer), *map(format_number, (r.precision, r.recall, r.value, r.error))]
            for r in self.rows
        ]
        return (
            f"{table_to_text(table)}\n\n{self.pairs} random pairs of {self.texts} texts, "
            f"seed {self.seed}\n{self.signature}\nto rescale: {spec(self.rescaled)}"
        )


@check_arguments
def measure_baseline(
    texts: Sequence[str] | Sequence[Sequence[str]] | TextColumn,
    metric: MetricLike = "bertscore",
    *,
    pairs: int = 2000,
    seed: int = 0,
    **run: Any,
) -> Baseline:
    """Measure mean precision, recall and value of random text pairs at every layer of a model.

    Candidate and reference come from different lines. A line may be a list of texts with the same
    meaning; these are not paired with each other. Each text is encoded once for all layers. `run`
    takes the run settings of `score`.
    """
    wanted = layered_metric(metric)
    if isinstance(wanted.scoring, Rescale):
        raise InputError(f"{metric_name(metric)} is already rescaled; give it without rescale")
    assert isinstance(wanted.vectors, Transformer)
    chosen = unrelated_pairs(column_values(texts), pairs, seed)
    every = metric_at_every_layer(wanted)
    found = score([c for c, _ in chosen], [r for _, r in chosen], every, **run)
    rows = [_layer_baseline(layer, found[metric_name(each)]) for layer, each in enumerate(every)]
    layer = wanted.vectors.layer_index()
    return Baseline(
        wanted,
        layer,
        tuple(rows),
        len({text for pair in chosen for text in pair}),
        len(chosen),
        seed,
        found[metric_name(every[layer])].signature,
    )


def _layer_baseline(layer: int, scores: Scores) -> LayerBaseline:
    table = np.array([(s.precision, s.recall, s.value) for s in scores.segments], dtype=np.float64)
    error = table[:, 2].std(ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0.0
    means = (round(float(mean), _DIGITS) for mean in (*table.mean(0), error))
    return LayerBaseline(layer, *means)


def unrelated_pairs(
    lines: Sequence[str] | Sequence[Sequence[str]], count: int, seed: int
) -> list[tuple[str, str]]:
    """Sample `count` pairs of texts from different lines; all pairs if there are no more.

    Blank texts and repetitions of a text are left out. The same seed gives the same pairs.

    >>> unrelated_pairs(["a", "b"], 10, 0)
    [('a', 'b'), ('b', 'a')]
    """
    if type(count) is not int or count < 1:
        raise InputError(f"pairs must be an integer of at least 1, got {count!r}")
    if isinstance(lines, str):
        raise InputError("texts must be a list of lines, got one string; split it into lines")
    line_of_text: dict[str, int] = {}
    for number, line in enumerate(lines):
        for text in line if isinstance(line, (list, tuple)) else [line]:
            if not isinstance(text, str):
                raise InputError(f"the text of line {number} must be a string, got {text!r}")
            if text.strip():
                line_of_text.setdefault(text, number)
    texts, line_of = list(line_of_text), np.array([*line_of_text.values()], dtype=np.intp)
    distinct_lines, sizes = np.unique(line_of, return_counts=True)
    if len(distinct_lines) < 2:
        raise InputError(
            "a baseline needs texts of different lines, got "
            f"{len(distinct_lines)} distinct lines; give at least two"
        )
    if len(texts) ** 2 - (sizes**2).sum() <= count:
        chosen = np.argwhere(line_of[:, None] != line_of[None]).tolist()
    else:
        chosen = _sample_pairs(line_of, count, seed)
    return [(texts[i], texts[j]) for i, j in chosen]


def _sample_pairs(line_of: Indexes, count: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    chosen: list[list[int]] = []
    while len(chosen) < count:
        drawn = rng.integers(len(line_of), size=(count - len(chosen), 2))
        chosen += [[i, j] for i, j in drawn.tolist() if line_of[i] != line_of[j]]
    return chosen
