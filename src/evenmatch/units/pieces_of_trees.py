"""Pieces of trees as units: what subtrees and constituents have in common."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeAlias

from evenmatch.types import NO_FLAGS, Parse, Tree, Units
from evenmatch.units.trees import nodes

# The words, the label, and which node of the parse's trees (see `all_nodes`) is on top.
Piece: TypeAlias = tuple[tuple[int, ...], str, int]

_WORD = re.compile(r"\S+")
_TRUNCATED = frozenset({"truncated"})


def shortened(text: str, most_words: int) -> str:
    """As much of the text as can hold so many words: a parser cuts no fewer than blanks do."""
    if len(text) <= most_words:
        return text
    last = list(islice(_WORD.finditer(text), most_words))[-1:]
    return text[: last[0].end()] if last else ""


def all_nodes(parse: Parse) -> list[Tree]:
    """The nodes of all trees of a parse, sentence by sentence."""
    return [node for tree in parse.trees for node in nodes(tree)]


def within(pieces: Iterable[Piece], most_words: int) -> list[Piece]:
    """The pieces that do not reach beyond so many words."""
    return [piece for piece in pieces if piece[0][-1] < most_words]


def as_units(
    text: str, parse: Parse, pieces: Sequence[Piece], weight: str, most_words: int
) -> Units:
    """The pieces as units of the text."""
    cut_short = len(parse.words) > most_words or len(parse.text.rstrip()) < len(text.rstrip())
    groups = tuple(group for group, _, _ in pieces)
    return Units(
        text,
        parse.words[:most_words],
        parse.spans[:most_words],
        groups,
        tuple(label for _, label, _ in pieces),
        weights=_by_length(groups) if weight == "log_length" else (),
        flags=_TRUNCATED if cut_short else NO_FLAGS,
    )


def _by_length(groups: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """log(words) for each unit (eq. 6); where all are single words, they count alike."""
    weights = tuple(math.log(len(group)) for group in groups)
    return weights if any(weights) else ()
