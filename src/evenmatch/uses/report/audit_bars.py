"""Biases with their intervals, drawn as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from evenmatch.uses.fair.audit_result import MEAN, Audit

_ROW, _PLOT, _TOP, _LETTER = 22, 380, 24, 7.2
_LONGEST = 44  # letters of a metric's name
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


@dataclass(frozen=True, slots=True)
class Bar:
    """A named number, with the ends of its interval where it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


def bars_part(audit: Audit) -> str:
    """A plot per attribute, and one of the means over them."""
    figures = [
        figure(
            attribute,
            [
                Bar(b.metric, b.bias, b.low, b.high)
                for b in audit.biases
                if b.attribute == attribute
            ],
        )
        for attribute in audit.attributes
    ]
    if len(audit.attributes) > 1:
        means = [Bar(row[0], float(row[-1])) for row in audit.grid()[1:]]
        figures.insert(0, figure(MEAN + " over attributes", means))
    return (
        "<section>\n<h2>Bias</h2>\n<p>How far the two candidates of a pair lie apart on average, "
        "where the scores of a set span 0 to 100; the thin line is the interval. Ranges differ "
        "between metrics, so read the raw differences below as well.</p>\n"
        '<div class="figures">\n' + "\n".join(figures) + "\n</div>\n</section>"
    )


def directions_part(audit: Audit) -> str:
    """Precision, recall and F of generation metrics side by side, where all three are there."""
    ends = ("-p", "-r", "-F"), ("_precision", "_recall", "")
    figures = []
    for attribute in audit.attributes:
        own = {b.metric: b for b in audit.biases if b.attribute == attribute}
        stems = {
            (name.removesuffix(kind[0]), kind)
            for name in own
            for kind in ends
            if name.endswith(kind[0])
        }
        for stem, kind in sorted(stems):
            found = [own.get(stem + end) for end in kind]
            if all(found):
                shown = [Bar(b.metric, b.bias, b.low, b.high) for b in found if b]
                figures.append(figure(f"{attribute}: {stem}", shown, ranked=False))
    if not figures:
        return ""
    return (
        "<section>\n<h2>Directions</h2>\n<p>The same model asked both ways: how likely the "
        "candidate is after the reference (precision), the other way round (recall), and "
        'their mean.</p>\n<div class="figures">\n' + "\n".join(figures) + "\n</div>\n</section>"
    )


def figure(caption: str, bars: Sequence[Bar], *, ranked: bool = True) -> str:
    """Bars with a caption, the fairest first unless their order means something."""
    shown = sorted(bars, key=lambda bar: bar.value) if ranked else list(bars)
    said = escape(caption)
    return (
        f'<figure><figcaption>{said}</figcaption>\n<div class="wide" role="region" '
        f'tabindex="0" aria-label="bias, {said}">{_svg(shown)}</div></figure>'
    )


def _svg(bars: Sequence[Bar]) -> str:
    names = [b.name if len(b.name) <= _LONGEST else b.name[: _LONGEST - 1] + "…" for b in bars]
    left = max(map(len, names)) * _LETTER + 12
    most = max([bar.high or bar.value for bar in bars] + [0.1])
    step = next((s for s in _STEPS if most / s <= 8), _STEPS[-1])
    wide, tall = left + _PLOT + 60, _TOP + _ROW * len(bars) + 8
    scale = _PLOT / most
    parts = []
    for tick in range(int(most / step) + 1):
        x = round(left + tick * step * scale, 1)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP - 4}" y2="{tall - 4}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{_TOP - 9}">{tick * step:g}</text>')
    for row, (bar, name) in enumerate(zip(bars, names, strict=True)):
        parts.append(_bar(bar, name, _TOP + _ROW * row, left, scale))
    return (
        f'<svg role="img" width="{wide:.0f}" height="{tall}" viewBox="0 0 {wide:.0f} {tall}">'
        + "".join(parts)
        + "</svg>"
    )


def _bar(bar: Bar, name: str, y: float, left: float, scale: float) -> str:
    interval = ""
    if bar.low is not None and bar.high is not None:
        ends = (round(left + end * scale, 1) for end in (bar.low, bar.high))
        x1, x2 = ends
        interval = f'<line class="bound" x1="{x1}" x2="{x2}" y1="{y + 11}" y2="{y + 11}"/>'
    return (
        f"<g><title>{escape(bar.name)}: {bar.value:.2f}</title>"
        f'<text class="name" x="{left - 8:.1f}" y="{y + 15}">{escape(name)}</text>'
        f'<rect class="bar" x="{left:.1f}" y="{y + 4}" '
        f'width="{bar.value * scale:.1f}" height="14"/>'
        f'{interval}<text x="{left + _PLOT + 12:.1f}" y="{y + 15}">{bar.value:.2f}</text></g>'
    )
