"""Plots as SVG, without a plotting library.

Functions named `*_html` draw plots for report pages: coordinates are percentages, so plots fill the
width of the page while text keeps its size. Functions named `*_svg` draw figures of a fixed size
that can be saved as files. Both use `nice_scale` for axes with round ticks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from evenmatch.reports.page import section
from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.panel import Floats

_ROW_HEIGHT, _TICKS_HEIGHT = 40, 26  # pixels
_PLOT_HEIGHT = 220
_MIN_SPAN = 0.02  # smallest range of an axis
_COLOUR_COUNT = 7  # number of colours in page.css
INK, MUTED, GRID_COLOUR = "#212529", "#5c636a", "#dee2e6"
COLOURS = ("#0b5ca8", "#e8590c", "#2b8a3e", "#862e9c", "#868e96", "#b08900", "#0c8599")

MARGIN_TOP, MARGIN_BOTTOM, MARGIN_LEFT, MARGIN_RIGHT = (
    58,
    50,
    62,
    18,
)  # pixels around the plot area

LETTER_WIDTH = 6.7  # average, in pixels
_STEPS = (1, 2, 2.5, 5, 10)
_SVG_WIDTH, _SVG_HEIGHT, _SVG_ROW_HEIGHT, _SERIES_SPACING = 560, 240, 40, 9
_VIOLIN_PLOT_HEIGHT, _VIOLIN_WIDTH, _GROUP_GAP = 260, 46, 26
_DENSITY_POINTS = 80


@dataclass(frozen=True, slots=True)
class Estimate:
    """A named value with its confidence interval, if it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> tuple[float, ...]:
        """The value and the ends of the interval."""
        return tuple(v for v in (self.value, self.low, self.high) if v is not None)


def estimate_plot_html(
    estimates: Sequence[Estimate], *, bars: bool = False, digits: int = 3
) -> str:
    """Plot a row per estimate: name and value, below them a point or a bar with the interval."""
    values = [bound for estimate in estimates for bound in estimate.bounds]
    scale = nice_scale(_pad_range([*values, 0.0] if bars else values), 0, 100, most=6)
    height = _TICKS_HEIGHT + _ROW_HEIGHT * len(estimates)
    zero = ""
    if not bars and scale.low < 0 < scale.high:
        zero = (
            f'<line class="zero" {_x_range(scale, 0, 0)} y1="{_TICKS_HEIGHT - 6}" y2="{height}"/>'
        )
    rows = (
        _estimate_row(estimate, scale, _TICKS_HEIGHT + _ROW_HEIGHT * n, bars=bars, digits=digits)
        for n, estimate in enumerate(estimates)
    )
    label = "; ".join(f"{estimate.name} {estimate.value:.{digits}f}" for estimate in estimates)
    return _plot_html(height, [*_top_ticks(scale, height), zero, *rows], "rows", label)


