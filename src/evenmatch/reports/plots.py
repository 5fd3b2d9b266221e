"""Plots as SVG, without a plotting library.

Coordinates are percentages, so that a plot fills the width of a page while text keeps its size.
`Plot.figure` puts it into a report page; `Plot.svg_file` makes a file of a fixed size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

import numpy as np

from evenmatch.reports.page import read_resource, section
from evenmatch.stats.bootstrap import Interval
from evenmatch.stats.panel import Floats

_ROW_HEIGHT, _TICKS_HEIGHT = 40, 26  # pixels
_NAME_HEIGHT, _SERIES_HEIGHT = 22, 10
_PLOT_HEIGHT, _VIOLIN_PLOT_HEIGHT = 220, 260
_FILE_WIDTH = 560  # of the plot area
_FILE_TOP, _FILE_BOTTOM, _FILE_LEFT, _FILE_RIGHT = 76, 50, 62, 18  # pixels around it
_LETTER_WIDTH = 6.7  # average, in pixels
_VIOLIN_WIDTH, _GROUP_GAP = 46, 26  # pixels in a file
_MIN_SPAN = 0.02  # smallest range of an axis
_COLOUR_COUNT = 7  # number of colours in plots.css
_STEPS = (1, 2, 2.5, 5, 10)
_DENSITY_POINTS = 80
_MAX_DOTS = 30  # lines with more points have no dots

# Colours of a file, which has a white background; pages set them in page.css.
_FILE_COLOURS = {"ink": "#212529", "quiet": "#5c636a", "line": "#dee2e6", "mark": "#0b5ca8"}
_FILE_COLOURS |= {"paper": "#fff"}

# Draws paths in a square of 100 by 100 that is stretched to the plot area.
_STRETCHED = (
    '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%" '
    'overflow="visible">'
)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: its kind (a class in plots.css), height, shapes, description, and named series."""

    kind: str
    height: float
    shapes: str
    label: str
    series: tuple[str, ...] = ()
    file_width: float = _FILE_WIDTH

    def figure(self, caption: str) -> str:
        """Return the plot for a page that has the style, with a legend for several series."""
        items = "".join(
            f'<li><span class="{_colour(n)}"></span>{escape(name)}</li>'
            for n, name in enumerate(self.series)
        )
        legend = f'<ul class="key">{items}</ul>' if len(self.series) > 1 else ""
        return (
            f'<figure class="fluid"><figcaption>{escape(caption)}</figcaption>\n'
            f'{legend}<div class="field {self.kind}"><svg role="img" '
            f'aria-label="{escape(self.label, quote=True)}" width="100%" '
            f'height="{self.height:.0f}">{self.shapes}</svg></div></figure>'
        )

    def svg_file(self, title: str) -> str:
        """Return a complete SVG with a title, to be saved as a file or embedded in a page."""
        legend, x = "", float(_FILE_LEFT)
        for n, name in enumerate(self.series if len(self.series) > 1 else ()):
            legend += (
                f'<rect class="{_colour(n)}" x="{x:.1f}" y="33" width="11" height="11" '
                f'fill="currentColor"/><text x="{x + 16:.1f}" y="43">{escape(name)}</text>'
            )
            x += 34 + _LETTER_WIDTH * len(name)
        plot = max(self.file_width, x - _FILE_LEFT, 1.2 * _LETTER_WIDTH * len(title))
        width = _FILE_LEFT + plot + _FILE_RIGHT
        height = _FILE_TOP + self.height + _FILE_BOTTOM
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="system-ui, sans-serif" font-size="12">'
            f"<title>{escape(title)}</title><style>{_file_style()}</style>"
            '<rect width="100%" height="100%" fill="#fff"/>'
            f'<text x="{_FILE_LEFT}" y="20" font-size="14" font-weight="600">{escape(title)}</text>'
            f'{legend}<svg class="field {self.kind}" x="{_FILE_LEFT}" y="{_FILE_TOP}" '
            f'width="{plot:.0f}" height="{self.height:.0f}" overflow="visible">{self.shapes}</svg>'
            "</svg>\n"
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A named value with its confidence interval, if it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def estimate_plot(estimates: Sequence[Estimate], *, bars: bool = False, digits: int = 3) -> Plot:
    """Plot a row per estimate: name and value, below them a point or a bar with the interval."""
    values = [v for e in estimates for v in (e.value, e.low, e.high) if v is not None]
    scale = nice_scale(_pad_range([*values, 0.0] if bars else values), 0, 100, most=6)
    height = _TICKS_HEIGHT + _ROW_HEIGHT * len(estimates)
    rows = (
        _estimate_row(estimate, scale, _TICKS_HEIGHT + _ROW_HEIGHT * n, bars=bars, digits=digits)
        for n, estimate in enumerate(estimates)
    )
    label = "; ".join(f"{estimate.name} {estimate.value:.{digits}f}" for estimate in estimates)
    frame = _top_ticks(scale, height, zero=not bars)
    return Plot("rows", height, "".join([*frame, *rows]), label)


