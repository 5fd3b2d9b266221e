"""words: a plain splitter that needs no model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.types import Units

# A run of letters, digits and marks, or one symbol. Scripts written without spaces are cut by
# character, since a whole Chinese clause would otherwise be a single word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]")


@register("splitter", "words")
@dataclass(frozen=True)
class Words:
    """Words and single punctuation marks, each a unit.

    >>> Words()("It's 20% off").items
    ('It', "'", 's', '20', '%', 'off')
    """

    lower: bool = False

    def __call__(self, text: str) -> Units:
        """Cut `text`; offsets always refer to the text as given."""
        spans = tuple(match.span() for match in _WORD.finditer(text))
        words = tuple(text[a:b].lower() if self.lower else text[a:b] for a, b in spans)
        return Units(text, words, spans, tuple((i,) for i in range(len(words))))