def line_plot_html(
    axes: tuple[str, str], lines: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Plot lines with a legend; `axes` are the labels of the x and the y axis."""
    points = [point for line in lines.values() for point in line]
    across = nice_scale([x for x, _ in points], 0, 100, most=6)
    up = nice_scale(_pad_range([y for _, y in points]), 100, 0, most=6)
    shapes = []
    for n, (name, line) in enumerate(lines.items()):
        path = "L".join(f"{across(x):.2f} {up(y):.2f}" for x, y in line)
        dots = "".join(
            f'<circle class="c{n % _COLOUR_COUNT}" cx="{across(x):.2f}%" cy="{up(y):.2f}%" r="3">'
            f"<title>{escape(name)}, {axes[0]} {x:g}: {y:.4g}</title></circle>"
            for x, y in line
        )
        shapes.append(
            '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">'
            f'<path class="c{n % _COLOUR_COUNT}" d="M{path}"/></svg>{dots}'
        )
    frame = [*_x_axis_html(across, axes[0]), *_y_axis_html(up, axes[1])]
    label = f"{axes[1]} by {axes[0]}, {len(lines)} lines"
    return _legend_html(list(lines)) + _plot_html(_PLOT_HEIGHT, [*frame, *shapes], "curves", label)


def histogram_html(axes: tuple[str, str], counts: Sequence[int], low: float, high: float) -> str:
    """Plot a histogram with equal bins from `low` to `high`; `axes` are the axis labels."""
    across = Scale(low, high, 0, 100, (high - low) / 5)
    up = nice_scale([0, max(counts)], 100, 0, most=5)
    if up.step < 1:  # counts are integers
        up = Scale(0, max(counts), 100, 0, 1)
    wide = 100 / len(counts)
    shapes = [
        f'<rect class="bar" x="{n * wide + 0.3:.2f}%" width="{wide - 0.6:.2f}%" '
        f'y="{up(count):.2f}%" height="{100 - up(count):.2f}%"><title>{count}</title></rect>'
        for n, count in enumerate(counts)
        if count
    ]
    frame = [*_x_axis_html(across, axes[0]), *_y_axis_html(up, axes[1])]
    label = f"{axes[1]} by {axes[0]}: {', '.join(map(str, counts))}"
    return _plot_html(_PLOT_HEIGHT * 3 // 4, [*frame, *shapes], "bars", label)


def figure_with_caption(caption: str, plot: str) -> str:
    """Return a plot with its caption above it."""
    return f'<figure class="fluid"><figcaption>{escape(caption)}</figcaption>\n{plot}</figure>'


def figures_section(heading: str, text: str, figures: Sequence[str]) -> str:
    """Return a section with plots side by side; '' if there are none."""
    grid = '<div class="figures even">\n' + "\n".join(figures) + "\n</div>"
    return section(heading, text, grid if figures else "")


def _plot_html(height: float, parts: Iterable[str], kind: str, label: str) -> str:
    return (
        f'<div class="field {kind}"><svg role="img" aria-label="{escape(label, quote=True)}" '
        f'width="100%" height="{height:.0f}">' + "".join(parts) + "</svg></div>"
    )


def _estimate_row(estimate: Estimate, scale: Scale, y: float, *, bars: bool, digits: int) -> str:
    middle, interval = y + 27, ""
    if estimate.low is not None and estimate.high is not None:
        ends = _x_range(scale, estimate.low, estimate.high)
        interval = f'<line class="interval" {ends} y1="{middle}" y2="{middle}"/>'
    start = scale(0) if bars else 0.0
    point = (
        f'<rect class="bar" x="{start:.2f}%" y="{middle - 6}" '
        f'width="{max(scale(estimate.value) - start, 0):.2f}%" height="12" rx="2"/>'
        if bars
        else f'<circle class="point" cx="{scale(estimate.value):.2f}%" cy="{middle}" r="5"/>'
    )
    both = point + interval if bars else interval + point
    return (
        f'<g><text class="name" x="0" y="{y + 12}">{escape(estimate.name)}</text>'
        f'<text class="value" x="100%" y="{y + 12}">{estimate.value:.{digits}f}</text>{both}</g>'
    )


def _pad_range(values: Sequence[float]) -> list[float]:
    """Return the values, widened to a minimum range so that small differences look small."""
    low, high = min(values), max(values)
    if high - low >= _MIN_SPAN:
        return list(values)
    wider = max(0.0, low - _MIN_SPAN / 2) if low >= 0 else low - _MIN_SPAN / 2
    return [*values, wider, high + _MIN_SPAN / 2]


def _x_range(scale: Scale, start: float, end: float) -> str:
    return f'x1="{scale(start):.2f}%" x2="{scale(end):.2f}%"'


def _top_ticks(scale: Scale, height: float) -> Iterator[str]:
    for tick in scale.ticks:
        yield (
            f'<line class="grid" {_x_range(scale, tick, tick)} '
            f'y1="{_TICKS_HEIGHT - 6}" y2="{height}"/>'
        )
        label = tick_label(tick, scale.step)
        yield f'<text class="tick" x="{scale(tick):.2f}%" y="{_TICKS_HEIGHT - 11}">{label}</text>'


def _x_axis_html(scale: Scale, name: str) -> Iterator[str]:
    for tick in scale.ticks:
        yield f'<line class="grid" {_x_range(scale, tick, tick)} y1="0" y2="100%"/>'
        label = tick_label(tick, scale.step)
        yield f'<text class="tick" x="{scale(tick):.2f}%" y="100%" dy="16">{label}</text>'
    yield f'<text class="tick" x="50%" y="100%" dy="34">{escape(name)}</text>'


def _y_axis_html(scale: Scale, name: str) -> Iterator[str]:
    for tick in scale.ticks:
        y = f"{scale(tick):.2f}%"
        yield f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        yield f'<text class="name" x="-6" y="{y}" dy="4">{tick_label(tick, scale.step)}</text>'
    yield f'<text class="above" x="-40" y="-10">{escape(name)}</text>'


def _legend_html(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    items = "".join(
        f'<li><span class="c{n % _COLOUR_COUNT}"></span>{escape(name)}</li>'
        for n, name in enumerate(names)
    )
    return f'<ul class="key">{items}</ul>'


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis that maps `low` to `start` and `high` to `end`, with a tick every `step`."""

    low: float
    high: float
    start: float
    end: float
    step: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """The round numbers from `low` to `high`."""
        count = round((self.high - self.low) / self.step)
        return [self.low + i * self.step for i in range(count + 1)]


def nice_scale(values: Iterable[float], start: float, end: float, most: int = 8) -> Scale:
    """Return a scale that contains all values and begins and ends on round numbers.

    >>> nice_scale([0.13, 0.86], 0, 100).ticks[:3]
    [0.1, 0.2, 0.30000000000000004]
    """
    known = list(values)
    low, high = min(known), max(known)
    rough = max(high - low, 1e-9) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in _STEPS if s * power >= rough * (1 - 1e-9))
    first = math.floor(low / step + 1e-9) * step
    last = max(math.ceil(high / step - 1e-9) * step, first + step)
    return Scale(first, last, start, end, step)


