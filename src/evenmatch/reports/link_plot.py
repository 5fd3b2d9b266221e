"""Plot of the links between the words of two sentences, drawn by several hands, as SVG."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from evenmatch.viewer.links import text_width, unit_label

_FONT_SIZE = 13.0
_GAP, _LEFT, _TOP = 12.0, 16.0, 30.0
_HEIGHT = 92.0  # from the upper to the lower row of words
_PANEL = _HEIGHT + 62.0
_AGREED, _EXTRA, _MISSED = "#0b5ca8", "#e8590c", "#adb5bd"


def link_plot(
    title: str,
    above: Sequence[str],
    below: Sequence[str],
    human: Collection[tuple[int, int]],
    panels: Mapping[str, Collection[tuple[int, int]]],
) -> str:
    """Return an SVG file: the human links, then a panel for the links of each name.

    Links that people drew too are blue, other links orange, and missed links dashed grey.
    """
    places = [_middles(words) for words in (above, below)]
    drawn = {"people": human, **panels}
    width = max(600.0, *(row[-1] + 60 for row in places if row))
    height = 34 + _PANEL * len(drawn)
    body = ""
    for number, (name, links) in enumerate(drawn.items()):
        missed = sorted(set(human) - set(links))
        lines = [_line(places, link, _MISSED, ' stroke-dasharray="4 4"') for link in missed]
        lines += [_line(places, k, _AGREED if k in human else _EXTRA) for k in sorted(links)]
        words = "".join(
            f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{escape(unit_label(word))}</text>'
            for row, side, y in zip((above, below), places, (_TOP, _TOP + _HEIGHT), strict=True)
            for word, x in zip(row, side, strict=True)
        )
        body += (
            f'<g transform="translate(0 {34 + _PANEL * number:.0f})">'
            f'<text x="{_LEFT}" y="8" font-weight="600">{escape(name)}</text>'
            f"{''.join(lines)}{words}</g>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="{_FONT_SIZE:.0f}" fill="#212529">'
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="600">{escape(title)}</text>'
        f"{body}</svg>\n"
    )


def _middles(words: Sequence[str]) -> list[float]:
    """Return the centre of each word in its row."""
    found, left = [], _LEFT
    for word in words:
        width = _FONT_SIZE * text_width(unit_label(word))
        found.append(left + width / 2)
        left += width + _GAP
    return found


def _line(
    places: Sequence[Sequence[float]], link: tuple[int, int], colour: str, more: str = ""
) -> str:
    x, y = places[0][link[0]], places[1][link[1]]
    return (
        f'<line x1="{x:.1f}" y1="{_TOP + 6}" x2="{y:.1f}" y2="{_TOP + _HEIGHT - 15}" '
        f'stroke="{colour}" stroke-width="1.8"{more}/>'
    )
