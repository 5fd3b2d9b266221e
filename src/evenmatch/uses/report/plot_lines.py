"""Histograms, curves and intervals, drawn as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenmatch.stats.intervals import Interval
from evenmatch.uses.report.plot_frame import (
    BOTTOM,
    COLOURS,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    along,
    key,
    key_width,
    picture,
    scale_of,
    text,
    upward,
)

_WIDE, _HIGH, _ROW, _SPREAD = 560, 240, 40, 9


def histogram(title: str, counts: str, values: Sequence[int], bar: int) -> str:
    """How many whole numbers fall into each stretch of `bar` of them."""
    stretches = np.bincount(np.asarray(values) // bar)
    across = scale_of([0, bar * len(stretches)], LEFT, LEFT + _WIDE, most=12)
    up = scale_of([0, int(stretches.max())], TOP + _HIGH, TOP)
    bars = [
        f'<rect x="{across(i * bar) + 0.5:.1f}" y="{up(n):.1f}" fill="{COLOURS[0]}" '
        f'width="{across(bar) - across(0) - 1:.1f}" height="{up(0) - up(n):.1f}"/>'
        for i, n in enumerate(stretches.tolist())
        if n
    ]
    frame = [*along(across, TOP, TOP + _HIGH, counts), *upward(up, LEFT, LEFT + _WIDE, "texts")]
    return picture(title, LEFT + _WIDE + RIGHT, TOP + _HIGH + BOTTOM, [*frame, *bars])


def curves(
    title: str, axes: tuple[str, str], lines: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Points joined by lines; `axes` say what goes to the right and what up."""
    points = [point for line in lines.values() for point in line]
    width = max(_WIDE, key_width(list(lines)) - LEFT)
    across = scale_of([x for x, _ in points], LEFT, LEFT + width)
    up = scale_of([0, *(y for _, y in points)], TOP + _HIGH, TOP)
    parts = [
        *key(list(lines)),
        *along(across, TOP, TOP + _HIGH, axes[0]),
        *upward(up, LEFT, LEFT + width, axes[1]),
    ]
    for line, colour in zip(lines.values(), COLOURS, strict=False):
        path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return picture(title, LEFT + width + RIGHT, TOP + _HIGH + BOTTOM, parts)


def interval_plot(title: str, counts: str, groups: Mapping[str, Mapping[str, Interval]]) -> str:
    """A point on a line for each series of each group, groups below each other."""
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    bounds = [v for g in groups.values() for i in g.values() for v in (i.low, i.value, i.high)]
    left = LEFT + LETTER * max(map(len, groups))
    across = scale_of(bounds, left, left + _WIDE)
    bottom = TOP + _ROW * len(groups)
    parts = [*key(series), *along(across, TOP, bottom, counts)]
    for row, (label, group) in enumerate(groups.items()):
        y = TOP + _ROW * (row + 0.5)
        parts.append(text(left - 10, y + 4, label, anchor="end"))
        for place, (name, found) in enumerate(group.items()):
            at = y + _SPREAD * (place - (len(group) - 1) / 2)
            colour = COLOURS[series.index(name)]
            parts.append(
                f'<path d="M{across(found.low):.1f} {at:.1f}H{across(found.high):.1f}" '
                f'stroke="{colour}" stroke-width="2" stroke-opacity=".6"/>'
                f'<circle cx="{across(found.value):.1f}" cy="{at:.1f}" r="4" fill="{colour}"/>'
            )
    return picture(title, left + _WIDE + RIGHT, bottom + BOTTOM, parts)
