"""words: a plain splitter that needs no model.

pieces: the sub-words of whatever model encodes the text, which is BERTScore's unit.

opening: the token a model puts before a text, as the text's only unit.

closing: the token a model puts after a text, as the text's only unit.

whole_text: a text as one unit.
"""

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


_COMBINING_MARK = "\u0300"


_WORD = re.compile(
    rf"[{_UNSPACED}]{_COMBINING_MARK}*|(?:(?![{_UNSPACED}])\w{_COMBINING_MARK}*)+|[^\w\s]{_COMBINING_MARK}*"
)


_JOINERS = "\u200c\u200d"


@register("units", "words")
@dataclass(frozen=True)
class Words:
    """Words and single punctuation marks, each a unit.

    >>> Words()("It's 20% off").items
    ('It', "'", 's', '20', '%', 'off')
    """

    lower: bool = False

    def __call__(self, text: str) -> Units:
        """Cut `text`; offsets always refer to the text as given."""
        spans = tuple(match.span() for match in _WORD.finditer(_normalize_combining_marks(text)))
        words = tuple(text[a:b].lower() if self.lower else text[a:b] for a, b in spans)
        return Units(text, words, spans, tuple((i,) for i in range(len(words))))


def _normalize_combining_marks(text: str) -> str:
    """The text, of the same length, with one mark for all combining marks and joiners.

    `re` counts no vowel sign of Hindi and no accent of its own among the letters, so that it would
    cut every word at each of them.
    """
    if text.isascii():
        return text
    return "".join(
        _COMBINING_MARK if c in _JOINERS or unicodedata.category(c)[0] == "M" else c for c in text
    )


@register("units", "pieces")
@dataclass(frozen=True)
class Pieces:
    """Leave the cutting to the encoder's own tokenizer.

    With `marks`, its opening and closing tokens are units too: others can be matched to them, but
    they carry no weight of their own (bert_score's way).
    """

    marks: bool = False

    def __call__(self, text: str) -> Units:
        """The whole text, marked as the encoder's to cut."""
        return Units(text, by_model=True, special_tokens=self.marks)


@register("units", "opening")
@dataclass(frozen=True)
class Opening:
    """Leave the cutting to the encoder, and of its tokens keep the first one before the text.

    In BERT and its kin it gathers what the model makes of the whole text.
    """

    def __call__(self, text: str) -> Units:
        """The whole text, marked as the encoder's to cut."""
        return Units(text, by_model=True, opening=True)


@register("units", "closing")
@dataclass(frozen=True)
class Closing:
    """Leave the cutting to the encoder, and of its tokens keep the one that closes the text.

    It has seen the whole text and stands for it (as the end-of-text token of CLIPScore does).
    """

    def __call__(self, text: str) -> Units:
        """The whole text, marked as the encoder's to cut."""
        return Units(text, by_model=True, closing=True)


@register("units", "whole_text")
@dataclass(frozen=True)
class WholeText:
    """The text uncut; an encoder with pool='mean' gives it the mean of its pieces.

    >>> WholeText()("  two words ").items
    ('two words',)
    """

    def __call__(self, text: str) -> Units:
        """One unit, or none where there is nothing but spaces."""
        inner = text.strip()
        if not inner:
            return Units(text)
        start = text.index(inner)
        return Units(text, (inner,), ((start, start + len(inner)),), ((0,),))
