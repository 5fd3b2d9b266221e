"""words: a plain splitter that needs no model."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from evenmatch.registry import register
from evenmatch.types import Units

# A run of letters and digits, or one symbol, each with the marks that stand on it. Scripts written
# without spaces are cut by character, since a whole Chinese clause would otherwise be one word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_MARK = "\u0300"
_WORD = re.compile(rf"[{_UNSPACED}]{_MARK}*|(?:(?![{_UNSPACED}])\w{_MARK}*)+|[^\w\s]{_MARK}*")
_JOINERS = "\u200c\u200d"


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
        spans = tuple(match.span() for match in _WORD.finditer(_with_one_mark(text)))
        words = tuple(text[a:b].lower() if self.lower else text[a:b] for a, b in spans)
        return Units(text, words, spans, tuple((i,) for i in range(len(words))))


def _with_one_mark(text: str) -> str:
    """The text, of the same length, with one mark for all combining marks and joiners.

    `re` counts no vowel sign of Hindi and no accent of its own among the letters, so that it would
    cut every word at each of them.
    """
    if text.isascii():
        return text
    return "".join(_MARK if c in _JOINERS or unicodedata.category(c)[0] == "M" else c for c in text)
