"""One alignment for inspection: the units of two texts, their similarities, pairs and score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenmatch.errors import InputError
from evenmatch.registry import CallContext, make_signature
from evenmatch.registry.opening import count_idf
from evenmatch.scoring.engine import open_encoder
from evenmatch.scoring.metric import AlignMetric, compare_pairs
from evenmatch.types import (
    Alignment,
    Array,
    Embedded,
    OpenEncoder,
    Pair,
    Problem,
    Run,
    Score,
    Units,
)
from evenmatch.units.text import continuations

_MIN_PAIR_WEIGHT = 0.005  # smaller weights are left out of the list of pairs
_MAX_SHOWN = 60  # characters of a unit in the printed table


@dataclass(frozen=True, eq=False)
class Aligned:
    """The alignment of one candidate with one reference.

    Units are as written in the text. In `labels`, the units as they are printed and drawn, a
    sub-word that continues a word begins with "##".
    """

    candidate_units: list[str]
    reference_units: list[str]
    similarity: Array
    alignment: Alignment
    score: Score
    signature: str
    candidate_weights: Array = ()  # weight of each unit in the mean; empty means equal weights
    reference_weights: Array = ()
    # Renders it in notebooks. Set by `evenmatch.align`, since the viewer is in a higher layer.
    html_renderer: Callable[[Aligned], str] | None = None
    continued: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())

    @property
    def labels(self) -> tuple[list[str], list[str]]:
        """The units of both texts as they are shown."""
        sides = zip((self.candidate_units, self.reference_units), self.continued, strict=True)
        first, second = (
            [f"##{unit}" if i in continued else unit for i, unit in enumerate(units)]
            for units, continued in sides
        )
        return first, second

    @property
    def pairs(self) -> list[tuple[int, int, float]]:
        """(i, j, weight) for each matched pair: the mean of the row share and the column share."""
        weight = (np.asarray(self.alignment.rows) + np.asarray(self.alignment.cols)) / 2
        at = np.argwhere(weight > _MIN_PAIR_WEIGHT)
        return [(int(i), int(j), float(weight[i, j])) for i, j in at]

    def _repr_html_(self) -> str | None:
        return self.html_renderer(self) if self.html_renderer else None

    def __str__(self) -> str:
        candidate_units, reference_units = (list(map(_shorten, side)) for side in self.labels)
        width = max([len(u) for u in candidate_units] + [9])
        lines = [f"{'candidate':<{width}}  weight  similarity  reference"]
        pairs = self.pairs
        for i, unit in enumerate(candidate_units):
            own = [(j, w) for row, j, w in pairs if row == i]
            for j, weight in own:
                value = float(self.similarity[i, j])
                lines.append(f"{unit:<{width}}  {weight:6.2f}  {value:10.3f}  {reference_units[j]}")
            if not own:
                lines.append(f"{unit:<{width}}       -           -  (unmatched)")
        taken = {j for _, j, _ in pairs}
        lines += [
            f"{'(unmatched)':<{width}}       -           -  {unit}"
            for j, unit in enumerate(reference_units)
            if j not in taken
        ]
        lines.append(_format_score(self.score))
        return "\n".join(lines)


def _shorten(unit: str) -> str:
    """Shorten a unit for a table; units may be whole sentences."""
    return unit if len(unit) <= _MAX_SHOWN else f"{unit[: _MAX_SHOWN - 1]}…"


def _format_score(score: Score) -> str:
    text = f"score {score.value:.4f}"
    if score.precision is not None and score.recall is not None:
        text += f"  precision {score.precision:.4f}  recall {score.recall:.4f}"
    return text + (f"  ({', '.join(sorted(score.flags))})" if score.flags else "")


def align_texts(candidate: str, reference: str, metric: Any, run: Run = Run()) -> Aligned:
    """Align two texts with an alignment metric."""
    if not isinstance(metric, AlignMetric):
        raise InputError(
            "only alignment metrics can align texts, such as bertscore, f_disc and f_cont"
        )
    context = CallContext(run, [Pair(candidate, (reference,))])
    metric = count_idf(metric, context)
    left, right = open_encoder(metric.vectors, context)
    units = metric.units(candidate), metric.units(reference)
    run.check(len(units[0].groups) * len(units[1].groups))  # 0 if the encoder splits the texts
    x, candidate_units = _embed_text(units[0], left)
    y, reference_units = _embed_text(units[1], right)
    run.check(len(x.weights) * len(y.weights))
    similarity = compare_pairs(metric.similarity, [(x, y)], [candidate])[0]
    alignment = metric.alignment([Problem(similarity, x.mass, y.mass)])[0]
    score = metric.scoring(similarity, alignment, x, y)
    continued = frozenset[int](), frozenset[int]()
    if units[0].by_model:  # a parser may split words too, but its parts are words
        continued = continuations(candidate_units), continuations(reference_units)
    return Aligned(
        list(candidate_units.items),
        list(reference_units.items),
        similarity,
        alignment,
        score,
        make_signature(metric, context),
        x.weights,
        y.weights,
        continued=continued,
    )


def _embed_text(units: Units, encoder: OpenEncoder) -> tuple[Embedded, Units]:
    """Embed one text; also return its units with readable words."""
    embedded = encoder.encode([units])[0]
    return embedded, encoder.readable(embedded.units) if encoder.readable else embedded.units