def svg_document(title: str, width: float, height: float, parts: Iterable[str]) -> str:
    """Return a complete SVG, to be saved as a file or embedded in a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="12">'
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
        + svg_text(MARGIN_LEFT, 20, title, size=14, weight="600")
        + "".join(parts)
        + "</svg>\n"
    )


def svg_text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    colour: str = INK,
    size: float = 12,
    weight: str = "normal",
) -> str:
    """Return one line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size:g}" font-weight="{weight}">{escape(words)}</text>'
    )


def svg_y_axis(scale: Scale, left: float, right: float, name: str) -> Iterator[str]:
    """Yield horizontal grid lines with tick labels on the left, and the axis label."""
    for tick in scale.ticks:
        y = scale(tick)
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="{GRID_COLOUR}"/>'
        yield svg_text(
            left - 6, y + 4, tick_label(tick, scale.step), anchor="end", colour=MUTED, size=11
        )
    middle = (scale.start + scale.end) / 2
    yield (
        f'<text transform="translate(14 {middle:.1f}) rotate(-90)" text-anchor="middle" '
        f'fill="{MUTED}">{escape(name)}</text>'
    )


def svg_x_axis(scale: Scale, top: float, bottom: float, name: str) -> Iterator[str]:
    """Yield vertical grid lines with tick labels below, and the axis label."""
    for tick in scale.ticks:
        x = scale(tick)
        yield f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="{GRID_COLOUR}"/>'
        number = tick_label(tick, scale.step)
        yield svg_text(x, bottom + 16, number, anchor="middle", colour=MUTED, size=11)
    middle = (scale.start + scale.end) / 2
    yield svg_text(middle, bottom + 36, name, anchor="middle", colour=MUTED)


