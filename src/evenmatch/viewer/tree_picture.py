"""Two trees side by side, the aligned pieces joined, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from evenmatch.viewer.labels import printable, width
from evenmatch.viewer.tree_layout import FONT, Link, Place, TreePair

_INK, _QUIET, _LINE, _PAIR = "#212529", "#5c636a", "#adb5bd", "#e8590c"
_HIGH = 22.0
CAPTION = (
    "The candidate's tree on the left, the reference's on the right. A line joins two nodes when "
    "pieces with these on top are paired: broader for more pieces, fainter for a lower similarity. "
    "A dashed node has no partner at all."
)


def tree_file(pair: TreePair, title: str) -> str:
    """A file of its own, with colours that need no page around them."""
    style = (
        f"<style>text{{font:{FONT:.0f}px monospace;text-anchor:middle;fill:{_INK}}}"
        f".side,.word{{fill:{_QUIET}}}.side{{text-anchor:start}}.edge{{stroke:{_LINE}}}"
        f".joint{{fill:none;stroke:{_PAIR};stroke-linecap:round}}rect{{fill:#fff;stroke:{_LINE}}}"
        ".alone rect{stroke-dasharray:3 3}.alone text{font-style:italic}</style>"
    )
    page = f'<rect width="100%" height="100%" style="stroke:none"/>{style}'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _svg(pair, title, page) + "\n"


def tree_part(pair: TreePair) -> str:
    """The picture inside a page that brings the style."""
    return _svg(pair, _said(pair), "")


def _svg(pair: TreePair, title: str, before: str) -> str:
    joined = {link.start for link in pair.links}, {link.end for link in pair.links}
    middle = min((p.x for p in pair.reference), default=pair.wide / 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'class="trees" width="{pair.wide:.0f}" height="{pair.high:.0f}" '
        f'viewBox="0 0 {pair.wide:.0f} {pair.high:.0f}">{before}'
        '<text class="side" x="10" y="16">candidate</text>'
        f'<text class="side" x="{middle - 20:.0f}" y="16">reference</text>'
        f"{_edges(pair.candidate)}{_edges(pair.reference)}"
        f"{''.join(_link(link, pair) for link in pair.links)}"
        f"{_nodes(pair.candidate, joined[0])}{_nodes(pair.reference, joined[1])}</svg>"
    )


def _edges(places: Sequence[Place]) -> str:
    return "".join(
        f'<line class="edge" x1="{places[p.parent].x:.1f}" y1="{places[p.parent].y + _HIGH / 2}" '
        f'x2="{p.x:.1f}" y2="{p.y - _HIGH / 2}"/>'
        for p in places
        if p.parent >= 0
    )


def _link(link: Link, pair: TreePair) -> str:
    a, b = pair.candidate[link.start], pair.reference[link.end]
    bend = (b.x - a.x) / 3
    said = "; ".join(f"{printable(x)} – {printable(y)}: {s:.2f}" for x, y, s in link.pieces)
    return (
        f'<path class="joint" d="M{a.x:.1f} {a.y}C{a.x + bend:.1f} {a.y - 30:.1f} '
        f'{b.x - bend:.1f} {b.y - 30:.1f} {b.x:.1f} {b.y}" '
        f'stroke-width="{min(0.8 + 0.5 * len(link.pieces), 4.0):.2f}" '
        f'opacity="{0.15 + 0.75 * min(link.similarity, 1.0) ** 2:.2f}">'
        f"<title>{escape(said)}</title></path>"
    )


def _nodes(places: Sequence[Place], joined: set[int]) -> str:
    return "".join(_node(place, n in joined) for n, place in enumerate(places))


def _node(place: Place, joined: bool) -> str:
    wide = FONT * width(place.text) + 10
    group = "" if joined else ' class="alone"'
    under = (
        f'<text class="word" x="{place.x:.1f}" y="{place.y + 28}">{escape(place.under)}</text>'
        if place.under
        else ""
    )
    return (
        f'<g{group}><rect x="{place.x - wide / 2:.1f}" '
        f'y="{place.y - _HIGH / 2}" width="{wide:.1f}" height="{_HIGH}" rx="4"/>'
        f'<text x="{place.x:.1f}" y="{place.y + 5}">{escape(place.text)}</text>{under}</g>'
    )


def _said(pair: TreePair) -> str:
    counts = len(pair.candidate), len(pair.reference), len(pair.links)
    return "a tree of {} nodes and one of {}, with {} links between them".format(*counts)
