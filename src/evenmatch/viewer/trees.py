"""Two parse trees with links between aligned subtrees, as SVG.

`lay_out_trees` computes node positions and links; `tree_svg` and `tree_svg_file` draw them. The
trees stand side by side, or one below the other if they are wide. Links run in the space above each
row of nodes, and between the trees or beside them, so that none crosses a node.
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
_WORD_STEP = 20.0  # least distance between the centres of neighbouring words
_MOST_WIDTH = 1150.0  # of trees that stand side by side
_LANE = 3.5  # distance between links that run side by side
_INK, _QUIET, _LINE, _PAIR = "#212529", "#5c636a", "#adb5bd", "#e8590c"

TREE_CAPTION = (
    "Lines connect nodes whose subtrees are matched: wider lines stand for more pairs, fainter "
    "lines for a lower similarity. Dashed nodes are unmatched."
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
    up from one node, along its row, up or down between or beside the trees, and to the other node.
    """

    start: int
    end: int
    similarity: float
    pieces: tuple[tuple[str, str, float], ...]
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class TreePair:
    """Layout of the trees of a candidate and a reference, and the links between them.

    `names` are the headings of the two trees with their positions.
    """

    candidate: tuple[NodePosition, ...]
    reference: tuple[NodePosition, ...]
    links: tuple[TreeLink, ...]
    width: float
    height: float
    names: tuple[tuple[str, float, float], ...]


def lay_out_trees(
    units: Subtrees | Constituents, candidate: str, reference: str, aligned: Aligned
) -> TreePair:
    """Lay out both trees and link nodes whose subtrees are paired with a similarity above 0."""
    texts = [truncate_text(text, units.most_words) for text in (candidate, reference)]
    parses = parse_cached(units.parser, texts)
    roots = [[unit[2] for unit in units.tree_units(parse)] for parse in parses]
    links = _collect_links(aligned, roots[0], roots[1])
    left = _node_positions(parses[0], _GAP, [link.start for link in links])
    edge, below = _extent(left)
    between = max(_BETWEEN, 2 * _GAP + _LANE * len(links))
    right = _node_positions(parses[1], edge + between, [link.end for link in links])
    start, top, middle, towards = edge + between, 0.0, edge + between / 2, -1
    width, height = _extent(right)
    if stacked := width > _MOST_WIDTH:
        right = [replace(p, x=p.x - start + _GAP, y=p.y + below) for p in right]
        start, top, towards = _GAP, below, 1
        width, height = _extent(right)
        middle = max(edge, width) + between / 2
    return TreePair(
        tuple(left),
        tuple(right),
        _route_links(links, left, right, middle, towards),
        middle + between / 2 if stacked else max(edge + between, width) + _GAP,
        max(below, height),
        (("candidate", _GAP, 16.0), ("reference", start, top + 16.0)),
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


def _extent(places: Sequence[NodePosition]) -> tuple[float, float]:
    """Return the right end and the bottom of a tree."""
    right = max((p.x + _half_width(p) for p in places), default=_GAP)
    return right, max((p.y for p in places), default=_TOP) + 2 * _GAP


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
    towards: int,
) -> tuple[TreeLink, ...]:
    """Give each link a lane above the row of either node, and one around `middle`.

    From the reference, `middle` is to the left (`towards` is -1) or to the right (1).
    """
    starts = _ends_and_lanes([link.start for link in links], left, 1)
    ends = _ends_and_lanes([link.end for link in links], right, towards)
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

    The lane of a node nearer to the end of its row is lower, so that links of one row do not cross.
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
    """Place words in their order, phrases centred above their children, heads above words.

    Nodes overlap horizontally only if they are in different rows, which keeps long sentences
    narrow. `linked` has the node of each link; rows with more links have more space above them.
    """
    every = all_nodes(parse)
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
        places.append(NodePosition(0.0, heights[depths[n]], text, word, parent[n]))
    halves = [max(_half_width(place), 0.9 * FONT_SIZE) for place in places]
    if parse.is_constituency:
        middles = _phrase_columns(parent, depths, halves)
    else:
        heads = [node.head for node in every]
        middles = _word_columns(heads, depths, halves)
    start = left - min((x - half for x, half in zip(middles, halves, strict=True)), default=0.0)
    return [replace(place, x=start + x) for place, x in zip(places, middles, strict=True)]


