"""by_metric: two units are as similar as some metric says their texts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenmatch.registry import register
from evenmatch.scoring.named import f_disc
from evenmatch.types import Array, Embedded, Metric, Pair, Units


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
        return self.many([(x, y)])[0]

    def many(self, sides: Sequence[tuple[Embedded, Embedded]]) -> list[Array]:
        """The similarities of many pairs of texts, every two different units scored once."""
        texts = [(_texts(x.units), _texts(y.units)) for x, y in sides]
        pairs = {(p, q): 0.0 for rows, cols in texts for p in rows for q in cols if p and q}
        scored = self.metric([Pair(p, (q,)) for p, q in pairs])
        for pair, score in zip(pairs, scored.segments, strict=True):
            pairs[pair] = score.value
        return [
            np.array([[pairs.get((p, q), 0.0) for q in cols] for p in rows]).reshape(
                len(rows), len(cols)
            )
            for rows, cols in texts
        ]

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the metric."""
        return self.metric.bounds


def _texts(units: Units) -> list[str]:
    """Each unit as it stands in the text; its words where nothing says where it stands."""
    if not units.spans:
        return list(units.items)
    return [
        units.text[units.spans[group[0]][0] : units.spans[group[-1]][1]] if group else ""
        for group in units.groups
    ]