def svg_legend(names: Sequence[str]) -> Iterator[str]:
    """Yield the legend in a line below the title; nothing for a single series."""
    x = float(MARGIN_LEFT)
    for name, colour in zip(names, COLOURS, strict=False) if len(names) > 1 else ():
        yield f'<rect x="{x:.1f}" y="33" width="11" height="11" fill="{colour}"/>'
        yield svg_text(x + 16, 43, name, colour=MUTED)
        x += 34 + LETTER_WIDTH * len(name)


def svg_legend_width(names: Sequence[str]) -> float:
    """Return the width that a figure needs for its legend."""
    return MARGIN_LEFT + sum(34 + LETTER_WIDTH * len(name) for name in names)


def tick_label(value: float, step: float) -> str:
    """Return a tick as text, with as many decimals as the step needs.

    >>> tick_label(0.30000000000000004, 0.1), tick_label(0.25, 0.25)
    ('0.3', '0.25')
    """
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if not math.isclose(step * 10**digits, round(step * 10**digits)):
        digits += 1
    return f"{value + 0.0:.{digits}f}"


def histogram_svg(title: str, counts: str, values: Sequence[int], bar: int) -> str:
    """Plot a histogram of integers with bins of width `bar`; `counts` is the x label."""
    bins = np.bincount(np.asarray(values) // bar)
    across = nice_scale([0, bar * len(bins)], MARGIN_LEFT, MARGIN_LEFT + _SVG_WIDTH, most=12)
    up = nice_scale([0, int(bins.max())], MARGIN_TOP + _SVG_HEIGHT, MARGIN_TOP)
    bars = [
        f'<rect x="{across(i * bar) + 0.5:.1f}" y="{up(n):.1f}" fill="{COLOURS[0]}" '
        f'width="{across(bar) - across(0) - 1:.1f}" height="{up(0) - up(n):.1f}"/>'
        for i, n in enumerate(bins.tolist())
        if n
    ]
    frame = [
        *svg_x_axis(across, MARGIN_TOP, MARGIN_TOP + _SVG_HEIGHT, counts),
        *svg_y_axis(up, MARGIN_LEFT, MARGIN_LEFT + _SVG_WIDTH, "texts"),
    ]
    return svg_document(
        title,
        MARGIN_LEFT + _SVG_WIDTH + MARGIN_RIGHT,
        MARGIN_TOP + _SVG_HEIGHT + MARGIN_BOTTOM,
        [*frame, *bars],
    )


def line_plot_svg(
    title: str, axes: tuple[str, str], lines: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Plot lines; `axes` are the labels of the x and the y axis."""
    points = [point for line in lines.values() for point in line]
    width = max(_SVG_WIDTH, svg_legend_width(list(lines)) - MARGIN_LEFT)
    across = nice_scale([x for x, _ in points], MARGIN_LEFT, MARGIN_LEFT + width)
    up = nice_scale([0, *(y for _, y in points)], MARGIN_TOP + _SVG_HEIGHT, MARGIN_TOP)
    parts = [
        *svg_legend(list(lines)),
        *svg_x_axis(across, MARGIN_TOP, MARGIN_TOP + _SVG_HEIGHT, axes[0]),
        *svg_y_axis(up, MARGIN_LEFT, MARGIN_LEFT + width, axes[1]),
    ]
    for line, colour in zip(lines.values(), COLOURS, strict=False):
        path = "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in line)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return svg_document(
        title, MARGIN_LEFT + width + MARGIN_RIGHT, MARGIN_TOP + _SVG_HEIGHT + MARGIN_BOTTOM, parts
    )


def interval_plot_svg(title: str, counts: str, groups: Mapping[str, Mapping[str, Interval]]) -> str:
    """Plot the interval of each series in each group, one row per group; `counts`: x label."""
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    bounds = [v for g in groups.values() for i in g.values() for v in (i.low, i.value, i.high)]
    left = MARGIN_LEFT + LETTER_WIDTH * max(map(len, groups))
    across = nice_scale(bounds, left, left + _SVG_WIDTH)
    bottom = MARGIN_TOP + _SVG_ROW_HEIGHT * len(groups)
    parts = [*svg_legend(series), *svg_x_axis(across, MARGIN_TOP, bottom, counts)]
    for row, (label, group) in enumerate(groups.items()):
        y = MARGIN_TOP + _SVG_ROW_HEIGHT * (row + 0.5)
        parts.append(svg_text(left - 10, y + 4, label, anchor="end"))
        for index, (name, found) in enumerate(group.items()):
            at = y + _SERIES_SPACING * (index - (len(group) - 1) / 2)
            colour = COLOURS[series.index(name)]
            parts.append(
                f'<path d="M{across(found.low):.1f} {at:.1f}H{across(found.high):.1f}" '
                f'stroke="{colour}" stroke-width="2" stroke-opacity=".6"/>'
                f'<circle cx="{across(found.value):.1f}" cy="{at:.1f}" r="4" fill="{colour}"/>'
            )
    return svg_document(title, left + _SVG_WIDTH + MARGIN_RIGHT, bottom + MARGIN_BOTTOM, parts)


def violin_plot_svg(title: str, counts: str, groups: Mapping[str, Mapping[str, Floats]]) -> str:
    """Plot a violin for each series of each group: density, quartiles and median.

    Series with the same name have the same colour. `counts` is the label of the y axis.
    """
    series = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [v for group in groups.values() for own in group.values() for v in own.tolist()]
    scale = nice_scale(values, MARGIN_TOP + _VIOLIN_PLOT_HEIGHT, MARGIN_TOP)
    widths = [max(_VIOLIN_WIDTH * len(g), LETTER_WIDTH * len(label)) for label, g in groups.items()]
    width = max(
        MARGIN_LEFT + sum(widths) + _GROUP_GAP * len(widths) + MARGIN_RIGHT,
        svg_legend_width([*series, title]),
    )
    parts = [*svg_legend(series), *svg_y_axis(scale, MARGIN_LEFT, width - MARGIN_RIGHT, counts)]
    x = MARGIN_LEFT + _GROUP_GAP / 2
    for (label, group), own in zip(groups.items(), widths, strict=True):
        first = x + own / 2 - _VIOLIN_WIDTH * (len(group) - 1) / 2
        for index, (name, some) in enumerate(group.items()):
            parts += _violin(
                first + index * _VIOLIN_WIDTH, some, scale, COLOURS[series.index(name)]
            )
        parts.append(
            svg_text(x + own / 2, MARGIN_TOP + _VIOLIN_PLOT_HEIGHT + 20, label, anchor="middle")
        )
        x += own + _GROUP_GAP
    return svg_document(title, width, MARGIN_TOP + _VIOLIN_PLOT_HEIGHT + MARGIN_BOTTOM, parts)


def kernel_density(values: Floats, at: Floats) -> Floats:
    """Return the density of values at each point: Gaussian kernels, Silverman's bandwidth."""
    quarters = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34
    spread = min(values.std(), quarters) or values.std()
    width = max(0.9 * spread * len(values) ** -0.2, 1e-3)
    kernels = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2)
    found: Floats = kernels.mean(1) / (width * np.sqrt(2 * np.pi))
    return found


def _violin(x: float, values: Floats, scale: Scale, colour: str) -> Iterator[str]:
    at = np.linspace(values.min(), values.max(), _DENSITY_POINTS)
    thick = kernel_density(values, at)
    half = thick / thick.max() * (_VIOLIN_WIDTH / 2 - 3)
    right = [f"{x + h:.1f} {scale(v):.1f}" for v, h in zip(at, half, strict=True)]
    left = [f"{x - h:.1f} {scale(v):.1f}" for v, h in zip(at[::-1], half[::-1], strict=True)]
    yield f'<path d="M{"L".join([*right, *left])}Z" fill="{colour}" fill-opacity=".55"/>'
    low, middle, high = (scale(v) for v in np.quantile(values, [0.25, 0.5, 0.75]))
    yield f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{INK}" stroke-width="1.5"/>'
    yield f'<path d="M{x - 7:.1f} {middle:.1f}h14" stroke="{INK}" stroke-width="2.5"/>'
