"""Where the nodes of two trees go, side by side, and which of them an alignment joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenmatch.scoring.aligned import Aligned
from evenmatch.types import Parse, Tree
from evenmatch.units.constituents import Constituents
from evenmatch.units.parses import parse_all
from evenmatch.units.pieces_of_trees import all_nodes, shortened
from evenmatch.units.subtrees import Subtrees
from evenmatch.viewer.labels import label, width

FONT = 14.0  # pixels, as in style.css
_GAP, _STEP, _TOP, _BETWEEN = 18.0, 52.0, 44.0, 90.0


@dataclass(frozen=True, slots=True)
class Place:
    """A node in the picture, in pixels: its middle, and what is written there."""

    x: float
    y: float
    text: str
    under: str = ""  # a word, below its tag
    parent: int = -1


@dataclass(frozen=True, slots=True)
class Link:
    """A line from a node of the candidate to one of the reference, for all pieces on top of them.

    `pieces` are the pairs of units with their similarity.
    """

    start: int
    end: int
    similarity: float
    pieces: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, slots=True)
class TreePair:
    """The trees of a candidate and a reference, and the links between them."""

    candidate: tuple[Place, ...]
    reference: tuple[Place, ...]
    links: tuple[Link, ...]
    wide: float
    high: float


def has_trees(splitter: Any) -> bool:
    """Whether a splitter's units are pieces of trees, which can be drawn."""
    return isinstance(splitter, Subtrees | Constituents)


def tree_pair(
    splitter: Subtrees | Constituents, candidate: str, reference: str, aligned: Aligned
) -> TreePair:
    """Both trees laid out, and joined where pieces of them are paired and at all similar."""
    texts = [shortened(text, splitter.most_words) for text in (candidate, reference)]
    parses = parse_all(splitter.parser, texts)
    tops = [[piece[2] for piece in splitter.pieces(parse)] for parse in parses]
    left = _places(parses[0], _GAP)
    edge = max((p.x + _half(p) for p in left), default=_GAP) + _BETWEEN
    right = _places(parses[1], edge)
    every = [*left, *right]
    return TreePair(
        tuple(left),
        tuple(right),
        _links(aligned, tops[0], tops[1]),
        max((p.x + _half(p) for p in every), default=edge) + _GAP,
        max((p.y for p in every), default=_TOP) + 2 * _GAP,
    )


def _half(place: Place) -> float:
    return FONT * max(width(place.text), width(place.under)) / 2


def _links(aligned: Aligned, rows: Sequence[int], columns: Sequence[int]) -> tuple[Link, ...]:
    joined: dict[tuple[int, int], list[tuple[str, str, float]]] = {}
    for i, j, _ in aligned.pairs:
        similarity = float(aligned.similarity[i, j])
        if similarity > 0:  # nothing is gained from a partner that a filter ruled out
            names = aligned.candidate_units[i], aligned.reference_units[j]
            joined.setdefault((rows[i], columns[j]), []).append((*names, similarity))
    return tuple(
        Link(start, end, sum(p[2] for p in pieces) / len(pieces), tuple(pieces))
        for (start, end), pieces in joined.items()
    )


def _places(parse: Parse, left: float) -> list[Place]:
    """Words from left to right; a phrase over the middle of its parts, a head over its own word."""
    every = all_nodes(parse)
    at = {id(node): n for n, node in enumerate(every)}
    parents = [-1] * len(every)
    depths = [0] * len(every)
    for n, node in enumerate(every):
        for child in node.children:
            parents[at[id(child)]], depths[at[id(child)]] = n, depths[n] + 1
    columns = _columns(parse, left)
    middles: dict[int, float] = {}
    for node in reversed(every):
        own = [middles[id(child)] for child in node.children] if parse.phrases else []
        middles[id(node)] = sum(own) / len(own) if own else columns[node.head]
    return [
        Place(middles[id(node)], _TOP + _STEP * depths[n], *_written(parse, node), parents[n])
        for n, node in enumerate(every)
    ]


def _written(parse: Parse, node: Tree) -> tuple[str, str]:
    word = label(parse.words[node.head])
    if not parse.phrases:
        return word, ""
    return node.label, "" if node.children else word


def _columns(parse: Parse, left: float) -> list[float]:
    middles: list[float] = []
    for word in parse.words:
        wide = FONT * max(width(label(word)), 1.8)
        middles.append(left + wide / 2)
        left += wide + _GAP
    return middles
