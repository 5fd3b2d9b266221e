"""Distributions side by side, as violins: as wide as values are frequent, a bar at the median."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from evenmatch.stats.arrays import Floats
from evenmatch.uses.report.plot_frame import (
    BOTTOM,
    COLOURS,
    INK,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    Scale,
    key,
    key_width,
    picture,
    scale_of,
    text,
    upward,
)

_HIGH, _WIDEST, _GAP = 260, 46, 26
_POINTS = 80


def violins(title: str, counts: str, groups: Mapping[str, Mapping[str, Floats]]) -> str:
    """A violin for each series of each group; series of one name have one colour.

    `counts` says what the values are.
    """
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [v for group in groups.values() for own in group.values() for v in own.tolist()]
    scale = scale_of(values, TOP + _HIGH, TOP)
    widths = [max(_WIDEST * len(g), LETTER * len(label)) for label, g in groups.items()]
    width = max(LEFT + sum(widths) + _GAP * len(widths) + RIGHT, key_width([*series, title]))
    parts = [*key(series), *upward(scale, LEFT, width - RIGHT, counts)]
    x = LEFT + _GAP / 2
    for (label, group), own in zip(groups.items(), widths, strict=True):
        first = x + own / 2 - _WIDEST * (len(group) - 1) / 2
        for place, (name, some) in enumerate(group.items()):
            parts += _violin(first + place * _WIDEST, some, scale, COLOURS[series.index(name)])
        parts.append(text(x + own / 2, TOP + _HIGH + 20, label, anchor="middle"))
        x += own + _GAP
    return picture(title, width, TOP + _HIGH + BOTTOM, parts)


def density(values: Floats, at: Floats) -> Floats:
    """How frequent values are around each point, by Gaussian kernels of Silverman's width."""
    quarters = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34
    spread = min(values.std(), quarters) or values.std()
    width = max(0.9 * spread * len(values) ** -0.2, 1e-3)
    kernels = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2)
    found: Floats = kernels.mean(1) / (width * np.sqrt(2 * np.pi))
    return found


def _violin(x: float, values: Floats, scale: Scale, colour: str) -> Iterator[str]:
    at = np.linspace(values.min(), values.max(), _POINTS)
    thick = density(values, at)
    half = thick / thick.max() * (_WIDEST / 2 - 3)
    right = [f"{x + h:.1f} {scale(v):.1f}" for v, h in zip(at, half, strict=True)]
    left = [f"{x - h:.1f} {scale(v):.1f}" for v, h in zip(at[::-1], half[::-1], strict=True)]
    yield f'<path d="M{"L".join([*right, *left])}Z" fill="{colour}" fill-opacity=".55"/>'
    low, middle, high = (scale(v) for v in np.quantile(values, [0.25, 0.5, 0.75]))
    yield f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{INK}" stroke-width="1.5"/>'
    yield f'<path d="M{x - 7:.1f} {middle:.1f}h14" stroke="{INK}" stroke-width="2.5"/>'
