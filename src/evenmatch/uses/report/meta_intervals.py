"""Agreements with their intervals, drawn as points on lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from evenmatch.uses.meta.agreement_result import AVERAGE, Agreement, Entry, short

_ROW, _PLOT, _TOP, _LETTER = 22, 380, 24, 7.2
_LONGEST = 44  # letters of a metric's name


def intervals_part(agreement: Agreement) -> str:
    """A plot per set, averages in front."""
    sets: dict[tuple[str, str], list[Entry]] = {}
    for entry in agreement.entries:
        sets.setdefault((entry.data, entry.subset), []).append(entry)
    front = sorted(sets, key=lambda key: key[1] != AVERAGE)
    figures = [_figure(key, sets[key]) for key in front]
    return (
        "<section>\n<h2>Intervals</h2>\n<p>A point is the agreement, its line the interval.</p>\n"
        '<div class="figures">\n' + "\n".join(figures) + "\n</div>\n</section>"
    )


def _figure(key: tuple[str, str], entries: Sequence[Entry]) -> str:
    shown = [entry for entry in entries if not math.isnan(entry.value)]
    shown.sort(key=lambda entry: -entry.value)
    caption = escape(" · ".join(filter(None, key)))
    if not shown:
        return f"<figure><figcaption>{caption}: no correlation</figcaption></figure>"
    return (
        f'<figure><figcaption>{caption}</figcaption>\n<div class="wide" role="region" '
        f'tabindex="0" aria-label="intervals, {caption}">{_svg(shown)}</div></figure>'
    )


def _svg(entries: Sequence[Entry]) -> str:
    names = [_shortened(entry.metric) for entry in entries]
    left = max(map(len, names)) * _LETTER + 12
    low, high, step = _scale(entries)
    wide, tall = left + _PLOT + 60, _TOP + _ROW * len(entries) + 8

    def across(value: float) -> float:
        return round(left + (value - low) / (high - low) * _PLOT, 1)

    parts = []
    for tick in range(round(low / step), round(high / step) + 1):
        x = across(tick * step)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP - 4}" y2="{tall - 4}"/>')
        label = f"{tick * step:.{0 if step >= 1 else 1 if step >= 0.1 else 2}f}"
        parts.append(f'<text class="tick" x="{x}" y="{_TOP - 9}">{label}</text>')
    for row, (entry, name) in enumerate(zip(entries, names, strict=True)):
        y = _TOP + _ROW * row + _ROW / 2
        parts.append(_line(entry, name, y, left, across))
    return (
        f'<svg role="img" width="{wide:.0f}" height="{tall}" viewBox="0 0 {wide:.0f} {tall}">'
        + "".join(parts)
        + "</svg>"
    )


def _line(entry: Entry, name: str, y: float, left: float, place: Callable[[float], float]) -> str:
    x = place(entry.value)
    said = escape(f"{entry.metric}: {short(entry.low)} to {short(entry.high)}")
    line = ""
    if not math.isnan(entry.low + entry.high):
        ends = place(entry.low), place(entry.high)
        line = f'<line class="interval" x1="{ends[0]}" x2="{ends[1]}" y1="{y}" y2="{y}"/>'
    return (
        f"<g><title>{said}</title>"
        f'<text class="name" x="{left - 8:.1f}" y="{y + 4}">{escape(name)}</text>{line}'
        f'<circle class="point" cx="{x}" cy="{y}" r="4.5"/>'
        f'<text x="{left + _PLOT + 12:.1f}" y="{y + 4}">{short(entry.value)}</text></g>'
    )


def _scale(entries: Sequence[Entry]) -> tuple[float, float, float]:
    """The ends of the scale and the step of its ticks, round numbers around all bounds."""
    known = [v for e in entries for v in (e.value, e.low, e.high) if not math.isnan(v)]
    spread = max(max(known) - min(known), 0.02)
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if spread / s <= 8)
    return math.floor(min(known) / step) * step, math.ceil(max(known) / step + 1e-9) * step, step


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
