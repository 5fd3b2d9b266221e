"""phrases: a list of keyphrases, each phrase a unit, its words stemmed.

Porter's stemmer as nltk has it: published scores of words and phrases rest on this one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, TypeAlias

from evenmatch.errors import InputError, MissingExtraError
from evenmatch.registry import check_settings, register
from evenmatch.types import Units
from evenmatch.units.text import Words

Span: TypeAlias = tuple[int, int]


# What generators put between present and absent phrases; it is not a phrase.
PEOS_TOKEN = "<peos>"


_NON_SPACE = re.compile(r"\S+")


_SPECIAL_TOKEN = re.compile(r"<\w+>")


_HYPHENS = frozenset("-\u2010\u2011")


# Text whose tokens are set apart has commas and full stops that stand alone; other text has them
# at the ends of words, and text without spaces has characters that no word can be told by.
_DETACHED_PUNCTUATION = re.compile(r"(?:^|\s)[.,](?:\s|$)")


_ATTACHED_PUNCTUATION = re.compile(
    r"\w[.,:?!)](?:\s|$)|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]{2}"
)


@register("units", "phrases")
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
        cutting = self.resolve_tokens(text)
        words: list[str] = []
        spans: list[Span] = []
        groups: list[tuple[int, ...]] = []
        start = 0
        for phrase in text.split(self.separator):
            found = list(cutting._token_spans(phrase))
            own = [phrase[a:b] for a, b in found]
            if own and own != [PEOS_TOKEN]:
                groups.append(tuple(range(len(words), len(words) + len(own))))
                words += map(cutting._normalizer, own)
                spans += [(start + a, start + b) for a, b in found]
            start += len(phrase) + len(self.separator)
        return Units(text, tuple(words), tuple(spans), tuple(groups))

    def resolve_tokens(self, *texts: str) -> Phrases:
        """The same with 'auto' replaced by what it stands for in these texts, taken together."""
        if self.tokens != "auto":
            return self
        apart = any(map(_DETACHED_PUNCTUATION.search, texts))
        attached = not apart and any(map(_ATTACHED_PUNCTUATION.search, texts))
        return dataclasses.replace(self, tokens="words" if attached else "whitespace")

    def tokenize(self, text: str) -> list[str]:
        """The words of running text, made the way those of phrases are."""
        cutting = self.resolve_tokens(text)
        if cutting.tokens == "whitespace":
            return [*map(self._normalizer, text.split())]
        return [*map(self._normalizer, (text[a:b] for a, b in cutting._token_spans(text)))]

    @property
    def _normalizer(self) -> Callable[[str], str]:
        """What makes a word the one it is compared as."""
        return get_stemmer().stem if self.stem == "porter" else str.lower

    def _token_spans(self, text: str) -> Iterator[Span]:
        if self.tokens == "whitespace":
            yield from (match.span() for match in _NON_SPACE.finditer(text))
            return
        start = 0
        # Marks such as <unk> and <digit> stay whole, which the words splitter would take apart.
        for mark in (*_SPECIAL_TOKEN.finditer(text), None):
            end = mark.start() if mark else len(text)
            yield from _word_spans(text, start, end)
            if mark:
                yield mark.span()
                start = mark.end()


def _word_spans(text: str, start: int, end: int) -> Iterator[Span]:
    for a, b in Words()(text[start:end]).spans:
        if text[start + a : start + b] not in _HYPHENS:
            yield start + a, start + b


_CACHE_SIZE = 1 << 17


class Stemmer:
    """Porter's stemmer, remembering the words it has seen; a stem is in lower case."""

    def __init__(self) -> None:
        try:
            from nltk.stem.porter import PorterStemmer
        except ImportError:
            raise MissingExtraError(
                "this metric needs nltk; install it with: pip install 'evenmatch[ngram]'"
            ) from None
        self.stem: Callable[[str], str] = lru_cache(_CACHE_SIZE)(PorterStemmer().stem)


@cache
def get_stemmer() -> Stemmer:
    """The one stemmer of this process."""
    return Stemmer()
