"""Plots as wide as there is room: places in shares of the field, letters never scaled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from evenmatch.uses.report.plot_frame import Scale, scale_of, tick_label
from evenmatch.uses.report.whole_page import section

_ROW, _TOP = 40, 26  # pixels
_HIGH = 220
_LEAST = 0.02  # of what a scale spans
_COLOURS = 7  # as many as page.css has


@dataclass(frozen=True, slots=True)
class Mark:
    """A named number, with the ends of its interval where it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> tuple[float, ...]:
        """All of its numbers that there are."""
        return tuple(v for v in (self.value, self.low, self.high) if v is not None)


def mark_rows(marks: Sequence[Mark], *, bars: bool = False, digits: int = 3) -> str:
    """A line per mark: its name and number, below them a point or a bar and the interval."""
    values = [bound for mark in marks for bound in mark.bounds]
    scale = scale_of(_roomy([*values, 0.0] if bars else values), 0, 100, most=6)
    tall = _TOP + _ROW * len(marks)
    zero = ""
    if not bars and scale.low < 0 < scale.high:
        zero = f'<line class="zero" {_across(scale, 0, 0)} y1="{_TOP - 6}" y2="{tall}"/>'
    rows = (
        _row(mark, scale, _TOP + _ROW * n, bars=bars, digits=digits) for n, mark in enumerate(marks)
    )
    said = "; ".join(f"{mark.name} {mark.value:.{digits}f}" for mark in marks)
    return _field(tall, [*_ticks(scale, tall), zero, *rows], "rows", said)


def curve_field(axes: tuple[str, str], lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Points joined by lines, with a key; `axes` say what goes to the right and what up."""
    points = [point for line in lines.values() for point in line]
    across = scale_of([x for x, _ in points], 0, 100, most=6)
    up = scale_of(_roomy([y for _, y in points]), 100, 0, most=6)
    drawn = []
    for n, (name, line) in enumerate(lines.items()):
        path = "L".join(f"{across(x):.2f} {up(y):.2f}" for x, y in line)
        dots = "".join(
            f'<circle class="c{n % _COLOURS}" cx="{across(x):.2f}%" cy="{up(y):.2f}%" r="3">'
            f"<title>{escape(name)}, {axes[0]} {x:g}: {y:.4g}</title></circle>"
            for x, y in line
        )
        drawn.append(
            '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">'
            f'<path class="c{n % _COLOURS}" d="M{path}"/></svg>{dots}'
        )
    frame = [*_below(across, axes[0]), *_beside(up, axes[1])]
    said = f"{axes[1]} by {axes[0]}, {len(lines)} lines"
    return _key(list(lines)) + _field(_HIGH, [*frame, *drawn], "curves", said)


def bar_field(axes: tuple[str, str], counts: Sequence[int], low: float, high: float) -> str:
    """How many values fall into each of the equal stretches from `low` to `high`."""
    across = Scale(low, high, 0, 100, (high - low) / 5)
    up = scale_of([0, max(counts)], 100, 0, most=5)
    if up.step < 1:  # there is no half a pair
        up = Scale(0, max(counts), 100, 0, 1)
    wide = 100 / len(counts)
    drawn = [
        f'<rect class="bar" x="{n * wide + 0.3:.2f}%" width="{wide - 0.6:.2f}%" '
        f'y="{up(count):.2f}%" height="{100 - up(count):.2f}%"><title>{count}</title></rect>'
        for n, count in enumerate(counts)
        if count
    ]
    frame = [*_below(across, axes[0]), *_beside(up, axes[1])]
    said = f"{axes[1]} by {axes[0]}: {', '.join(map(str, counts))}"
    return _field(_HIGH * 3 // 4, [*frame, *drawn], "bars", said)


def captioned(caption: str, drawn: str) -> str:
    """A plot with its caption above it."""
    return f'<figure class="fluid"><figcaption>{escape(caption)}</figcaption>\n{drawn}</figure>'


def figures_part(heading: str, said: str, figures: Sequence[str]) -> str:
    """Plots side by side where there is room; nothing without any."""
    inside = '<div class="figures even">\n' + "\n".join(figures) + "\n</div>"
    return section(heading, said, inside if figures else "")


def _field(tall: float, parts: Iterable[str], kind: str, said: str) -> str:
    return (
        f'<div class="field {kind}"><svg role="img" aria-label="{escape(said, quote=True)}" '
        f'width="100%" height="{tall:.0f}">' + "".join(parts) + "</svg></div>"
    )


def _row(mark: Mark, scale: Scale, y: float, *, bars: bool, digits: int) -> str:
    middle, interval = y + 27, ""
    if mark.low is not None and mark.high is not None:
        place = _across(scale, mark.low, mark.high)
        interval = f'<line class="interval" {place} y1="{middle}" y2="{middle}"/>'
    start = scale(0) if bars else 0.0
    point = (
        f'<rect class="bar" x="{start:.2f}%" y="{middle - 6}" '
        f'width="{max(scale(mark.value) - start, 0):.2f}%" height="12" rx="2"/>'
        if bars
        else f'<circle class="point" cx="{scale(mark.value):.2f}%" cy="{middle}" r="5"/>'
    )
    both = point + interval if bars else interval + point
    return (
        f'<g><text class="name" x="0" y="{y + 12}">{escape(mark.name)}</text>'
        f'<text class="value" x="100%" y="{y + 12}">{mark.value:.{digits}f}</text>{both}</g>'
    )


def _roomy(values: Sequence[float]) -> list[float]:
    """The values, and more around them where they are so close that a scale would exaggerate."""
    low, high = min(values), max(values)
    if high - low >= _LEAST:
        return list(values)
    wider = max(0.0, low - _LEAST / 2) if low >= 0 else low - _LEAST / 2
    return [*values, wider, high + _LEAST / 2]


def _across(scale: Scale, start: float, end: float) -> str:
    return f'x1="{scale(start):.2f}%" x2="{scale(end):.2f}%"'


def _ticks(scale: Scale, tall: float) -> Iterator[str]:
    for tick in scale.ticks:
        yield f'<line class="grid" {_across(scale, tick, tick)} y1="{_TOP - 6}" y2="{tall}"/>'
        label = tick_label(tick, scale.step)
        yield f'<text class="tick" x="{scale(tick):.2f}%" y="{_TOP - 11}">{label}</text>'


def _below(scale: Scale, name: str) -> Iterator[str]:
    for tick in scale.ticks:
        yield f'<line class="grid" {_across(scale, tick, tick)} y1="0" y2="100%"/>'
        label = tick_label(tick, scale.step)
        yield f'<text class="tick" x="{scale(tick):.2f}%" y="100%" dy="16">{label}</text>'
    yield f'<text class="tick" x="50%" y="100%" dy="34">{escape(name)}</text>'


def _beside(scale: Scale, name: str) -> Iterator[str]:
    for tick in scale.ticks:
        y = f"{scale(tick):.2f}%"
        yield f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        yield f'<text class="name" x="-6" y="{y}" dy="4">{tick_label(tick, scale.step)}</text>'
    yield f'<text class="above" x="-40" y="-10">{escape(name)}</text>'


def _key(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    items = "".join(
        f'<li><span class="c{n % _COLOURS}"></span>{escape(name)}</li>'
        for n, name in enumerate(names)
    )
    return f'<ul class="key">{items}</ul>'
