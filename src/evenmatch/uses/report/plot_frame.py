"""What plots drawn by hand share: round scales, axes, a key, the picture around them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

INK, QUIET, LINE = "#212529", "#5c636a", "#dee2e6"
COLOURS = ("#0b5ca8", "#e8590c", "#2b8a3e", "#862e9c", "#868e96", "#b08900", "#0c8599")
TOP, BOTTOM, LEFT, RIGHT = 58, 50, 62, 18  # room around the field, for words
LETTER = 6.7  # the width of one, on average
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers to places: `low` lies at `start`, `high` at `end`."""

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
        """The round numbers on it."""
        count = round((self.high - self.low) / self.step)
        return [self.low + i * self.step for i in range(count + 1)]


def scale_of(values: Iterable[float], start: float, end: float, most: int = 8) -> Scale:
    """A scale around all values that begins and ends on round numbers.

    >>> scale_of([0.13, 0.86], 0, 100).ticks[:3]
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


def picture(title: str, width: float, height: float, parts: Iterable[str]) -> str:
    """A whole SVG: a file of its own, or a part of a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="12">'
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
        + text(LEFT, 20, title, size=14, weight="600")
        + "".join(parts)
        + "</svg>\n"
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    colour: str = INK,
    size: float = 12,
    weight: str = "normal",
) -> str:
    """One line of words."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size:g}" font-weight="{weight}">{escape(words)}</text>'
    )


def upward(scale: Scale, left: float, right: float, name: str) -> Iterator[str]:
    """Lines across the field with their numbers at the left, and what they count."""
    for tick in scale.ticks:
        y = scale(tick)
        yield f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="{LINE}"/>'
        yield text(
            left - 6, y + 4, tick_label(tick, scale.step), anchor="end", colour=QUIET, size=11
        )
    middle = (scale.start + scale.end) / 2
    yield (
        f'<text transform="translate(14 {middle:.1f}) rotate(-90)" text-anchor="middle" '
        f'fill="{QUIET}">{escape(name)}</text>'
    )


def along(scale: Scale, top: float, bottom: float, name: str) -> Iterator[str]:
    """Lines down the field with their numbers below, and what they count."""
    for tick in scale.ticks:
        x = scale(tick)
        yield f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="{LINE}"/>'
        number = tick_label(tick, scale.step)
        yield text(x, bottom + 16, number, anchor="middle", colour=QUIET, size=11)
    middle = (scale.start + scale.end) / 2
    yield text(middle, bottom + 36, name, anchor="middle", colour=QUIET)


def key(names: Sequence[str]) -> Iterator[str]:
    """The series by colour, in a line below the title; nothing where there is only one."""
    x = float(LEFT)
    for name, colour in zip(names, COLOURS, strict=False) if len(names) > 1 else ():
        yield f'<rect x="{x:.1f}" y="33" width="11" height="11" fill="{colour}"/>'
        yield text(x + 16, 43, name, colour=QUIET)
        x += 34 + LETTER * len(name)


def key_width(names: Sequence[str]) -> float:
    """How wide a picture must be for its key."""
    return LEFT + sum(34 + LETTER * len(name) for name in names)


def tick_label(value: float, step: float) -> str:
    """A number on a scale, with as many decimals as its steps need.

    >>> tick_label(0.30000000000000004, 0.1), tick_label(0.25, 0.25)
    ('0.3', '0.25')
    """
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if not math.isclose(step * 10**digits, round(step * 10**digits)):
        digits += 1
    return f"{value + 0.0:.{digits}f}"
