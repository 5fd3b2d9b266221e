"""Splitters that need no parser: words, sentences, pieces, opening, closing and whole_text.

`Words` and `Sentences` split a text here. `Pieces`, `Opening` and `Closing` leave the text whole
and tell the encoder which of its tokens are units.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evenmatch.registry import register
from evenmatch.types import Units

# A word is a run of letters and digits, or one symbol, with its combining marks. Scripts written
# without spaces are split by character; otherwise a whole Chinese clause would be one word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)

_COMBINING_MARK = "\u0300"

_WORD = re.compile(
    rf"[{_UNSPACED}]{_COMBINING_MARK}*"
    rf"|(?:(?![{_UNSPACED}])\w{_COMBINING_MARK}*)+"
    rf"|[^\w\s]{_COMBINING_MARK}*"
)

# A sentence ends at a line break, and at a mark with the closing quotes and brackets after it. A
# space must follow the mark, unless it is a full-width one.
_SENTENCE_END = re.compile(
    r"(?P<marks>[.!?\u2026\u203d\u061f\u06d4\u0964]+[\"'\u2019\u201d\u00bb)\]]*)(?=\s|$)"
    r"|[\u3002\uff01\uff1f]+[\"'\u2019\u201d\u300d\u300f\uff09]*"
    r"|\n"
)
# Words that a full stop follows inside a sentence, besides single letters.
_ABBREVIATIONS = frozenset(
    """adm al approx apr art aug ave brig ca capt cf cmdr co col corp dec dept dr ed eds eq etc feb
    fig figs gen gov hon inc jan jr ltd lt maj messrs mr mrs ms mt nov oct op pp prof rep rev sec
    sen sept sgt sr st tel univ vol vs""".split()
)

_LAST_WORD = re.compile(r"[^\s\"'(\u2018\u201c\u00ab\[]*\Z")
_LONGEST_WORD = 40
_NOT_SPACE = re.compile(r"\S")
_CLOSING_MARKS = "\"'\u2019\u201d\u00bb)]"

_JOINERS = "\u200c\u200d"
_SURROGATES = re.compile("[\ud800-\udfff]")


@register("units", "words")
@dataclass(frozen=True)
class Words:
    """Words and single punctuation marks, each a unit.

    >>> Words()("It's 20% off").items
    ('It', "'", 's', '20', '%', 'off')
    """

    lower: bool = False

    def __call__(self, text: str) -> Units:
        """Split `text`; `spans` always refer to the text as given, also with `lower`."""
        spans = tuple(match.span() for match in _WORD.finditer(_normalize_combining_marks(text)))
        words = tuple(text[a:b].lower() if self.lower else text[a:b] for a, b in spans)
        return Units(text, words, spans, tuple((i,) for i in range(len(words))))


@register("units", "sentences")
@dataclass(frozen=True)
class Sentences:
    """Sentences, each a unit of words: for long texts, with a similarity such as `by_metric`.

    A sentence ends at a line break, or at a full stop, question or exclamation mark before a space.
    A full stop ends none after a single letter or a common English abbreviation, nor before a
    small letter; in tokenized text, with a space before the full stop, it always ends one.

    >>> Sentences()("Dr. No met J. Bond. Who won?").items
    ('Dr . No met J . Bond .', 'Who won ?')
    """

    def __call__(self, text: str) -> Units:
        """Split `text`; a sentence has at least one word."""
        words = Words()(text)
        ends = iter([*_sentence_ends(text), len(text)])
        groups: list[list[int]] = [[]]
        end = next(ends)
        for i, (_, stop) in enumerate(words.spans):
            while stop > end:
                end = next(ends)
                groups.append([])
            groups[-1].append(i)
        return replace(words, groups=tuple(tuple(group) for group in groups if group))


@register("units", "pieces")
@dataclass(frozen=True)
class Pieces:
    """The sub-words of the encoder's tokenizer, as in BERTScore.

    With `marks`, the special tokens that open and close a text are units too: other units can be
    matched to them, but they have no weight themselves (as in the bert_score package).
    """

    marks: bool = False

    def __call__(self, text: str) -> Units:
        """Return the text, to be split by the encoder."""
        return Units(text, by_model=True, special_tokens=self.marks)


@register("units", "opening")
@dataclass(frozen=True)
class Opening:
    """The first special token that the encoder puts before the text, as the only unit.

    In BERT-like models, [CLS] summarises the whole text.
    """

    def __call__(self, text: str) -> Units:
        """Return the text, to be split by the encoder."""
        return Units(text, by_model=True, opening=True)


@register("units", "closing")
@dataclass(frozen=True)
class Closing:
    """The special token that closes the text, as the only unit.

    It attends to the whole text and represents it (like the end-of-text token in CLIPScore). For a
    model that puts no token after a text, it is the last token of the text.
    """

    def __call__(self, text: str) -> Units:
        """Return the text, to be split by the encoder."""
        return Units(text, by_model=True, closing=True)


@register("units", "whole_text")
@dataclass(frozen=True)
class WholeText:
    """The whole text as one unit; with pool='mean' its vector is the mean of its sub-words.

    >>> WholeText()("  two words ").items
    ('two words',)
    """

    def __call__(self, text: str) -> Units:
        """Return one unit, or none if the text is blank."""
        inner = text.strip()
        if not inner:
            return Units(text)
        start = text.index(inner)
        return Units(text, (inner,), ((start, start + len(inner)),), ((0,),))


def continuations(units: Units) -> frozenset[int]:
    """Return the units that begin inside a word: the second and later sub-words of a word.

    >>> sorted(continuations(Units("walks", ("walk", "s"), ((0, 4), (4, 5)), ((0,), (1,)))))
    [1]
    """
    starts = [units.spans[group[0]][0] if group else 0 for group in units.groups]
    ends = {stop for _, stop in units.spans}
    return frozenset(
        i for i, at in enumerate(starts) if at in ends and _inside_word(units.text, at)
    )


def _inside_word(text: str, at: int) -> bool:
    """Whether both sides of a position are letters or digits of a script that joins them."""
    return at > 0 and all(
        (c.isalnum() or unicodedata.category(c)[0] == "M")
        and unicodedata.east_asian_width(c) not in "WF"
        for c in text[at - 1 : at + 1]
    )


def _sentence_ends(text: str) -> Iterator[int]:
    """Yield the positions after each sentence."""
    for match in _SENTENCE_END.finditer(text):
        marks, start = match["marks"], match.start()
        if marks and not marks.strip(_CLOSING_MARKS).strip(".\u2026"):
            before = _LAST_WORD.search(text, max(0, start - _LONGEST_WORD), start)
            word = before[0] if before else ""
            letter = word.rpartition(".")[2]
            short = len(letter) == 1 and letter.isalpha()
            after = _NOT_SPACE.search(text, match.end())
            inside = short or word.lower() in _ABBREVIATIONS
            if word and (inside or (after and after[0].islower())):
                continue
        yield match.end()


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded and which tokenizers reject."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _normalize_combining_marks(text: str) -> str:
    """Replace all combining marks and joiners by one character; the length stays the same.

    `\\w` does not match Hindi vowel signs or combining accents, so `re` would split words there.
    """
    if text.isascii():
        return text
    return "".join(
        _COMBINING_MARK if c in _JOINERS or unicodedata.category(c)[0] == "M" else c for c in text
    )