def interval_plot(axis: str, groups: Mapping[str, Mapping[str, Interval]]) -> Plot:
    """Plot a row per group with the interval of each series; `axis` is the label of the x axis."""
    series = _series_names(groups)
    bounds = [v for g in groups.values() for i in g.values() for v in (i.low, i.value, i.high)]
    scale = nice_scale(_pad_range(bounds), 0, 100)
    shapes, y = [], float(_TICKS_HEIGHT)
    for label, group in groups.items():
        shapes.append(f'<text class="name" x="0" y="{y + 12}">{escape(label)}</text>')
        y += _NAME_HEIGHT
        for name, found in group.items():
            shapes.append(
                f'<g class="{_colour(series.index(name))}">'
                f'<line class="interval" {_x_range(scale, found.low, found.high)} '
                f'y1="{y}" y2="{y}"/>'
                f'<circle class="point" cx="{scale(found.value):.2f}%" cy="{y}" r="4"/></g>'
            )
            y += _SERIES_HEIGHT
    frame = [*_top_ticks(scale, y, zero=True)]
    frame.append(f'<text class="tick" x="50%" y="{y}" dy="20">{escape(axis)}</text>')
    label = f"{axis}: intervals of {', '.join(groups)}"
    return Plot("rows", y, "".join([*frame, *shapes]), label, series)


def line_plot(
    axes: tuple[str, str],
    lines: Mapping[str, Sequence[tuple[float, float]]],
    *,
    from_zero: bool = False,
) -> Plot:
    """Plot lines; `axes` are the labels of the x and the y axis."""
    points = [point for line in lines.values() for point in line]
    heights = [y for _, y in points]
    across = nice_scale([x for x, _ in points], 0, 100, most=6)
    if across.step < 1 and all(isinstance(x, int) for x, _ in points):  # such as steps
        across = Scale(across.low, across.high, 0, 100, 1)
    up = nice_scale([0, *heights] if from_zero else _pad_range(heights), 100, 0, most=6)
    shapes = [*_x_axis(across, axes[0]), *_y_axis(up, axes[1])]
    for n, (name, line) in enumerate(lines.items()):
        path = "L".join(f"{across(x):.2f} {up(y):.2f}" for x, y in line)
        shapes.append(f'{_STRETCHED}<path class="{_colour(n)}" d="M{path}"/></svg>')
        shapes += [
            f'<circle class="{_colour(n)}" cx="{across(x):.2f}%" cy="{up(y):.2f}%" r="3">'
            f"<title>{escape(name)}, {escape(axes[0])} {x:g}: {y:.4g}</title></circle>"
            for x, y in (line if len(line) <= _MAX_DOTS else ())
        ]
    label = f"{axes[1]} by {axes[0]}, {len(lines)} lines"
    return Plot("curves", _PLOT_HEIGHT, "".join(shapes), label, tuple(lines))


