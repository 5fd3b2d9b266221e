"""phrases: a list of keyphrases, each phrase a unit, its words stemmed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from evenmatch.errors import InputError
from evenmatch.registry import check_settings, register
from evenmatch.types import Units
from evenmatch.units.stemming import stemmer
from evenmatch.units.words import Words

Span: TypeAlias = tuple[int, int]

# What generators put between present and absent phrases; it is not a phrase.
SPLIT_MARK = "<peos>"
_SPACED = re.compile(r"\S+")
_MARK = re.compile(r"<\w+>")
_HYPHENS = frozenset("-\u2010\u2011")
# Text whose tokens are set apart has commas and full stops that stand alone; other text has them
# at the ends of words, and text without spaces has characters that no word can be told by.
_APART = re.compile(r"(?:^|\s)[.,](?:\s|$)")
_ATTACHED = re.compile(r"\w[.,:?!)](?:\s|$)|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]{2}")


@register("splitter", "phrases")
@dataclass(frozen=True)
class Phrases:
    """Keyphrases between separators, each a unit of stemmed words in lower case.

    `stem` is nltk's Porter stemmer, made for English, or 'none'. `tokens` says what a word is:
    'whitespace' cuts between spaces, as published evaluations do, whose text is tokenized;
    'words' takes words of any script and single symbols, with hyphens as spaces; 'auto' is
    'whitespace', but 'words' for text whose commas and full stops cling to words, and for scripts
    without spaces. Phrases without a word are left out, and so is the mark `<peos>`.

    >>> Phrases()("neural networks; <peos>; Parsing").items
    ('neural network', 'pars')
    """

    separator: str = ";"
    stem: Literal["porter", "none"] = "porter"
    tokens: Literal["auto", "whitespace", "words"] = "auto"

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.separator.strip():
            raise InputError(
                f"the separator of phrases cannot be white space, got {self.separator!r}; "
                "give a sign that stands in no phrase, like ';'"
            )

    def __call__(self, text: str) -> Units:
        """Cut `text`; words are stems, their spans where they stand in the text as given."""
        cutting = self.settled(text)
        words: list[str] = []
        spans: list[Span] = []
        groups: list[tuple[int, ...]] = []
        start = 0
        for phrase in text.split(self.separator):
            found = list(cutting._spans(phrase))
            own = [phrase[a:b] for a, b in found]
            if own and own != [SPLIT_MARK]:
                groups.append(tuple(range(len(words), len(words) + len(own))))
                words += map(cutting._normal, own)
                spans += [(start + a, start + b) for a, b in found]
            start += len(phrase) + len(self.separator)
        return Units(text, tuple(words), tuple(spans), tuple(groups))

    def settled(self, *texts: str) -> Phrases:
        """The same with 'auto' replaced by what it stands for in these texts, taken together."""
        if self.tokens != "auto":
            return self
        apart = any(map(_APART.search, texts))
        attached = not apart and any(map(_ATTACHED.search, texts))
        return dataclasses.replace(self, tokens="words" if attached else "whitespace")

    def words_of(self, text: str) -> list[str]:
        """The words of running text, made the way those of phrases are."""
        cutting = self.settled(text)
        if cutting.tokens == "whitespace":
            return [*map(self._normal, text.split())]
        return [*map(self._normal, (text[a:b] for a, b in cutting._spans(text)))]

    @property
    def _normal(self) -> Callable[[str], str]:
        """What makes a word the one it is compared as."""
        return stemmer().stem if self.stem == "porter" else str.lower

    def _spans(self, text: str) -> Iterator[Span]:
        if self.tokens == "whitespace":
            yield from (match.span() for match in _SPACED.finditer(text))
            return
        start = 0
        # Marks such as <unk> and <digit> stay whole, which the words splitter would take apart.
        for mark in (*_MARK.finditer(text), None):
            end = mark.start() if mark else len(text)
            yield from _words(text, start, end)
            if mark:
                yield mark.span()
                start = mark.end()


def _words(text: str, start: int, end: int) -> Iterator[Span]:
    for a, b in Words()(text[start:end]).spans:
        if text[start + a : start + b] not in _HYPHENS:
            yield start + a, start + b
