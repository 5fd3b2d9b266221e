"""by_metric: two units are as similar as some metric says their texts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.registry import register
from evenmatch.scoring.named import f_disc
from evenmatch.types import Array, Embedded, Metric, Pair, Similarity, Units


@register("similarity", "by_metric")
@dataclass(frozen=True)
class ByMetric:
    """The score of one unit's text against another's, by any metric.

    The text is as it was written, whatever stems the unit's words are. With `f_disc` this is the
    semantic likeness of phrases: their pieces embedded and matched one to one.
    """

    metric: Metric = f_disc()

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        """Rows are `x`'s units, columns `y`'s."""
        return self.prepared([(x, y)])(x, y)

    def prepared(self, sides: Sequence[tuple[Embedded, Embedded]]) -> Similarity:
        """A similarity that knows the score of any two units of these, each scored once."""
        texts = [(texts_of(x.units), texts_of(y.units)) for x, y in sides]
        pairs = dict.fromkeys((p, q) for rows, cols in texts for p in rows for q in cols if p and q)
        scored = self.metric([Pair(p, (q,)) for p, q in pairs]).segments
        return _Known({two: score.value for two, score in zip(pairs, scored, strict=True)})

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the metric."""
        return self.metric.bounds


@dataclass(frozen=True)
class _Known:
    """Similarities looked up by text; a unit without a word is like nothing."""

    scores: Mapping[tuple[str, str], float]

    def __call__(self, x: Embedded, y: Embedded) -> Array:
        rows, cols = texts_of(x.units), texts_of(y.units)
        found = [[self.scores.get((p, q), 0.0) for q in cols] for p in rows]
        return np.array(found).reshape(len(rows), len(cols))


def texts_of(units: Units) -> list[str]:
    """Each unit as it stands in the text; its words where nothing says where it stands."""
    if not units.spans:
        return list(units.items)
    return [
        units.text[units.spans[group[0]][0] : units.spans[group[-1]][1]] if group else ""
        for group in units.groups
    ]