def line_plot_svg(
    title: str, axes: tuple[str, str], lines: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Return the file of a line plot whose y axis includes 0."""
    return line_plot(axes, lines, from_zero=True).svg_file(title)


def histogram(axes: tuple[str, str], counts: Sequence[int], low: float, high: float) -> Plot:
    """Plot a histogram with equal bins from `low` to `high`; `axes` are the axis labels."""
    across = nice_scale([low, high], 0, 100, most=6)
    up = nice_scale([0, max(counts)], 100, 0, most=5)
    if up.step < 1:  # counts are integers
        up = Scale(0, max(counts), 100, 0, 1)
    edges = [across(x) for x in np.linspace(low, high, len(counts) + 1)]
    bars = [
        f'<rect class="bar" x="{left + 0.2:.2f}%" width="{right - left - 0.4:.2f}%" '
        f'y="{up(count):.2f}%" height="{100 - up(count):.2f}%"><title>{count}</title></rect>'
        for left, right, count in zip(edges, edges[1:], counts, strict=False)
        if count
    ]
    label = f"{axes[1]} by {axes[0]}: {', '.join(map(str, counts))}"
    shapes = [*_x_axis(across, axes[0]), *_y_axis(up, axes[1]), *bars]
    return Plot("bars", _PLOT_HEIGHT * 3 // 4, "".join(shapes), label)


def violin_plot(axis: str, groups: Mapping[str, Mapping[str, Floats]]) -> Plot:
    """Plot a violin for each series of each group: density, quartiles and median.

    `axis` is the label of the y axis.
    """
    series = _series_names(groups)
    values = [v for group in groups.values() for own in group.values() for v in own.tolist()]
    scale = nice_scale(values, 100, 0)
    widths = [
        max(_VIOLIN_WIDTH * len(g), _LETTER_WIDTH * len(label)) + _GROUP_GAP
        for label, g in groups.items()
    ]
    pixel = 100 / sum(widths)
    shapes, left = [*_y_axis(scale, axis)], 0.0
    for (label, group), width in zip(groups.items(), widths, strict=True):
        middle = left + width / 2
        for index, (name, own) in enumerate(group.items()):
            x = middle + _VIOLIN_WIDTH * (index - (len(group) - 1) / 2)
            shapes += _violin(x * pixel, own, scale, pixel, _colour(series.index(name)))
        shapes.append(
            f'<text class="tick" x="{middle * pixel:.2f}%" y="100%" dy="20">{escape(label)}</text>'
        )
        left += width
    label = f"{axis}: distributions of {', '.join(groups)}"
    return Plot("violins", _VIOLIN_PLOT_HEIGHT, "".join(shapes), label, series, sum(widths))


def figures_section(heading: str, text: str, figures: Sequence[str]) -> str:
    """Return a section with plots side by side; '' if there are none."""
    return section(heading, text, figure_grid(figures))


def figure_grid(figures: Sequence[str]) -> str:
    """Return plots side by side; '' if there are none."""
    return '<div class="figures even">\n' + "\n".join(figures) + "\n</div>" if figures else ""


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


def tick_label(value: float, step: float) -> str:
    """Return a tick as text, with as many decimals as the step needs.

    >>> tick_label(0.30000000000000004, 0.1), tick_label(0.25, 0.25)
    ('0.3', '0.25')
    """
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if not math.isclose(step * 10**digits, round(step * 10**digits)):
        digits += 1
    return f"{value + 0.0:.{digits}f}"


def kernel_density(values: Floats, at: Floats) -> Floats:
    """Return the density of values at each point: Gaussian kernels, Silverman's bandwidth."""
    quarters = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.34
    spread = min(values.std(), quarters) or values.std()
    width = max(0.9 * spread * len(values) ** -0.2, 1e-3)
    kernels = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2)
    found: Floats = kernels.mean(1) / (width * np.sqrt(2 * np.pi))
    return found