def _word_columns(
    heads: Sequence[int], depths: Sequence[int], halves: Sequence[float]
) -> list[float]:
    """Return the centres of words, from left to right."""
    middles = [0.0] * len(heads)
    ends: dict[int, float] = {}  # right end of each row
    last = 0.0
    for n in sorted(range(len(heads)), key=heads.__getitem__):
        last = max(last + _WORD_STEP, ends.get(depths[n], 0.0) + _GAP + halves[n])
        middles[n], ends[depths[n]] = last, last + halves[n]
    return middles


def _phrase_columns(
    parent: Sequence[int], depths: Sequence[int], halves: Sequence[float]
) -> list[float]:
    """Return the centres of phrases and words, placed from right to left, children first."""
    middles = [0.0] * len(parent)
    below: list[list[int]] = [[] for _ in parent]
    ends: dict[int, float] = {}  # left end of each row
    last = 0.0
    for n in reversed(range(len(parent))):
        room = ends.get(depths[n], 0.0) - _GAP - halves[n]
        if below[n]:
            middle = sum(middles[child] for child in below[n]) / len(below[n])
            shift = max(middle - room, 0.0)
            for each in _nodes_below(n, below) if shift else ():
                middles[each] -= shift
                ends[depths[each]] = min(ends[depths[each]], middles[each] - halves[each])
            middles[n] = middle - shift
            last -= shift
        else:
            middles[n] = last = min(last - _WORD_STEP, room)
        ends[depths[n]] = middles[n] - halves[n]
        if parent[n] >= 0:
            below[parent[n]].append(n)
    return middles


def _nodes_below(node: int, below: Sequence[Sequence[int]]) -> list[int]:
    found = list(below[node])
    for each in found:
        found.extend(below[each])
    return found


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
    names = "".join(
        f'<text class="side" x="{x:.0f}" y="{y:.0f}">{name}</text>' for name, x, y in pair.names
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'class="trees" width="{pair.width:.0f}" height="{pair.height:.0f}" '
        f'viewBox="0 0 {pair.width:.0f} {pair.height:.0f}">{before}'
        f"{names}{_draw_edges(pair.candidate)}{_draw_edges(pair.reference)}"
        f"{''.join(map(_draw_link, pair.links))}"
        f"{_draw_nodes('candidate', pair.candidate, joined[0])}"
        f"{_draw_nodes('reference', pair.reference, joined[1])}</svg>"
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
        f'<path class="joint" data-candidate="{link.start}" data-reference="{link.end}" '
        f'd="M{corners}" '
        f'stroke-width="{min(0.8 + 0.5 * len(link.pieces), 3.0):.2f}" '
        f'opacity="{0.15 + 0.75 * min(link.similarity, 1.0) ** 2:.2f}">'
        f"<title>{escape(title)}</title></path>"
    )


def _draw_nodes(side: str, places: Sequence[NodePosition], joined: set[int]) -> str:
    drawn = ""
    for n, p in enumerate(places):
        width = FONT_SIZE * text_width(p.text) + 10
        group = "node" if n in joined else "node alone"
        drawn += (
            f'<g class="{group}" data-tree="{side}" data-at="{n}"><rect x="{p.x - width / 2:.1f}" '
            f'y="{p.y - _NODE_HEIGHT / 2}" width="{width:.1f}" height="{_NODE_HEIGHT}" rx="4"/>'
            f'<text x="{p.x:.1f}" y="{p.y + 5}">{escape(p.text)}</text>'
        )
        if p.word:
            drawn += f'<text class="word" x="{p.x:.1f}" y="{p.y + 28}">{escape(p.word)}</text>'
        drawn += "</g>"
    return drawn
