"""Two parse trees side by side, with links between aligned subtrees, as SVG.

`lay_out_trees` computes node positions and links; `tree_svg` and `tree_svg_file` draw them. Links
run in the space above each row of nodes and in the gap between the trees, so that none crosses a
node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from evenmatch.scoring.aligned import Aligned
from evenmatch.types import Parse
from evenmatch.units.parsers.cache import parse_cached
from evenmatch.units.subtrees import Constituents, Subtrees, all_nodes, truncate_text
from evenmatch.viewer.links import FONT_SIZE, printable, text_width, unit_label

_GAP, _STEP, _TOP, _BETWEEN = 18.0, 60.0, 52.0, 90.0
_NODE_HEIGHT = 22.0
_LANE = 3.5  # distance between links that run side by side
_INK, _QUIET, _LINE, _PAIR = "#212529", "#5c636a", "#adb5bd", "#e8590c"

TREE_CAPTION = (
    "The candidate's tree is on the left, the reference's on the right. Lines connect nodes whose "
    "subtrees are matched: wider lines stand for more pairs, fainter lines for a lower similarity. "
    "Dashed nodes are unmatched."
)


@dataclass(frozen=True, slots=True)
class NodePosition:
    """Centre of a node in pixels, with its text and the index of its parent."""

    x: float
    y: float
    text: str
    word: str = ""  # the word of a leaf, drawn below its tag
    parent: int = -1


@dataclass(frozen=True, slots=True)
class TreeLink:
    """A line from a candidate node to a reference node, for all paired subtrees with these roots.

    `pieces` lists the paired units with their similarity. `points` are the corners of the line:
    up from one node, along its row, along the gap between the trees, and to the other node.
    """

    start: int
    end: int
    similarity: float
    pieces: tuple[tuple[str, str, float], ...]
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class TreePair:
    """Layout of the trees of a candidate and a reference, and the links between them."""

    candidate: tuple[NodePosition, ...]
    reference: tuple[NodePosition, ...]
    links: tuple[TreeLink, ...]
    width: float
    height: float


def lay_out_trees(
    units: Subtrees | Constituents, candidate: str, reference: str, aligned: Aligned
) -> TreePair:
    """Lay out both trees and link nodes whose subtrees are paired with a similarity above 0."""
    texts = [truncate_text(text, units.most_words) for text in (candidate, reference)]
    parses = parse_cached(units.parser, texts)
    roots = [[unit[2] for unit in units.tree_units(parse)] for parse in parses]
    links = _collect_links(aligned, roots[0], roots[1])
    left = _node_positions(parses[0], _GAP, [link.start for link in links])
    edge = max((p.x + _half_width(p) for p in left), default=_GAP)
    between = max(_BETWEEN, 2 * _GAP + _LANE * len(links))
    right = _node_positions(parses[1], edge + between, [link.end for link in links])
    every = [*left, *right]
    return TreePair(
        tuple(left),
        tuple(right),
        _route_links(links, left, right, edge + between / 2),
        max((p.x + _half_width(p) for p in every), default=edge + between) + _GAP,
        max((p.y for p in every), default=_TOP) + 2 * _GAP,
    )


def tree_svg(pair: TreePair) -> str:
    """Draw the trees as SVG for a page that provides the style."""
    title = (
        f"candidate tree with {len(pair.candidate)} nodes, "
        f"reference tree with {len(pair.reference)} nodes, {len(pair.links)} links"
    )
    return _svg(pair, title, "")


def tree_svg_file(pair: TreePair, title: str) -> str:
    """Draw the trees as a standalone SVG file with its own style."""
    style = (
        f"<style>text{{font:{FONT_SIZE:.0f}px monospace;text-anchor:middle;fill:{_INK}}}"
        f".side,.word{{fill:{_QUIET}}}.side{{text-anchor:start;font-weight:bold}}.edge{{stroke:{_LINE}}}"
        f".joint{{fill:none;stroke:{_PAIR};stroke-linecap:round;stroke-linejoin:round}}rect{{fill:#fff;stroke:{_LINE}}}"
        ".alone rect{stroke-dasharray:3 3}.alone text{font-style:italic}</style>"
    )
    page = f'<rect width="100%" height="100%" style="stroke:none"/>{style}'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _svg(pair, title, page) + "\n"


def _half_width(place: NodePosition) -> float:
    return FONT_SIZE * max(text_width(place.text), text_width(place.word)) / 2


def _collect_links(
    aligned: Aligned, rows: Sequence[int], columns: Sequence[int]
) -> tuple[TreeLink, ...]:
    joined: dict[tuple[int, int], list[tuple[str, str, float]]] = {}
    for i, j, _ in aligned.pairs:
        similarity = float(aligned.similarity[i, j])
        if similarity > 0:  # a similarity filter sets excluded pairs to 0
            names = aligned.candidate_units[i], aligned.reference_units[j]
            joined.setdefault((rows[i], columns[j]), []).append((*names, similarity))
    return tuple(
        TreeLink(start, end, sum(p[2] for p in pieces) / len(pieces), tuple(pieces))
        for (start, end), pieces in joined.items()
    )


def _route_links(
    links: Sequence[TreeLink],
    left: Sequence[NodePosition],
    right: Sequence[NodePosition],
    middle: float,
) -> tuple[TreeLink, ...]:
    """Give each link a lane above the row of either node, and one in the gap at `middle`."""
    starts = _ends_and_lanes([link.start for link in links], left, 1)
    ends = _ends_and_lanes([link.end for link in links], right, -1)
    order = sorted(range(len(links)), key=lambda n: -starts[n][2])
    across = {n: middle + _LANE * (k - (len(links) - 1) / 2) for k, n in enumerate(order)}
    routed = []
    for n, link in enumerate(links):
        (x, y, lane), (u, v, other) = starts[n], ends[n]
        points = (x, y), (x, lane), (across[n], lane), (across[n], other), (u, other), (u, v)
        routed.append(replace(link, points=points))
    return tuple(routed)


def _ends_and_lanes(
    nodes: Sequence[int], places: Sequence[NodePosition], towards: int
) -> list[tuple[float, float, float]]:
    """Return where each link meets its node, x and y, and the height of its lane.

    The lane of a node nearer to the other tree is lower, so that links of one row do not cross.
    """
    found: dict[int, tuple[float, float, float]] = {}
    rows: dict[float, list[int]] = {}
    for n, node in enumerate(nodes):
        rows.setdefault(places[node].y, []).append(n)
    for y, links in rows.items():
        for k, n in enumerate(sorted(links, key=lambda n: -towards * places[nodes[n]].x)):
            own = [m for m in links if nodes[m] == nodes[n]]
            # beside the line to the parent, which meets the node in its middle
            room = (FONT_SIZE * text_width(places[nodes[n]].text) + 6) / 2
            shift = room * (own.index(n) + 1) / (len(own) + 1)
            top = y - _NODE_HEIGHT / 2
            found[n] = places[nodes[n]].x + towards * shift, top, top - 5 - _LANE * k
    return [found[n] for n in range(len(nodes))]


def _node_positions(parse: Parse, left: float, linked: Sequence[int]) -> list[NodePosition]:
    """Place words from left to right, phrases centred above their children, heads above words.

    `linked` has the node of each link; rows with more links have more space above them.
    """
    columns: list[float] = []  # centres of the words
    for word in parse.words:
        width = FONT_SIZE * max(text_width(unit_label(word)), 1.8)
        columns.append(left + width / 2)
        left += width + _GAP
    every = all_nodes(parse)
    middles: dict[int, float] = {}
    for node in reversed(every):
        below = [middles[id(child)] for child in node.children] if parse.is_constituency else []
        middles[id(node)] = sum(below) / len(below) if below else columns[node.head]
    parents = {id(child): n for n, node in enumerate(every) for child in node.children}
    parent = [parents.get(id(node), -1) for node in every]
    depths: list[int] = []
    for above in parent:  # parents come before their children
        depths.append(depths[above] + 1 if above >= 0 else 0)
    heights = _row_heights(depths, linked)
    places: list[NodePosition] = []
    for n, node in enumerate(every):
        text, word = unit_label(parse.words[node.head]), ""
        if parse.is_constituency:
            text, word = node.label, "" if node.children else text
        places.append(NodePosition(middles[id(node)], heights[depths[n]], text, word, parent[n]))
    return places


def _row_heights(depths: Sequence[int], linked: Sequence[int]) -> list[float]:
    """Return the height of each row of nodes."""
    lanes = Counter(depths[node] for node in linked)
    heights: list[float] = []
    for row in range(max(depths, default=0) + 1):
        above = heights[-1] + _STEP if heights else _TOP
        heights.append(above + _LANE * lanes[row])
    return heights


def _svg(pair: TreePair, title: str, before: str) -> str:
    joined = {link.start for link in pair.links}, {link.end for link in pair.links}
    start = min((p.x - _half_width(p) for p in pair.reference), default=pair.width / 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'class="trees" width="{pair.width:.0f}" height="{pair.height:.0f}" '
        f'viewBox="0 0 {pair.width:.0f} {pair.height:.0f}">{before}'
        f'<text class="side" x="{_GAP:.0f}" y="16">candidate</text>'
        f'<text class="side" x="{start:.0f}" y="16">reference</text>'
        f"{_draw_edges(pair.candidate)}{_draw_edges(pair.reference)}"
        f"{''.join(map(_draw_link, pair.links))}"
        f"{_draw_nodes(pair.candidate, joined[0])}{_draw_nodes(pair.reference, joined[1])}</svg>"
    )


def _draw_edges(places: Sequence[NodePosition]) -> str:
    return "".join(
        f'<line class="edge" x1="{places[p.parent].x:.1f}" '
        f'y1="{places[p.parent].y + _NODE_HEIGHT / 2}" '
        f'x2="{p.x:.1f}" y2="{p.y - _NODE_HEIGHT / 2}"/>'
        for p in places
        if p.parent >= 0
    )


def _draw_link(link: TreeLink) -> str:
    title = "; ".join(f"{printable(x)} – {printable(y)}: {s:.2f}" for x, y, s in link.pieces)
    corners = " ".join(f"{x:.1f} {y:.1f}" for x, y in link.points)
    return (
        f'<path class="joint" d="M{corners}" '
        f'stroke-width="{min(0.8 + 0.5 * len(link.pieces), 3.0):.2f}" '
        f'opacity="{0.15 + 0.75 * min(link.similarity, 1.0) ** 2:.2f}">'
        f"<title>{escape(title)}</title></path>"
    )


def _draw_nodes(places: Sequence[NodePosition], joined: set[int]) -> str:
    drawn = ""
    for n, p in enumerate(places):
        width = FONT_SIZE * text_width(p.text) + 10
        group = "" if n in joined else ' class="alone"'
        drawn += (
            f'<g{group}><rect x="{p.x - width / 2:.1f}" '
            f'y="{p.y - _NODE_HEIGHT / 2}" width="{width:.1f}" height="{_NODE_HEIGHT}" rx="4"/>'
            f'<text x="{p.x:.1f}" y="{p.y + 5}">{escape(p.text)}</text>'
        )
        if p.word:
            drawn += f'<text class="word" x="{p.x:.1f}" y="{p.y + 28}">{escape(p.word)}</text>'
        drawn += "</g>"
    return drawn