@cache
def _file_style() -> str:
    # Programs other than browsers often do not know CSS variables.
    rules = re.sub(r"var\(--(\w+)\)", lambda m: _FILE_COLOURS[m[1]], read_resource("plots.css"))
    return f"text {{ fill: {_FILE_COLOURS['ink']}; }}\n{rules}"


def _colour(number: int) -> str:
    """Return the classes of a series; with more series than colours, lines are dashed."""
    colour, dashes = number % _COLOUR_COUNT, min(number // _COLOUR_COUNT, 2)
    return f"c{colour} d{dashes}" if dashes else f"c{colour}"


def _series_names(groups: Mapping[str, Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups.values() for name in group))


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


def _violin(x: float, values: Floats, scale: Scale, pixel: float, colour: str) -> Iterator[str]:
    """Yield a violin centred at `x`; all widths are percentages."""
    at = np.linspace(values.min(), values.max(), _DENSITY_POINTS)
    thick = kernel_density(values, at)
    half = thick / thick.max() * (_VIOLIN_WIDTH / 2 - 3) * pixel
    right = [f"{x + h:.2f} {scale(v):.2f}" for v, h in zip(at, half, strict=True)]
    left = [f"{x - h:.2f} {scale(v):.2f}" for v, h in zip(at[::-1], half[::-1], strict=True)]
    yield f'{_STRETCHED}<path class="{colour}" d="M{"L".join([*right, *left])}Z"/></svg>'
    low, middle, high = (f"{scale(v):.2f}%" for v in np.quantile(values, [0.25, 0.5, 0.75]))
    ends = f'x1="{x - 7 * pixel:.2f}%" x2="{x + 7 * pixel:.2f}%"'
    yield f'<line class="quartiles" x1="{x:.2f}%" x2="{x:.2f}%" y1="{low}" y2="{high}"/>'
    yield f'<line class="median" {ends} y1="{middle}" y2="{middle}"/>'


def _pad_range(values: Sequence[float]) -> list[float]:
    """Return the values, widened to a minimum range so that small differences look small."""
    low, high = min(values), max(values)
    if high - low >= _MIN_SPAN:
        return list(values)
    wider = max(0.0, low - _MIN_SPAN / 2) if low >= 0 else low - _MIN_SPAN / 2
    return [*values, wider, high + _MIN_SPAN / 2]


def _x_range(scale: Scale, start: float, end: float) -> str:
    return f'x1="{scale(start):.2f}%" x2="{scale(end):.2f}%"'


def _top_ticks(scale: Scale, height: float, *, zero: bool) -> Iterator[str]:
    rows = f'y1="{_TICKS_HEIGHT - 6}" y2="{height}"'
    for tick in scale.ticks:
        yield f'<line class="grid" {_x_range(scale, tick, tick)} {rows}/>'
        label = tick_label(tick, scale.step)
        yield f'<text class="tick" x="{scale(tick):.2f}%" y="{_TICKS_HEIGHT - 11}">{label}</text>'
    if zero and scale.low < 0 < scale.high:
        yield f'<line class="zero" {_x_range(scale, 0, 0)} {rows}/>'


def _x_axis(scale: Scale, name: str) -> Iterator[str]:
    for tick in scale.ticks:
        yield f'<line class="grid" {_x_range(scale, tick, tick)} y1="0" y2="100%"/>'
        label = tick_label(tick, scale.step)
        yield f'<text class="tick" x="{scale(tick):.2f}%" y="100%" dy="16">{label}</text>'
    yield f'<text class="tick" x="50%" y="100%" dy="34">{escape(name)}</text>'


def _y_axis(scale: Scale, name: str) -> Iterator[str]:
    for tick in scale.ticks:
        y = f"{scale(tick):.2f}%"
        yield f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        yield f'<text class="name" x="-6" y="{y}" dy="4">{tick_label(tick, scale.step)}</text>'
    yield f'<text class="above" x="-40" y="-10">{escape(name)}</text>'
