"""Keyphrase lists: split a list of phrases into units of stemmed words.

The stemmer is nltk's Porter stemmer, which published keyphrase and ROUGE scores are based on.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias

from evenmatch.errors import InputError, needs_extra
from evenmatch.registry import check_settings, register
from evenmatch.registry.parts import check_arguments
from evenmatch.types import Units
from evenmatch.units.text import Words

Span: TypeAlias = tuple[int, int]
PHRASE_SEPARATOR = ";"
# In a joined list, a separator inside a phrase: the Greek question mark, which Unicode defines as
# equivalent to a semicolon and which looks the same.
_INNER_SEPARATOR = "\u037e"
# In a joined list, what separates the variants of a phrase: the control character for this.
VARIANT_SEPARATOR = "\x1f"
# Separator that generators put between present and absent phrases; it is not a phrase.
PEOS_TOKEN = "<peos>"
_NON_SPACE = re.compile(r"\S+")
_SPECIAL_TOKEN = re.compile(r"(<\w+>)")  # the group keeps the tokens when a text is split at them
_HYPHENS = frozenset("-\u2010\u2011")
# Tokenized text has commas and full stops between spaces; other text has them at the ends of words
# or consists of characters of a script without spaces.
_DETACHED_PUNCTUATION = re.compile(r"(?:^|\s)[.,](?:\s|$)")
_ATTACHED_PUNCTUATION = re.compile(
    r"\w[.,:?!)](?:\s|$)|[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]{2}"
)

_CACHE_SIZE = 1 << 17


@register("units", "phrases")
@dataclass(frozen=True)
class Phrases:
    """Keyphrases between separators, each a unit of stemmed words in lower case.

    `stem` is nltk's Porter stemmer, made for English, or 'none'. `tokens` defines a word:
    'whitespace' splits at spaces, as published evaluations of tokenized text do; 'words' takes
    words of any script and single symbols, and treats hyphens as spaces; 'auto' is 'words' for
    text with commas and full stops attached to words and for scripts without spaces, and
    'whitespace' for other text. Phrases without words and the special token `<peos>` are dropped.

    >>> Phrases()("neural networks; <peos>; Parsing").items
    ('neural network', 'pars')
    """

    separator: str = PHRASE_SEPARATOR
    stem: Literal["porter", "none"] = "porter"
    tokens: Literal["auto", "whitespace", "words"] = "auto"

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.separator.strip():
            raise InputError(
                f"the separator of phrases cannot be white space, got {self.separator!r}; "
                "use a character that occurs in no phrase, like ';'"
            )

    def __call__(self, text: str) -> Units:
        """Split `text`; `words` are stems, and `spans` refer to the text as given."""
        resolved = self.resolve_tokens(text)
        words: list[str] = []
        spans: list[Span] = []
        groups: list[tuple[int, ...]] = []
        start = 0
        for part in text.split(self.separator):
            at = start
            for phrase in part.split(VARIANT_SEPARATOR):
                token_spans = list(resolved._token_spans(phrase))
                tokens = [restore_separators(phrase[a:b]) for a, b in token_spans]
                if tokens and tokens != [PEOS_TOKEN]:
                    groups.append(tuple(range(len(words), len(words) + len(tokens))))
                    words += map(resolved._normalizer, tokens)
                    spans += [(at + a, at + b) for a, b in token_spans]
                at += len(phrase) + len(VARIANT_SEPARATOR)
            start += len(part) + len(self.separator)
        return Units(text, tuple(words), tuple(spans), tuple(groups))

    def resolve_tokens(self, *texts: str) -> Phrases:
        """Replace tokens='auto' by the choice for these texts, taken together."""
        if self.tokens != "auto":
            return self
        detached = any(map(_DETACHED_PUNCTUATION.search, texts))
        attached = not detached and any(map(_ATTACHED_PUNCTUATION.search, texts))
        return dataclasses.replace(self, tokens="words" if attached else "whitespace")

    def tokenize(self, text: str) -> list[str]:
        """Split running text into words in the same way as phrases."""
        spans = self.resolve_tokens(text)._token_spans(text)
        return [*map(self._normalizer, (text[a:b] for a, b in spans))]

    @property
    def _normalizer(self) -> Callable[[str], str]:
        """The function that stems or lower-cases a word."""
        return get_stemmer().stem if self.stem == "porter" else str.lower

    def _token_spans(self, text: str) -> Iterator[Span]:
        if self.tokens == "whitespace":
            yield from (match.span() for match in _NON_SPACE.finditer(text))
            return
        at = 0
        # Keep special tokens such as <unk> and <digit> whole; `Words` would split them.
        for part in _SPECIAL_TOKEN.split(text):
            words = [(0, len(part))] if _SPECIAL_TOKEN.fullmatch(part) else Words()(part).spans
            yield from ((at + a, at + b) for a, b in words if part[a:b] not in _HYPHENS)
            at += len(part)


@check_arguments
def join_phrases(phrases: Sequence[str | Sequence[str]]) -> str:
    """Join phrases with `;`, to the text of a phrase list that keyphrase metrics read.

    A phrase may contain `;`. A phrase may be a list of its variants, each of which becomes a unit;
    `variant_groups` tells which units belong together.

    >>> join_phrases(["neural nets", "parsing"])
    'neural nets; parsing'
    >>> Phrases(stem="none")(join_phrases(["q&amp;a; fast", "parsing"])).items
    ('q&amp;a; fast', 'parsing')
    """
    return f"{PHRASE_SEPARATOR} ".join(
        VARIANT_SEPARATOR.join(map(_hide_separators, [each] if isinstance(each, str) else each))
        for each in phrases
    )


def variant_groups(units: Units) -> list[list[int]]:
    """Return the numbers of the units that are variants of one phrase, for each phrase.

    >>> variant_groups(Phrases()(join_phrases([["neural nets", "nn"], "parsing"])))
    [[0, 1], [2]]
    """
    if VARIANT_SEPARATOR not in units.text:
        return [[i] for i in range(len(units.groups))]
    found: dict[int, list[int]] = {}
    for i, group in enumerate(units.groups):
        if group:
            number = units.text.count(PHRASE_SEPARATOR, 0, units.spans[group[0]][0])
            found.setdefault(number, []).append(i)
        else:
            found[-1 - i] = [i]  # a phrase without words has no place in the text
    return list(found.values())


def restore_separators(text: str) -> str:
    """Undo what `join_phrases` does to a separator inside a phrase."""
    return text.replace(_INNER_SEPARATOR, PHRASE_SEPARATOR)


def _hide_separators(phrase: str) -> str:
    return phrase.replace(PHRASE_SEPARATOR, _INNER_SEPARATOR).replace(VARIANT_SEPARATOR, " ")


@cache
def get_stemmer() -> Any:
    """Return nltk's Porter stemmer with a cache of words; its stems are in lower case."""
    with needs_extra("stemming needs nltk; install it with: pip install 'evenmatch[ngram]'"):
        from nltk.stem.porter import PorterStemmer
    stemmer: Any = PorterStemmer()
    stemmer.stem = lru_cache(_CACHE_SIZE)(stemmer.stem)
    return stemmer
