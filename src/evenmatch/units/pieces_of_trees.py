"""Pieces of trees as units: what subtrees and constituents have in common."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import TypeAlias

from evenmatch.types import NO_FLAGS, Parse, Units

Piece: TypeAlias = tuple[tuple[int, ...], str]  # the words, and the label

_WORD = re.compile(r"\S+")
_TRUNCATED = frozenset({"truncated"})


def shortened(text: str, most_words: int) -> str:
    """As much of the text as can hold so many words: a parser cuts no fewer than blanks do."""
    if len(text) <= most_words:
        return text
    last = list(islice(_WORD.finditer(text), most_words))[-1:]
    return text[: last[0].end()] if last else ""


def as_units(
    text: str, parse: Parse, pieces: Sequence[Piece], weight: str, most_words: int
) -> Units:
    """The pieces as units of the text; those that reach beyond the limit are left out."""
    if len(parse.words) > most_words:
        pieces = [piece for piece in pieces if piece[0][-1] < most_words]
    cut_short = len(parse.words) > most_words or len(parse.text.rstrip()) < len(text.rstrip())
    groups = tuple(group for group, _ in pieces)
    return Units(
        text,
        parse.words[:most_words],
        parse.spans[:most_words],
        groups,
        tuple(label for _, label in pieces),
        weights=_by_length(groups) if weight == "log_length" else (),
        flags=_TRUNCATED if cut_short else NO_FLAGS,
    )


def _by_length(groups: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """log(words) for each unit (eq. 6); where all are single words, they count alike."""
    weights = tuple(math.log(len(group)) for group in groups)
    return weights if any(weights) else ()
